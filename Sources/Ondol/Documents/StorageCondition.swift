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

  static func missing(_ path: String) -> DatabaseError {
    DatabaseError(.notFound, "there is no object at this path", path: path)
  }
}
