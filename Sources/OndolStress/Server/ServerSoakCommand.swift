// `server-soak`: overwrites the documents of a database on a PostgreSQL again and again, and
// watches the size of its tables. Versions that nobody can see must go as fast as new ones come.

#if Postgres
  import ArgumentParser
  import Foundation
  import Ondol
  import OndolPostgres
  import OndolPostgresTestKit
  import OndolTerminal
  import OndolTestKit

  struct ServerSoakCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "server-soak",
      abstract: "Overwrites documents on a server, and watches the size of its tables.",
      discussion: """
        The server has the settings that it comes with, so it clears tables up as it sees fit. \
        Status 1 when the tables are larger in the last quarter than in the second one, by more \
        than a tenth.
        """)

    @Option(help: "The duration in minutes.")
    var minutes = 10.0

    @Option(help: "The constant number of documents.")
    var documents = 5_000

    @Option(help: "The number of writing tasks.")
    var writers = 8

    func validate() throws {
      guard minutes > 0, minutes.isFinite, documents > 0, writers > 0 else {
        throw ValidationError("--minutes, --documents and --writers must be above 0")
      }
    }

    func run() async throws {
      let server = try PostgresServer()
      let database = try await Database.open(on: .postgres(server.address("soak")))
      let start = ContinuousClock.now
      let duration = Duration.seconds(minutes * 60)
      let counts = try await withThrowingTaskGroup(of: Int.self) { tasks in
        for writer in 0..<writers {
          tasks.addTask {
            try await overwrite(
              database, SeededRandom(seed: UInt64(writer)), until: start + duration)
          }
        }
        var sizes: [Int] = []
        let steps = 40
        for step in 1...steps {
          try await Task.sleep(until: start + duration * step / steps, clock: .continuous)
          sizes.append(try Self.tableSize(server))
          Console.say("server-soak: \(sizes[step - 1] >> 10) KiB of tables")
        }
        let written = try await tasks.reduce(0, +)
        return (sizes, written)
      }
      try await database.close()
      try report(counts.0, written: counts.1)
    }

    /// Returns the number of overwritten documents.
    private func overwrite(
      _ database: Database, _ random: SeededRandom, until end: ContinuousClock.Instant
    ) async throws -> Int {
      var random = random
      let items = database.collection("items")
      var count = 0
      while ContinuousClock.now < end {
        try await items.document("\(random.below(documents))").setData([
          "count": count, "text": String(repeating: "온돌", count: 30),
        ])
        count += 1
      }
      return count
    }

    /// The bytes of all tables, with their indexes and out-of-line storage.
    private static func tableSize(_ server: PostgresServer) throws -> Int {
      let text = try server.sql(
        """
        select sum(pg_total_relation_size(oid)) from pg_class
          where relkind = 'r' and relname like 'ondol!_%' escape '!'
        """)
      guard let size = Int(text) else { throw BrokenInvariant("no size of tables: \(text)") }
      return size
    }

    private func report(_ sizes: [Int], written: Int) throws {
      let early = sizes[sizes.count / 4..<sizes.count / 2].max() ?? 0
      let late = sizes[(3 * sizes.count / 4)...].max() ?? 0
      let isFlat = late <= early + early / 10
      print(
        "server-soak: \(written) overwrites of \(documents) documents, tables of \(early >> 10) KiB"
          + " early and \(late >> 10) KiB late: \(isFlat ? "flat" : "they grow")")
      if !isFlat { throw ExitCode(1) }
    }
  }
#endif
