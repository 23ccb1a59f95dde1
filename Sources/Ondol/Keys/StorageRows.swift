// Storage paths: each is a document of a root collection that apps cannot name, so paths have the
// features of documents. They are written in the commits of documents, guarded, listened to, kept
// in the change feed, checked and salvaged with the same code. They hold their contents like any
// document with a blob reference.
//
//   __storage__/<newline>images<newline>lamp.png
//     content          blob: digest and length
//     contentType      string, and likewise cacheControl, contentDisposition, contentEncoding,
//                      contentLanguage, where they are set
//     custom           map of strings, where there are any
//     checksums        bytes: CRC32C, high byte first, and MD5, if a server put the bytes
//     created          timestamp of the commit that brought the bytes: also the generation
//     metageneration   1, and one more for each change of the metadata
//
// The id is the path with a line break, which no path has, before it and in place of each "/",
// which no id may have. So everything below a folder is one range of ids, and a folder's own rows
// come before those of longer names that begin with its name.

internal import OndolEngine

/// The mapping of storage paths to documents.
enum StorageRows {
  /// The root collection. Apps cannot name it: names of this form are reserved.
  static let root = "__storage__"
  static let pattern = CollectionPattern([root])
  static let collection = CollectionPath(unchecked: [root])

  /// Replaces "/" in ids.
  private static let separator = "\n"

  /// The id of the document that is a path. Begins with a separator also at the top, so that no
  /// path makes an id that an id may not be.
  static func id(of path: String) -> String {
    let slash = UInt8(ascii: "/")
    let newline = UInt8(ascii: "\n")
    let bytes = [newline] + path.utf8.map { $0 == slash ? newline : $0 }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The path of a document's id; nil when the id is not a path's.
  static func path(ofID id: String) -> String? {
    let slash = UInt8(ascii: "/")
    let newline = UInt8(ascii: "\n")
    guard id.utf8.first == newline, !id.utf8.contains(slash) else { return nil }
    let bytes = id.utf8.dropFirst().map { $0 == newline ? slash : $0 }
    let path = String(decoding: bytes, as: UTF8.self)
    return StoragePath.problem(with: path) == nil ? path : nil
  }

  static func document(at path: String) -> DocumentPath {
    DocumentPath(unchecked: [root, id(of: path)])
  }

  /// The prefix of the ids of everything below a folder.
  static func idPrefix(ofFolder folder: String) -> String {
    folder.isEmpty ? separator : id(of: folder) + separator
  }

  /// An id after those of everything below a folder, and before all others after these.
  static func idEnd(ofFolder folder: String) -> String {
    // The byte after a line break; no path has it.
    id(of: folder) + "\u{b}"
  }

  /// The names of the fields.
  enum ObjectField {
    static let content = "content"
    static let contentType = "contentType"
    static let cacheControl = "cacheControl"
    static let contentDisposition = "contentDisposition"
    static let contentEncoding = "contentEncoding"
    static let contentLanguage = "contentLanguage"
    static let custom = "custom"
    static let checksums = "checksums"
    static let created = "created"
    static let metageneration = "metageneration"
  }
}

extension DocumentPath {
  /// The storage path of this document; nil for a document of the app.
  var storagePath: String? {
    guard segments.count == 2, isSame(segments[0], StorageRows.root) else { return nil }
    return StorageRows.path(ofID: segments[1])
  }

  /// The path for messages: a storage path if it is one.
  var name: String { storagePath ?? description }

  /// A path read from disk, which may be that of a document that apps cannot name.
  ///
  /// Throws as `init(segments:)`.
  init(stored segments: [String]) throws(DatabaseError) {
    let path = DocumentPath(unchecked: segments)
    if segments.count == 2, path.storagePath != nil || HiddenRows.isRecord(path) {
      self = path
    } else {
      try self.init(segments: segments)
    }
  }
}
