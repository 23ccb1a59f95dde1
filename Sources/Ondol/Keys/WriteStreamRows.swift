// Where streams of writes are recorded. A device numbers the groups of writes that it sends through
// a server, and sends those again that got no answer. The commit of a group also writes the record
// of its stream, so a group is committed once, whatever dies in between.
//
//   __writestreams__/ID
//     group    integer: the last group that is committed; the first is 1
//     ends     timestamp: when the record may be removed
//     names    bytes, for a device that names its groups: of each of the last ones its name, when
//              it was committed, and whether it was refused; if so also code and message. Earlier
//              builds wrote an array

internal import OndolEngine

/// How records of streams of writes are documents.
enum WriteStreamRows {
  /// The root collection. Apps cannot name it: names of this form are reserved.
  static let root = "__writestreams__"
  static let pattern = CollectionPattern([root])

  static func document(_ stream: String) -> DocumentPath {
    DocumentPath(unchecked: [root, stream])
  }

  /// The names of the fields.
  enum Field {
    static let group = "group"
    static let ends = "ends"
    static let names = "names"
  }
}
