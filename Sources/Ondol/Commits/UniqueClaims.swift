// Unique indexes on the write path: which values the documents of a commit claim, which they
// release, and whether another document holds one of them. A unique row's key is the values alone,
// so a second document with the same values would write the same row. The row is read in the
// commit's snapshot and guarded: of two concurrent commits that claim the same values, one is
// refused, derives again, and finds the other's row.
//
// A transaction that reads after a write may be in the middle of swapping two values. Its rows of
// the index are then invalid. This is recorded instead of thrown, and its queries do not use the
// index.

internal import OndolEngine

/// The unique rows that one commit changes.
struct UniqueClaims {
  fileprivate struct Claim {
    var row: IndexRow
    var path: DocumentPath
    var index: IndexDefinition
  }

  private var taken: [[UInt8]: Claim] = [:]
  private var released: Set<[UInt8]> = []
  private let mayConflict: Bool
  /// Indexes whose rows are invalid, because documents claim the same values or values are unknown.
  private(set) var unsettled: Set<Keyspace> = []

  /// - Parameter mayConflict: whether conflicts are recorded in `unsettled` instead of thrown.
  init(mayConflict: Bool = false) {
    self.mayConflict = mayConflict
  }

  /// Adds a document's changes of an index to the batch; unique rows are kept back until `put` or
  /// `settle`.
  ///
  /// Throws `.alreadyExists` when another document of the commit claims the same values, and
  /// `.invalidArgument` when values cannot be unique.
  mutating func apply(
    _ changes: IndexChanges, of index: IndexDefinition, for path: @autoclosure () -> DocumentPath,
    to batch: inout Batch
  ) throws(DatabaseError) {
    guard index.kind.isUnique else {
      for key in changes.deleted { batch.delete(key.bytes) }
      for row in changes.put { batch.put(row) }
      return
    }
    let path = path()
    released.formUnion(changes.deleted)
    for row in changes.put {
      guard !row.value.isEmpty else {
        batch.put(row)
        continue
      }
      do throws(DatabaseError) {
        try check(row, index)
        if let other = taken[row.key], other.path != path {
          throw Self.conflict(index, holder: other.path)
        }
      } catch {
        try refuse(error, index)
        continue
      }
      taken[row.key] = Claim(row: row, path: path, index: index)
    }
  }

  private mutating func refuse(
    _ error: DatabaseError, _ index: IndexDefinition
  ) throws(DatabaseError) {
    guard mayConflict else { throw error }
    unsettled.insert(index.keyspace)
  }

  private func check(_ row: IndexRow, _ index: IndexDefinition) throws(DatabaseError) {
    let field = WriteCompiler.describe(index.fields[0].names)
    guard row.stamps.isEmpty else {
      throw DatabaseError(
        .invalidArgument,
        "the index '\(index.name)' is unique, and a server timestamp in it is not known before the"
          + " commit", field: field)
    }
    guard !row.isCut else {
      throw DatabaseError(
        .invalidArgument,
        "the index '\(index.name)' is unique, and values in it may have about"
          + " \(KeyCoding.maximumComponentLength) bytes", field: field)
    }
  }

  /// Values of the commit that another document holds and does not release in this commit.
  struct Conflict {
    var holder: DocumentPath
    fileprivate var index: IndexDefinition
    fileprivate var error: DatabaseError
  }

  /// Finds the holders of the values that the commit claims.
  func conflicts(in rows: Rows) throws(DatabaseError) -> [Conflict] {
    var conflicts: [Conflict] = []
    for (key, claim) in taken where !released.contains(key) {
      guard let row = try rows.row(key), row != claim.row.value else { continue }
      let holder = try claim.neighbour(row)
      conflicts.append(
        Conflict(
          holder: holder, index: claim.index,
          error: Self.conflict(claim.index, holder: holder).at(path: "\(claim.path)")))
    }
    return conflicts
  }

  /// Throws `.alreadyExists`, naming the holder, or records the conflict when conflicts are
  /// allowed.
  mutating func refuse(_ conflict: Conflict) throws(DatabaseError) {
    try refuse(conflict.error, conflict.index)
  }

  /// Adds the unique rows to the batch. Call it when conflicts have been handled.
  func put(into batch: inout Batch) {
    for key in released where taken[key] == nil { batch.delete(key.bytes) }
    for (key, claim) in taken {
      batch.guardUnchanged(key.bytes)
      batch.put(key.bytes, claim.row.value.bytes)
    }
  }

  /// Adds the unique rows to the batch.
  ///
  /// Throws `.alreadyExists`, naming the holder, when another document has the same values.
  mutating func settle(into batch: inout Batch, _ rows: Rows) throws(DatabaseError) {
    for conflict in try conflicts(in: rows) { try refuse(conflict) }
    put(into: &batch)
  }

  private static func conflict(
    _ index: IndexDefinition, holder: DocumentPath
  ) -> DatabaseError {
    DatabaseError(
      .alreadyExists,
      "\(holder) has the same \(index.fields.map(\.description).joined(separator: ", ")), which is"
        + " unique; change it here or there",
      field: WriteCompiler.describe(index.fields[0].names))
  }
}

extension UniqueClaims.Claim {
  /// The document of the same collection to which this row belongs.
  fileprivate func neighbour(_ value: [UInt8]) throws(DatabaseError) -> DocumentPath {
    do throws(MalformedBytes) {
      var reader = KeyReader(value.bytes)
      return DocumentPath(unchecked: path.collection.segments + [try reader.id()])
    } catch {
      throw DatabaseError(
        .dataLoss, "a row of the index '\(index.name)' is damaged: \(error.reason)")
    }
  }
}
