// Some documents of a pattern, and which of them are to be written anew: what schemas and
// migrations rewrite goes over a collection in such stretches, each as long as a commit may be and
// as others may wait who must read from disk, too.

internal import OndolEngine

/// Some documents behind a key.
struct DocumentStretch: Sendable {
  /// Documents rewritten in one commit.
  private static let batchCount = 100
  /// Bytes of documents after which a commit is not made longer.
  private static let batchBytes = 1 << 20
  /// Documents looked at together.
  private static let lookedAtTogether = 1_000

  /// Those that are to be rewritten.
  private(set) var outdated: [DocumentPath] = []
  private(set) var count = 0
  /// The last key looked at; nil at the end.
  private(set) var last: [UInt8]?

  /// A stretch without documents, at the end.
  init() {}

  /// The next documents of a pattern.
  ///
  /// - Parameters:
  ///   - through: the last key of the stretch before; nil for the first.
  ///   - isOutdated: whether a document that a commit of this version wrote is to be rewritten.
  init(
    of pattern: CollectionPattern, _ entry: CollectionEntry, behind through: [UInt8]?,
    in rows: Rows, where isOutdated: (Version) -> Bool
  ) throws(DatabaseError) {
    var range = KeyRange(prefix: entry.keyspace.prefix)
    if let through { range.lower = through + [0] }
    let naming = DocumentNaming(pattern, entry.keyspace, collection: nil)
    var bytes = 0
    var walk = RangeWalk(rows, [range])
    while try walk.next() {
      let key = walk.cursor.key
      let row = try walk.value
      let view = try DocumentShaper.view(row, key, naming)
      count += 1
      if isOutdated(Version(rawValue: view.version.rawValue)) {
        outdated.append(try naming.path(of: key))
        bytes += row.byteCount
      }
      if outdated.count == Self.batchCount || bytes >= Self.batchBytes
        || count == Self.lookedAtTogether
      {
        last = key.array
        break
      }
    }
  }
}
