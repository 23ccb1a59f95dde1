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
    let store = TestedStore(rawValue: name)
    precondition(store != nil, "no store is called \(name)")
    return store ?? .memory
  }()

  /// Whether the changes of commits can be read again.
  var keepsChanges: Bool { self == .memory }
}

extension Database {
  /// An empty database that nobody else has, on what the suites run on.
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
    }
  }
}
