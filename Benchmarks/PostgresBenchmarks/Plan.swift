// The rows of the PostgreSQL suite, and the amount of work for each.

import BenchmarkKit
import Peers

enum Workload: String, SuiteWorkload {
  /// Gets of documents that were read before.
  case getWarm = "get warm"
  /// Gets from a database that was just opened.
  case getCold = "get cold"
  /// Queries for twenty documents by an index, each for others, from a database that was just
  /// opened.
  case queryCold = "query cold"
  /// The largest number of round trips of such a query.
  case queryTrips = "query cold, round trips"
  /// Writes that survive a power cut, one after another.
  case write = "single write"
  /// The same from many tasks or threads of one process.
  case writers = "64 writers"
  /// The same from processes with one writer each.
  case loneWriters = "16 lone writers"
  case over4 = "16 lone writers, 4 databases"
  case over16 = "16 lone writers, 16 databases"
  /// From the start of a write to a listener in another process: the time that all except a
  /// twentieth did not exceed.
  case delivery

  static let rates: [Workload] = [.writers, .loneWriters, .over4, .over16]

  var unit: String {
    switch self {
    case .getWarm, .getCold, .queryCold, .write: "µs"
    case .queryTrips: "trips"
    case .delivery: "ms, p95"
    case .writers, .loneWriters, .over4, .over16: "writes/s"
    }
  }

  var lowerIsBetter: Bool { !Self.rates.contains(self) }

  var goal: Double? {
    switch self {
    case .queryTrips: 3
    case .delivery: 20
    default: nil
    }
  }
}

/// The task of a process beside the one that measures.
enum Role: Codable {
  /// Writes to the database with this number until it is stopped.
  case writer(number: Int, database: Int)
  case listener
}

struct Plan: Codable {
  static let cacheBytes = 1 << 30
  static let documentsPerBatch = 500
  static let writers = 64
  static let loneWriters = 16
  /// The pause between two writes that a listener waits for.
  static let pause = Duration.milliseconds(15)
  /// The time without a request to the server after which nothing runs in the background.
  static let rest = Duration.milliseconds(300)

  var documents: Int
  var workloads: [Workload]
  var quick: Bool
  var passes = 5
  /// Nil for the process that measures.
  var role: Role?
  /// The server's place, for processes with a role.
  var server = ""

  var gets: Int { min(quick ? 1_000 : 2_000, documents) }
  var queries: Int { Record.categories }
  var writes: Int { quick ? 500 : 2_000 }
  var deliveries: Int { quick ? 100 : 400 }
  /// The duration of concurrent writes.
  var duration: Duration { .seconds(quick ? 3 : 5) }
}
