// The form of a dump. Everything except contents is text, in a defined order, and identical for
// identical databases, so any tool can compare dumps. Docs/Tools.md describes it for users.
//
//   indexes.jsonl                what is declared, one declaration a line
//   tree.jsonl                   the nodes of the tree
//   storage.jsonl                storage paths with all their metadata
//   collections/<name>.jsonl     documents, in the order of their keys
//   blobs/ab/<digest>            contents, as they are
//   away.jsonl                   contents whose bytes are elsewhere, as on a server
//   derived.jsonl                what was made from contents
//   manifest.json                last: how many lines each file has
//
// In a stream the files follow each other, each after a line {"__file__":name}. Contents are quoted
// lines of base64 there. Files without anything in them are left out.

import Ondol

/// Names in a dump.
package enum Dump {
  package static let schema = "dump/1"
  static let manifest = "manifest.json"
  static let indexes = "indexes.jsonl"
  static let tree = "tree.jsonl"
  static let storage = "storage.jsonl"
  static let away = "away.jsonl"
  static let derived = "derived.jsonl"
  static let collections = "collections/"
  static let contents = "blobs/"
  /// The member before a file in a stream.
  static let header = "__file__"

  /// Names of a document's metadata. No field has such a name.
  package enum Member {
    package static let version = "__version__"
    package static let created = "__created__"
    package static let updated = "__updated__"
  }

  static func file(ofContent digest: BlobDigest) -> String {
    let hex = digest.hex
    return contents + hex.prefix(2) + "/" + hex
  }

  /// The content of a file; nil if it has none.
  static func content(in file: String) -> BlobDigest? {
    guard file.hasPrefix(contents), let name = file.split(separator: "/").last,
      let digest = BlobDigest(hex: String(name)), Self.file(ofContent: digest) == file
    else { return nil }
    return digest
  }
}

/// Why a dump cannot be written or loaded, and where.
package struct DumpError: Error, Sendable, CustomStringConvertible {
  package var file: String?
  /// Counted from one.
  package var line: Int?
  package var reason: String

  package init(_ reason: String, file: String? = nil, line: Int? = nil) {
    self.reason = reason
    self.file = file
    self.line = line
  }

  package var description: String {
    let place = [file, line.map { "line \($0)" }].compactMap(\.self).joined(separator: ", ")
    return place.isEmpty ? reason : "\(place): \(reason)"
  }
}

/// The progress of a dump or a load.
package struct DumpProgress: Sendable {
  package var documents = 0
  package var contents = 0
  package var contentBytes = 0
  /// The collections that had generated keys when the dump was made, and that are gone.
  package var lostKeys: [String] = []
}
