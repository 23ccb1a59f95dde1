// The shared tools of the suites: a device that keeps a database over restarts, a clock that tests
// move, and a cheap scrypt that is counted.

import Ondol
import OndolAccounts
import OndolEngine
import OndolTestKit
import Testing

/// A device with accounts on it.
struct Trial: Sendable {
  /// Parameters of scrypt whose run takes microseconds.
  static let cheap = PasswordHashing(unchecked: 2, 1, 1)
  static let dearer = PasswordHashing(unchecked: 4, 1, 1)
  static let path = "people.ondol"
  static let password = "rattan lamp"

  let clock = ManualClock()
  let device: SimulatedDevice
  let runs = Runs()

  init(seed: UInt64 = 1) {
    device = SimulatedDevice(seed: seed, clock: clock)
  }

  /// Opens the database, as a starting process does.
  func database() async throws -> Database {
    try await Database.open(at: Self.path, on: device)
  }

  func accounts(
    in database: Database, _ hashing: PasswordHashing = cheap,
    _ change: (inout Accounts.Options) -> Void = { _ in }
  ) async throws -> Accounts {
    var options = Accounts.Options()
    options.hashing = hashing
    change(&options)
    return try await Accounts.open(in: database, options: options, derivation: runs.counted)
  }

  /// Returns all stored fields of all accounts' documents, as one text for searching.
  func stored(_ database: Database) async throws -> String {
    var text = ""
    let names = ["accounts", "accountSessions", "accountTries", "accountCodes", "accountSettings"]
    for name in names {
      for document in try await database.collection(name).getDocuments().documents {
        // As a value, whose fields have a fixed order.
        text += "\(document.documentID) \(Value.map(document.data()))\n"
      }
    }
    return text
  }
}

/// Counts scrypt's runs.
final class Runs: Sendable {
  private let made = Guarded<[PasswordHashing]>([])

  /// Returns the parameters of all runs since the last call.
  func take() -> [PasswordHashing] {
    made.withLock { made in
      defer { made = [] }
      return made
    }
  }

  var counted: KeyDerivation {
    KeyDerivation { [self] password, salt, hashing throws(AuthError) in
      made.withLock { $0.append(hashing) }
      return try KeyDerivation.scrypt.derive(password, salt, hashing)
    }
  }
}

/// The code of the error that `body` throws; nil if it throws none.
func code(_ body: () async throws -> Void) async -> AuthErrorCode? {
  do {
    try await body()
    return nil
  } catch {
    return (error as? AuthError)?.code
  }
}

/// The code of the database's error that `body` throws; nil if it throws none.
func databaseCode(_ body: () async throws -> Void) async -> DatabaseError.Code? {
  do {
    try await body()
    return nil
  } catch {
    return (error as? DatabaseError)?.code
  }
}
