// The server of the suite, in a process of its own: its memory is not the device's, and it has a
// processor of its own.

#if Server && Sync
  import BenchmarkKit
  import Foundation
  import Logging
  import Ondol
  import OndolServer

  /// A server's process.
  struct ServerProcess {
    private let process = Process()
    private let input = Pipe()
    /// Where it listens.
    let port: Int

    /// Starts this program as a server of the plan's documents.
    init(_ plan: SyncBenchmarks.Plan, in directory: String) throws {
      var plan = plan
      plan.role = .server
      let task = SuiteTask(engine: "Ondol", plan: plan, directory: directory)
      let output = Pipe()
      process.executableURL = Bundle.main.executableURL
      process.arguments = [
        "--child", String(decoding: try JSONEncoder().encode(task), as: UTF8.self),
      ]
      process.standardInput = input
      process.standardOutput = output
      try process.run()
      let words = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
      guard let port = Int(words.split(separator: "\n").first ?? "") else {
        throw ChildFailure(description: "the server did not become ready")
      }
      self.port = port
    }

    /// Ends it.
    func end() throws {
      try input.fileHandleForWriting.close()
      process.waitUntilExit()
      guard process.terminationStatus == 0 else {
        throw ChildFailure(description: "the server ended with \(process.terminationStatus)")
      }
    }

    /// The process's own side: serves until its input ends.
    static func run(_ task: SuiteTask<SyncBenchmarks.Plan>) async throws {
      // As `ondol serve` opens it: devices continue from where they were.
      let database = try await Database.open(
        at: "\(task.directory)/server",
        options: Database.Options(changeRetention: Database.ChangeRetention()))
      let documents = task.plan.documents
      for start in stride(from: 0, to: documents, by: 1_000) {
        let batch = database.batch()
        for number in start..<min(start + 1_000, documents) {
          try batch.setData(
            SyncTrial.fields(number), forDocument: database.document("items/d\(number)"))
        }
        try await batch.commit()
      }
      var options = Server.Options()
      options.firestorePort = 0
      options.logger = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
      let server = Server(database, options: options)
      let input = Thread {
        _ = try? FileHandle.standardInput.readToEnd()
        server.shutDown()
      }
      input.start()
      try await server.run { addresses in
        guard let port = addresses.firestore.split(separator: ":").last else { return }
        try? FileHandle.standardOutput.write(contentsOf: Data("\(port)\n".utf8))
      }
      try await database.close()
    }
  }
#endif
