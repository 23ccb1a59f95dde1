// Where storage paths are kept: each is a document of a root collection that no app can name, so
// paths have what documents have. They are written in the commits of documents, guarded, listened
// to, kept in the change feed, checked and salvaged with the same code, and hold their contents as
// any document does that has a blob reference in it.
//
//   __storage__/<newline>images<newline>lamp.png
//     content          blob: digest and length
//     contentType      string, and likewise cacheControl, contentDisposition, contentEncoding,
//                      contentLanguage, where they are set
//     custom           map of strings, where there are any
//     created          timestamp of the commit that brought the bytes: also the generation
//     metageneration   1, and one more for each change of the metadata
//
// The id is the path with a line break, which no path has, in front and in the place of each "/",
// which no id may have. So everything below a folder is one range of ids, and a folder's own rows
// come before those of longer names that begin with its name.

internal import OndolEngine

/// How storage paths are documents.
enum StorageRows {
  /// The root collection. Apps cannot name it: names of this form are reserved.
  static let root = "__storage__"
  static let pattern = CollectionPattern([root])
  static let collection = CollectionPath(unchecked: [root])

  /// Stands for "/" in ids.
  private static let separator = "\n"

  /// The id of the document that is a path. Begins with a separator also at the top, so that no
  /// path makes an id that an id may not be.
  static func id(of path: String) -> String {
    let slash = UInt8(ascii: "/")
    let newline = UInt8(ascii: "\n")
    let bytes = [newline] + path.utf8.map { $0 == slash ? newline : $0 }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The path that a document's id stands for; nil when it stands for none.
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

  /// What the ids of everything below a folder begin with.
  static func idPrefix(ofFolder folder: String) -> String {
    folder.isEmpty ? separator : id(of: folder) + separator
  }

  /// An id behind those of everything below a folder, and before all others behind these.
  static func idEnd(ofFolder folder: String) -> String {
    // What follows a line break in the order of bytes; no path has it.
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
    static let created = "created"
    static let metageneration = "metageneration"
  }
}

extension DocumentPath {
  /// The storage path that this document is; nil for a document of the app.
  var storagePath: String? {
    guard segments.count == 2, isSame(segments[0], StorageRows.root) else { return nil }
    return StorageRows.path(ofID: segments[1])
  }

  /// The path as a message names it: a storage path where it is one.
  var name: String { storagePath ?? description }

  /// A path read from disk, which may be that of a document that no app can name.
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
