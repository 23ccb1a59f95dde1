// Where a database is that is not in a directory of this machine. Nothing of it is here: a product
// of its own, such as OndolPostgres, makes one, and the engine below asks it.

internal import OndolEngine

/// What keeps a database in the place of a directory: a server that others operate, which several
/// processes use at once.
///
/// ```swift
/// import OndolPostgres
///
/// let database = try await Database.open(on: .postgres("postgresql://localhost/shop"))
/// ```
public struct DatabaseStore: Sendable {
  package let make: StoreMaker

  /// - Parameter make: connects to nothing yet; throws `.invalid` for an address that is none.
  package init(_ make: @escaping StoreMaker) {
    self.make = make
  }
}

extension Restoration {
  /// Begins a database on a store, which must have no commits yet.
  package static func begin(on store: DatabaseStore) async throws(DatabaseError) -> Restoration {
    try await begin(on: store.make, environment: .live())
  }
}
