// Where a database is that is not in a directory of this machine. Nothing of it is here: a product
// of its own, such as OndolPostgres, makes one, and the engine below asks it.

package import OndolEngine

/// What keeps a database in the place of a directory: a server that others operate, which several
/// processes use at once.
///
/// ```swift
/// import OndolPostgres
///
/// let database = try await Database.open(on: .postgres("postgresql://localhost/shop"))
/// ```
public struct DatabaseStore: Sendable {
  package let make: @Sendable () throws(EngineError) -> any RemoteStore

  /// - Parameter make: connects to nothing yet; throws `.invalid` for an address that is none.
  package init(_ make: @escaping @Sendable () throws(EngineError) -> any RemoteStore) {
    self.make = make
  }
}
