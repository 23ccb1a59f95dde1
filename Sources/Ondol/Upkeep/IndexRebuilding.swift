// Rebuilds indexes, for the tool: it drops an index and declares it again, so that its rows are
// made from the documents like those of a new one.

internal import OndolEngine

extension Database {
  /// Rebuilds indexes of the collection's pattern; returns the names of the rebuilt ones.
  ///
  /// - Parameter names: which; nil for all.
  /// - Throws: as `CollectionReference.createIndex`; then the index is gone, or is finished when
  ///   the database is opened.
  package func rebuildIndexes(
    of path: CollectionPath, named names: [String]?, progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) -> [String] {
    let pattern = CollectionPattern(path)
    let indexes = try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      let entry = try rows.entry(of: pattern)
      return (entry?.indexes ?? []) + (entry?.searches ?? [])
    }
    let wanted = names.map { Set($0.map { ExactText($0) }) }
    var built: [String] = []
    for index in indexes where wanted?.contains(ExactText(index.name)) ?? true {
      try await dropIndex(index.keyspace, of: pattern)
      try await createIndex(index.kind, of: pattern, progress)
      built.append(index.name)
    }
    return built
  }

  /// Rebuilds an index of a group; returns whether there is one with the name.
  ///
  /// - Throws: as `CollectionGroup.createIndex`; then the index is gone, or is finished when the
  ///   database is opened.
  package func rebuildIndex(
    ofGroup id: String, named name: String, progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) -> Bool {
    var found: IndexKind?
    try await changeGroup(id) { kinds in
      found = kinds.first { ExactText($0.name) == ExactText(name) }
    }
    guard let found else { return false }
    try await collectionGroup(id).dropIndex(named: name)
    try await changeGroup(id) { kinds in
      if !kinds.contains(found) { kinds.append(found) }
    }
    try await buildGroupIndex(found, of: id, progress)
    return true
  }
}
