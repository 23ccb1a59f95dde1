// Looks up the stored documents of a batch's writes before the batch is derived. A row that must
// come from disk ends a derivation, which then starts again on another thread. Among a thousand new
// documents there is nearly always one whose key a filter mistakes for an existing one. Here such a
// row delays only itself.

internal import OndolEngine

/// The rows of the documents of some writes, in the same order.
struct StoredRows: Sendable {
  /// The documents' keys; empty when a collection is new.
  private let keys: [[UInt8]]
  private var rows: [[UInt8]?]
  /// The places of the rows that must still be looked up.
  private(set) var missing: [Int]

  init(of writes: [DocumentWrite], in rows: Rows) throws(DatabaseError) {
    var keys: [[UInt8]] = []
    keys.reserveCapacity(writes.count)
    var last: (collection: CollectionPath, prefix: [UInt8]?)?
    for write in writes {
      if last.map({ !write.path.isDirectly(in: $0.collection) }) ?? true {
        let collection = write.path.collection
        let entry = try rows.entry(of: CollectionPattern(collection))
        last = (
          collection,
          entry.map { DocumentKey.prefix($0.keyspace, ancestors: collection.ancestorIDs) }
        )
      }
      keys.append(
        last?.prefix.map { DocumentKey.key(prefix: $0, id: write.path.documentID) } ?? [])
    }
    self.keys = keys
    self.rows = Array(repeating: nil, count: keys.count)
    missing = keys.indices.filter { !keys[$0].isEmpty }
  }

  /// The row of a write's document, nil when there is none; and its key, empty when its collection
  /// is new.
  subscript(place: Int) -> (key: [UInt8], row: [UInt8]?) { (keys[place], rows[place]) }

  /// Looks up the missing rows. If `rows` may not block, rows that must come from disk stay
  /// missing.
  mutating func lookUp(in rows: Rows) throws(DatabaseError) {
    if rows.mayBlock { return try lookUpAll(in: rows) }
    var left: [Int] = []
    for place in missing {
      let key = keys[place]
      var row: [UInt8]?
      let isFound = try rethrowing { () throws(EngineError) in
        try rows.snapshot.withValue(of: key.bytes, mayBlock: false) { row = $0.array }
      }
      if isFound == nil { left.append(place) } else { self.rows[place] = row }
    }
    missing = left
  }

  private mutating func lookUpAll(in rows: Rows) throws(DatabaseError) {
    let keys = missing.map { self.keys[$0] }
    for start in stride(from: 0, to: keys.count, by: Rows.rowsOfStep) {
      let places = start..<min(start + Rows.rowsOfStep, keys.count)
      try rows.step()
      var found: [(place: Int, row: [UInt8])] = []
      _ = try rethrowing { () throws(EngineError) in
        try rows.snapshot.withValues(of: keys, at: places, mayBlock: true) {
          found.append(($0, $1.array))
        }
      }
      for (place, row) in found { self.rows[missing[place]] = row }
    }
    missing = []
  }
}

extension Database {
  /// The rows of the writes' documents; nil for a single write, which would gain nothing.
  func storedRows(
    of writes: [DocumentWrite], in snapshot: Snapshot
  ) async throws(DatabaseError) -> StoredRows? {
    guard writes.count > 1 else { return nil }
    var stored = try await read(snapshot) { (rows) throws(DatabaseError) in
      try StoredRows(of: writes, in: rows)
    }
    try stored.lookUp(in: Rows(snapshot, catalog, mayBlock: false))
    if stored.missing.isEmpty { return stored }
    return try await snapshot.readInTurns(failingWith: { DatabaseError($0) }) {
      [stored, catalog] (turn) throws(DatabaseError) in
      var stored = stored
      try stored.lookUp(in: Rows(snapshot, catalog, mayBlock: true, turn: turn))
      return stored
    }
  }
}
