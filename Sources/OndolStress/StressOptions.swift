// What all suites can be told.

import ArgumentParser
import OndolTestKit

struct StressOptions: ParsableArguments {
  @Option(help: "The seed from which the units' seeds follow; drawn when not given.")
  var seed: UInt64?

  @Option(help: "Run one unit only: the one with this seed.")
  var replay: UInt64?

  @Option(help: "Units at a time.")
  var jobs = 2

  func validate() throws {
    guard jobs > 0 else { throw ValidationError("--jobs takes a number from 1 on") }
  }
}

/// What is crashed.
enum Floor: String, ExpressibleByArgument, CaseIterable {
  /// Rows of the engine.
  case engine
  /// Documents, indexes and transactions.
  case documents
  /// Blobs: put, referred to, replaced, deleted, reclaimed.
  case blobs
  /// Rows of the engine, some in groups with keys of their own, which come and go.
  case keyed
  /// The same while all keys become others, and somebody follows.
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
