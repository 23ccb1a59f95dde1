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
package struct DatabaseStore: Sendable {
  package let store: any RemoteStore

  package init(_ store: any RemoteStore) {
    self.store = store
  }
}
