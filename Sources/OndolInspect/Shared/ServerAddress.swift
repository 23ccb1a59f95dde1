// A database on a server, which a command line names by its address in the place of a directory.
// Only a tool that was built with the trait Postgres can reach one: that one needs libpq.

import Ondol
import OndolEngine

#if Postgres
  import OndolPostgres
#endif

/// An address such as postgresql://app@db.example.com/shop.
enum ServerAddress {
  /// Whether a word is one, and no directory.
  static func isOne(_ word: String) -> Bool {
    word.hasPrefix("postgresql://") || word.hasPrefix("postgres://")
  }

  /// What of an address may be shown: all but its passwords.
  static func name(of address: String) -> String {
    #if Postgres
      DatabaseStore.postgresName(address) ?? "postgresql://"
    #else
      "postgresql://"
    #endif
  }

  /// Where a command's database is kept: nil for a directory.
  ///
  /// - Parameter creates: whether a database is made where there is none.
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
    /// Runs `body` with what an operator does to the server at an address.
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
