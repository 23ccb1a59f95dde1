// Some documents of a pattern, and which of them must be rewritten. Schemas and migrations rewrite
// a collection in such stretches. A stretch is no longer than one commit allows, and no longer than
// other reads from disk may wait for it.

internal import OndolEngine

/// Some documents after a key.
struct DocumentStretch: Sendable {
  /// Documents rewritten in one commit.
  private static let batchCount = 100
  /// Bytes of documents after which a commit is not made longer.
  private static let batchBytes = 1 << 20
  /// Documents checked together.
  private static let lookedAtTogether = 1_000

  /// Those that must be rewritten.
  private(set) var outdated: [DocumentPath] = []
  private(set) var count = 0
  /// The last key that was checked; nil at the end.
  private(set) var last: [UInt8]?

  /// A stretch without documents, at the end.
  init() {}

  /// The next documents of a pattern.
  ///
  /// - Parameters:
  ///   - through: the last key of the previous stretch; nil for the first.
  ///   - isOutdated: whether a document written by a commit of this version must be rewritten.
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
