// Finds the indexes by child that a write affects: those of the nodes above its place, in which a
// child may move, and those at its place and below, whose rows are rebuilt. All others are left
// alone, however many are declared. Part of stage 2 of the write path.

internal import OndolEngine

/// Finds declared indexes by place.
struct TreeIndexLookup {
  /// With more places than this, all declarations are read at once instead of a few rows for each.
  private static let fewPlaces = 16

  private let rows: Rows
  /// Whether no index is declared at all; nil until this was checked.
  private var isNone: Bool?
  /// All declared indexes, in the order of their rows' keys, once they were read.
  private var all: [(key: [UInt8], index: TreeIndexDefinition)]?
  /// The indexes of nodes that were asked for, by the nodes' keys.
  private var known: [[UInt8]: [TreeIndexDefinition]] = [:]

  init(_ rows: Rows) {
    self.rows = rows
  }

  /// Announces that the indexes of that many places will be requested.
  mutating func expect(places: Int) throws(DatabaseError) {
    guard places > Self.fewPlaces, all == nil, try !findsNone() else { return }
    all = try TreeIndexDefinition.all(in: rows).map { ($0.declarationKey, $0) }
  }

  /// The indexes of the nodes above a place.
  mutating func above(_ path: TreePath) throws(DatabaseError) -> [TreeIndexDefinition] {
    guard try !findsNone() else { return [] }
    var found: [TreeIndexDefinition] = []
    for node in path.ancestorKeys {
      if let known = known[node] {
        found += known
        continue
      }
      let indexes = try find(in: TreeIndexDefinition.declarations(of: node))
      known[node] = indexes
      found += indexes
    }
    return found
  }

  /// The indexes of a place and of the nodes below it.
  mutating func within(_ path: TreePath) throws(DatabaseError) -> [TreeIndexDefinition] {
    guard try !findsNone() else { return [] }
    return try find(in: TreeIndexDefinition.declarations(within: path.rowKey))
  }

  private mutating func findsNone() throws(DatabaseError) -> Bool {
    if let isNone { return isNone }
    var walk = RangeWalk(rows, [TreeIndexDefinition.range])
    let isNone = try !walk.next()
    self.isNone = isNone
    return isNone
  }

  private func find(in range: KeyRange) throws(DatabaseError) -> [TreeIndexDefinition] {
    guard let all else { return try TreeIndexDefinition.all(declaredIn: range, rows) }
    let start = all.partition { TreeKey.compare($0.key, range.lower) < 0 }
    return all[start...].prefix { TreeKey.compare($0.key, range.upper) < 0 }.map(\.index)
  }
}
