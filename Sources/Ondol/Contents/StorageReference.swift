// The location of an object or a folder. A location needs no creation: an object exists once bytes
// are put, and a folder while there are objects below it. Paths work as in Firebase Storage.

/// A location in storage: an object's, a folder's, or both.
public struct StorageReference: Sendable {
  /// The database that the location is in.
  public let database: Database
  /// The path from the root, without leading, trailing or repeated `/`; empty for the root.
  public let fullPath: String

  /// - Parameter path: in its normal form.
  init(database: Database, path: String) {
    self.database = database
    fullPath = path
  }

  /// The last name of the path; empty for the root.
  public var name: String { StoragePath.name(of: fullPath) }

  /// The storage that this location is in.
  public var storage: Storage { database.storage }

  /// A location below this one.
  ///
  /// - Parameter path: one name or several with `/` between. Leading, trailing and repeated `/` are
  ///   ignored.
  public func child(_ path: String) -> StorageReference {
    StorageReference(database: database, path: StoragePath.child(path, of: fullPath))
  }

  /// The folder that this location is in; nil for the root.
  public func parent() -> StorageReference? {
    StoragePath.parent(of: fullPath).map { StorageReference(database: database, path: $0) }
  }

  /// The root.
  public func root() -> StorageReference { StorageReference(database: database, path: "") }

  /// The document of the object at this location.
  ///
  /// Throws `.invalidArgument` when there can be no object here.
  func document() throws(DatabaseError) -> DocumentPath {
    if let problem = StoragePath.problem(with: fullPath) {
      throw DatabaseError(
        .invalidArgument, "\"\(fullPath)\" is not an object's path: \(problem)", path: fullPath)
    }
    return StorageRows.document(at: fullPath)
  }

  /// Throws `.invalidArgument` when there can be no folder here.
  func checkFolder() throws(DatabaseError) {
    if fullPath.isEmpty { return }
    _ = try document()
  }
}

extension StorageReference: Hashable {
  /// Whether both are the same location in the same database.
  public static func == (left: StorageReference, right: StorageReference) -> Bool {
    left.database === right.database
      && ValueOrder.compare(left.fullPath, right.fullPath) == 0
  }

  /// Hashes the path.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(fullPath)
  }
}

extension StorageReference: CustomStringConvertible {
  /// The path.
  public var description: String { fullPath }
}
