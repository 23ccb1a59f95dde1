// Where a database is kept when it is not in a directory of this machine. The implementation is
// elsewhere: a separate product, such as OndolPostgres, makes a store, and the engine uses it.

internal import OndolEngine

/// A place that keeps a database instead of a directory: a server, operated separately, which
/// several processes use at once.
///
/// ```swift
/// import OndolPostgres
///
/// let database = try await Database.open(on: .postgres("postgresql://localhost/shop"))
/// ```
public struct DatabaseStore: Sendable {
  package let make: StoreMaker

  /// - Parameter make: does not connect to anything yet; throws `.invalid` for an invalid address.
  package init(_ make: @escaping StoreMaker) {
    self.make = make
  }
}

extension Restoration {
  /// Begins a database on a store, which must not have any commits yet.
  package static func begin(on store: DatabaseStore) async throws(DatabaseError) -> Restoration {
    try await begin(on: store.make, environment: .live())
  }
}
