// What must hold for the object at a path before a call changes it. Preparing the commit checks it,
// so no other write can come in between.

/// A call's condition on the object at a path.
struct StorageCondition: Sendable, Hashable {
  /// Whether an object must exist; nil when it may or may not.
  var exists: Bool?
  /// The generation the object must have; 0 when there must be no object.
  var generation: Int64?
  /// The metageneration the object must have.
  var metageneration: Int64?

  static func missing(_ path: String) -> DatabaseError {
    DatabaseError(.notFound, "there is no object at this path", path: path)
  }
}
