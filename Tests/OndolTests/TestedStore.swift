// The place of the suites' databases: in memory, or on a store, which ONDOL_STORE names. A database
// looks the same on all of them, so the tests are the same.

import Foundation
import Ondol
import OndolEngine
import OndolPostgres
import OndolPostgresTestKit
import OndolTestKit
import Synchronization

/// The place that the suites run on.
enum TestedStore: String {
  case memory, simulated, postgres

  static let current: TestedStore = {
    guard let name = ProcessInfo.processInfo.environment["ONDOL_STORE"] else { return .memory }
    let store = TestedStore(rawValue: name)
    precondition(store != nil, "no store is called \(name)")
    return store ?? .memory
  }()

  private static let number = Atomic(0)

  /// The address of a PostgreSQL database that nobody has opened yet.
  static func newAddress() throws(DatabaseError) -> String {
    switch PostgresServer.shared {
    case .success(let server):
      return server.address("test\(number.add(1, ordering: .relaxed).newValue)")
    case .failure(let failure): throw DatabaseError(.unavailable, "\(failure)")
    }
  }

  /// Whether only conflicts make a transaction's body run again. On a server, reads that must be
  /// fetched do so as well.
  var repeatsForConflictsAlone: Bool { self != .postgres }
}

extension Database {
  /// An empty database that nobody else has, on the place that the suites run on.
  static func underTest(options: Options = Options()) async throws(DatabaseError) -> Database {
    switch TestedStore.current {
    case .memory:
      var options = options
      if TestedEncryption.isOn { options.encryption = .key(TestedEncryption.key) }
      return try await inMemory(options: options)
    case .simulated:
      let environment = Environment.memory()
      let store = SimulatedStore(seed: environment.random(), environment: environment)
      return try await open(
        at: store.name, options: options, environment: environment, on: store)
    case .postgres:
      return try await open(on: .postgres(TestedStore.newAddress()), options: options)
    }
  }
}
