// GRDB's observations, each of one query by an indexed column. Every commit to the table makes each
// of them fetch again, so there are a thousand at most, and few deliveries beside them are timed.

#if PEER_GRDB
  import BenchmarkKit
  import Foundation
  import GRDB

  enum GRDBListeners: ObservedEngine {
    static let name = "GRDB"

    static func measure(
      _ workload: Workload, _ plan: Plan, in directory: String
    ) async throws -> Figure? {
      switch workload {
      case .writeBeside1000: Figure(try ratio(plan, directory))
      case .delivery: try await delivery(beside: 0, times: plan.deliveries, directory)
      case .deliveryBeside1000:
        try await delivery(beside: 999, times: plan.slowDeliveries, directory)
      case .writeBeside100000, .deliveryBeside100000, .besideWriter, .identical, .largeResult,
        .idle:
        nil
      }
    }

    private static func open(_ directory: String) throws -> DatabasePool {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true)
      var configuration = Configuration()
      configuration.prepareDatabase { database in
        try database.execute(sql: "PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;")
      }
      let pool = try DatabasePool(path: directory + "/data.sqlite", configuration: configuration)
      try pool.write { database in
        try database.execute(
          sql: """
            CREATE TABLE orders(
              id TEXT NOT NULL PRIMARY KEY, user INTEGER, price REAL, status TEXT, note TEXT);
            CREATE INDEX users ON orders(user);
            CREATE INDEX prices ON orders(price);
            """)
      }
      return pool
    }

    private static func write(_ number: Int, user: Int? = nil, to pool: DatabasePool) throws {
      try pool.write { database in
        try database.cachedStatement(
          sql: "INSERT OR REPLACE INTO orders VALUES (?, ?, ?, 'open', ?)"
        ).execute(arguments: [
          "d\(number % 5_000)", user ?? -1 - number % 1_000, -Double(number),
          "delivered to the door, with a signature",
        ])
      }
    }

    /// Observations of one user each. Nothing is written for these users.
    private static func observe(_ count: Int, in pool: DatabasePool) -> [AnyDatabaseCancellable] {
      (0..<count).map { (user: Int) in
        ValueObservation.tracking { database in
          try Int.fetchOne(
            database, sql: "SELECT COUNT(*) FROM orders WHERE user = ?", arguments: [user])
        }.start(
          in: pool, scheduling: .async(onQueue: .global()), onError: { _ in }, onChange: { _ in })
      }
    }

    private static func ratio(_ plan: Plan, _ directory: String) throws -> Double {
      let pools = [try open(directory + "/alone"), try open(directory + "/beside")]
      let observations = observe(1_000, in: pools[1])
      let clock = ContinuousClock()
      var times: [[Double]] = [[], []]
      for group in 0..<5 {
        for side in [0, 1] {
          let start = clock.now
          for number in 0..<20 { try write(group * 20 + number, to: pools[side]) }
          times[side].append((clock.now - start).microseconds)
        }
      }
      return withExtendedLifetime(observations) { median(times[1]) / median(times[0]) }
    }

    /// Times from the call of a write to the listener that has its value.
    private static func delivery(
      beside count: Int, times deliveries: Int, _ directory: String
    ) async throws -> Figure? {
      let pool = try open(directory)
      let others = observe(count, in: pool)
      let observation = ValueObservation.tracking { database in
        try Int.fetchOne(
          database, sql: "SELECT COUNT(*) FROM orders WHERE user = -7") ?? 0
      }
      var values = observation.values(in: pool).makeAsyncIterator()
      _ = try await values.next()
      let clock = ContinuousClock()
      var times: [Double] = []
      for number in 0..<deliveries {
        let start = clock.now
        async let written: Void = write(number, user: -7, to: pool)
        // The first value may come twice, and is not the written one.
        while let value = try await values.next(), value != number + 1 {}
        times.append((clock.now - start).microseconds)
        try await written
      }
      return withExtendedLifetime(others) { Figure(microseconds: times) }
    }
  }
#endif
