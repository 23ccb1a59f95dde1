// What must hold of the object at a path for a call to change it. Looked at when the commit is
// prepared, so nobody can come in between.

/// What a call needs of the object at a path.
struct StorageCondition: Sendable, Hashable {
  /// Whether there must be an object; nil when it may be or not.
  var exists: Bool?
  /// The generation it must have; 0 when there must be none.
  var generation: Int64?
  /// The metageneration it must have.
  var metageneration: Int64?

  /// Throws unless it holds of the object's fields, nil when there is none.
  ///
  /// `.notFound` where there must be an object and is none, `.alreadyExists` where there must be
  /// none and is one, `.aborted` when another has come meanwhile.
  func check(_ fields: [String: Value]?, at path: String) throws(DatabaseError) {
    guard let fields, let found = StorageMetadata(path: path, fields, updated: .pending) else {
      if exists == true { throw Self.missing(path) }
      if let generation, generation != 0 {
        throw DatabaseError(
          .aborted, "the object has been deleted, and generation \(generation) was wanted",
          path: path)
      }
      return
    }
    if exists == false || generation == 0 {
      throw DatabaseError(.alreadyExists, "there is an object already", path: path)
    }
    if let generation, generation != found.generation {
      throw DatabaseError(
        .aborted,
        "the object has generation \(found.generation) and not \(generation): another put came"
          + " first", path: path)
    }
    if let metageneration, metageneration != found.metageneration {
      throw DatabaseError(
        .aborted,
        "the object has metageneration \(found.metageneration) and not \(metageneration): another"
          + " update came first", path: path)
    }
  }

  static func missing(_ path: String) -> DatabaseError {
    DatabaseError(.notFound, "there is no object at this path", path: path)
  }
}
