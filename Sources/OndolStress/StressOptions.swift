// The options of all suites.

import ArgumentParser
import OndolTestKit

struct StressOptions: ParsableArguments {
  @Option(help: "The seed that the units' seeds follow from; by default random.")
  var seed: UInt64?

  @Option(help: "Only run the unit with this seed.")
  var replay: UInt64?

  @Option(help: "The number of concurrent units.")
  var jobs = 2

  func validate() throws {
    guard jobs > 0 else { throw ValidationError("--jobs must be at least 1") }
  }
}

/// The part that crashes.
enum Floor: String, ExpressibleByArgument, CaseIterable {
  /// Rows of the engine.
  case engine
  /// Documents, indexes and transactions.
  case documents
  /// Blobs: put, referred to, replaced, deleted, reclaimed.
  case blobs
  /// Rows of the engine, some of them in groups with keys of their own, which come and go.
  case keyed
  /// The same while all keys are replaced and a follower reads.
  case rekeyed

  var open: OpenSubject {
    switch self {
    case .engine: { try await EngineSubject.open($0, $1) }
    case .documents: { try await DocumentSubject.open($0, $1) }
    case .blobs: { try await BlobSubject.open($0, $1) }
    case .keyed: KeyedSubject.opening()
    case .rekeyed: KeyedSubject.openingToChangeKeys()
    }
  }
}
