// A database on a server. A command line names it by its address instead of a directory. Only a
// tool that was built with the trait Postgres can connect to one, because that requires libpq.

import Ondol
import OndolEngine

#if Postgres
  import OndolPostgres
#endif

/// An address such as postgresql://app@db.example.com/shop.
enum ServerAddress {
  /// Whether a word is an address and not a directory.
  static func isOne(_ word: String) -> Bool {
    word.hasPrefix("postgresql://") || word.hasPrefix("postgres://")
  }

  /// The part of an address that may be shown: everything except its passwords.
  static func name(of address: String) -> String {
    #if Postgres
      DatabaseStore.postgresName(address) ?? "postgresql://"
    #else
      "postgresql://"
    #endif
  }

  /// The store of a command's database; nil for a directory.
  ///
  /// - Parameter creates: whether to create the database if it does not exist.
  static func store(_ place: String, creates: Bool) throws(CommandFailure) -> DatabaseStore? {
    guard isOne(place) else { return nil }
    guard try DatabaseKey.current() == nil else {
      throw CommandFailure(
        .failed, "a database on a server takes no key: its disks are encrypted there, or not")
    }
    #if Postgres
      return .postgres(place, creates: creates)
    #else
      throw isOutOfReach
    #endif
  }

  static let isOutOfReach = CommandFailure(
    .failed,
    "this ondol cannot reach servers; `swift build --product ondol --traits Postgres` makes one"
      + " that can")

  #if Postgres
    /// Runs `body` with the operator's access to the server at an address.
    static func administrating<R: Sendable>(
      _ address: String,
      _ body: (PostgresAdministration) async throws(EngineError) -> R
    ) async throws(CommandFailure) -> R {
      do throws(EngineError) {
        return try await body(try PostgresAdministration(address))
      } catch {
        throw CommandFailure(DatabaseError(error))
      }
    }
  #endif
}
