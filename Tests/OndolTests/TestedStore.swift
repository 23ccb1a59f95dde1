// Where the suites keep their databases: in memory, or on a store, which ONDOL_STORE names. What
// people see of a database is the same on all of them, so the tests are.

import Foundation
import Ondol
import OndolEngine
import OndolTestKit

/// What the suites run on.
enum TestedStore: String {
  case memory, simulated

  static let current: TestedStore = {
    guard let name = ProcessInfo.processInfo.environment["ONDOL_STORE"] else { return .memory }
    guard let store = TestedStore(rawValue: name) else { fatalError("no store is called \(name)") }
    return store
  }()

  /// Whether the changes of commits can be read again.
  var keepsChanges: Bool { self == .memory }
}

extension Database {
  /// An empty database that nobody else has, on what the suites run on.
  static func underTest(options: Options = Options()) async throws(DatabaseError) -> Database {
    switch TestedStore.current {
    case .memory: return try await inMemory(options: options)
    case .simulated:
      var environment = Environment.memory()
      let store = SimulatedStore(seed: environment.random(), environment: environment)
      environment.store = { _ in store }
      return try await open(at: "/memory.ondol", options: options, environment: environment)
    }
  }
}
