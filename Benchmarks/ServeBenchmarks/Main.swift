// The serve suite: the cost of a call of Firestore's protocol compared with an empty call of the
// same gRPC stack, the time from a write to a stream beside many others, and the memory of a
// stream. Server and client are in one process. Compared workloads are measured in turns, a little
// of each at a time, and the report shows the medians of all turns. `Scripts/bench --suite serve`
// builds it.

#if Server
  import ArgumentParser
  import BenchmarkKit
  import Foundation
  import GRPCCore
  import GRPCNIOTransportHTTP2Posix
  import GRPCProtobuf
  import Logging
  import Ondol
  import OndolServer
  import OndolWire
  import SwiftProtobuf
  import Synchronization

  @main
  struct ServeBenchmarks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "bench --suite serve", abstract: "Times the server for Firestore's clients.")

    @OptionGroup var options: SuiteOptions

    /// The stack without the server's calls.
    private static let plain = "gRPC"

    /// The task of the child process.
    struct Plan: Codable, Sendable {
      /// The number of turns of each measurement.
      var turns: Int
      var streams: Int
      var documents: Int
    }

    func run() async throws {
      if let task = try options.childTask(of: Plan.self) {
        var result = SuiteResult(engine: task.engine)
        let trial = Trial(task.plan, in: task.directory)
        if task.engine == Self.plain {
          try await trial.runEmptyStreams(&result)
        } else {
          try await trial.run(&result)
          let access = AccessTrial(turns: task.plan.turns, directory: task.directory)
          try await access.run(&result)
          let (turns, directory) = (task.plan.turns, task.directory)
          let tree = TreeTrial(
            turns: turns, connections: task.plan.streams / 2, directory: directory)
          try await tree.run(&result)
          try await ObjectsTrial(turns: turns, directory: directory).run(&result)
        }
        return try options.tell(result)
      }
      var report = SuiteReport(
        "serve", try options.workloads() ?? Workload.allCases, runs: options.runCount,
        documents: { _ in 1_000 }, valueSize: { _ in 400 })
      let plan = Plan(
        turns: options.passes ?? (options.quick ? 10 : 40), streams: options.quick ? 1_000 : 10_000,
        documents: options.documentCount(usually: 1_000_000, quick: 100_000))
      options.takeTurns(["Ondol", Self.plain], plan, into: &report)
      try options.tell(report)
    }
  }

  /// The measured workloads.
  enum Workload: String, SuiteWorkload {
    case echo = "empty call"
    case get = "get"
    case getByEcho = "get by empty call"
    case embeddedCommit = "commit, embedded"
    case commitInCall = "embedded commit in an empty call"
    case commit = "commit"
    case commitByEmbedded = "commit less empty call by embedded"
    case commitByCall = "commit by embedded in an empty call"
    case echoes = "empty calls, 64 clients"
    case gets = "gets, 64 clients"
    case echoesByGets = "64 clients: empty calls by gets"
    case delivery = "delivery beside streams, p95"
    /// The memory of both ends. gRPC's own, without the server's calls, is measured in another
    /// process.
    case stream = "memory of a stream, both ends"
    case query = "documents streamed"
    case queryMemory = "memory of streaming them"
    case adminsQuery = "document of an administrator's query"
    case ownersQuery = "document of its owner's query"
    case ownersByAdmins = "owner's query by administrator's"
    case adminsList = "document of an administrator's list"
    case ruledList = "document of a list asked about one by one"
    /// Three conditions and one `get`, for each document.
    case rule = "rule of three conditions and a get"
    case embeddedSignIn = "sign-in, embedded"
    case signIn = "sign-in over HTTP"
    case signInByEmbedded = "sign-in by embedded"
    case treeDelivery = "put to a listener elsewhere, p95"
    case treeChildren = "100000 children listened to"
    case plainUpload = "upload of 100 MB to a file server"
    case upload = "upload of 100 MB"
    case uploadByPlain = "upload: file server by Ondol"
    case uploadMemory = "memory of an upload"
    case plainDownload = "download of 100 MB from a file server"
    case download = "download of 100 MB"
    case downloadByPlain = "download: file server by Ondol"
    case downloadMemory = "memory of a download"

    var unit: String {
      switch self {
      case .echo, .get, .embeddedCommit, .commitInCall, .commit, .adminsQuery, .ownersQuery,
        .adminsList, .ruledList, .rule, .embeddedSignIn, .signIn:
        "µs"
      case .getByEcho, .commitByEmbedded, .commitByCall, .echoesByGets, .ownersByAdmins,
        .signInByEmbedded, .uploadByPlain, .downloadByPlain:
        "x"
      case .echoes, .gets: "calls/s"
      case .delivery, .treeDelivery, .treeChildren: "ms"
      case .plainUpload, .upload, .plainDownload, .download: "MB/s"
      case .stream: "KB"
      case .query: "docs/s"
      case .queryMemory, .uploadMemory, .downloadMemory: "MiB"
      }
    }

    var goal: Double? {
      switch self {
      case .getByEcho: 1.3
      case .commitByEmbedded: 1.5
      case .echoesByGets: 1 / 0.7
      case .delivery: 5
      case .queryMemory: 64
      case .ownersByAdmins: 1.3
      case .rule: 15
      case .signInByEmbedded: 1.05
      case .treeDelivery: 5
      case .treeChildren: 400
      case .uploadByPlain, .downloadByPlain: 1 / 0.6
      case .uploadMemory, .downloadMemory: 16
      default: nil
      }
    }

    var lowerIsBetter: Bool {
      let rates: [Workload] = [
        .echoes, .gets, .query, .plainUpload, .upload, .plainDownload, .download,
      ]
      return !rates.contains(self)
    }
  }

  /// Counts the tasks that have reached a point.
  private final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add() { count.add(1, ordering: .relaxed) }
  }

  /// One run.
  struct Trial: Sendable {
    private static let calls = 200
    private static let clients = 64
    private static let project = "projects/bench/databases/(default)"

    private let plan: ServeBenchmarks.Plan
    private let directory: String

    init(_ plan: ServeBenchmarks.Plan, in directory: String) {
      self.plan = plan
      self.directory = directory
    }

    private static func name(_ number: Int, in collection: String = "items") -> String {
      "\(project)/documents/\(collection)/d\(number)"
    }

    /// The fields of a document of about 400 bytes.
    private static func fields(_ number: Int) -> [WireEntry] {
      var fields: [WireEntry] = [
        .with {
          $0.key = "number"
          $0.value.integerValue = Int64(number)
        }
      ]
      for field in 0..<6 {
        fields.append(
          .with {
            $0.key = "text\(field)"
            $0.value.stringValue = String(repeating: "abcdefgh", count: 7)
          })
      }
      return fields
    }

    func run(_ result: inout SuiteResult) async throws {
      let database = try await Database.open(at: directory + "/serve")
      var options = Server.Options()
      options.firestorePort = 0
      options.logger = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
      let server = Server(database, options: options)
      let address = AsyncStream.makeStream(of: String.self)
      let running = Task {
        try await server.run { _ = address.continuation.yield($0.firestore) }
      }
      var ports = address.stream.makeAsyncIterator()
      guard let text = await ports.next(), let port = Int(text.split(separator: ":")[1]) else {
        return
      }
      let echo = echoServer(database)
      let echoing = Task { try await echo.serve() }
      guard let echoPort = try await echo.transport.listeningAddress.ipv4?.port else { return }
      let found = try await Client.with(port: echoPort) { [self] echo in
        try await Client.with(port: port) { [self] served in
          var result = SuiteResult(engine: "Ondol")
          try await measureCalls(echo, served, database, &result)
          try await measureManyClients(echo, served, &result)
          try await measureStreams(served, database, &result)
          return result
        }
      }
      // After a client ends thousands of streams, the server closes its connection.
      result = try await Client.with(port: port) { [self] served in
        var result = found
        try await measureQuery(served, database, &result)
        return result
      }
      echo.beginGracefulShutdown()
      server.shutDown()
      try await running.value
      try await echoing.value
      try await database.close()
    }

    /// Measures streams without messages.
    func runEmptyStreams(_ result: inout SuiteResult) async throws {
      let echo = echoServer(nil)
      let echoing = Task { try await echo.serve() }
      guard let port = try await echo.transport.listeningAddress.ipv4?.port else { return }
      let bytes = try await Client.with(port: port) { [self] echo in
        try await memory(ofStreams: echo, EchoService.hold) { _ in true }
      }
      result.note(Workload.stream, bytes / 1_000)
      echo.beginGracefulShutdown()
      try await echoing.value
    }

    /// - Parameter database: the database that calls commit to; nil for none.
    private func echoServer(_ database: Database?) -> GRPCServer<HTTP2ServerTransport.Posix> {
      let transport = HTTP2ServerTransport.Posix(
        address: .ipv4(host: "127.0.0.1", port: 0), transportSecurity: .plaintext,
        config: .defaults { $0.http2.maxConcurrentStreams = 20_000 })
      var document = WireDocument()
      document.fields = Self.fields(1)
      var write: (@Sendable (Int) async throws -> Void)?
      if let database { write = { try await Self.write($0, "called", database) } }
      return GRPCServer(
        transport: transport, services: [EchoService(document: document, write: write)])
    }

    // MARK: - Calls

    private func get(_ client: Client, _ number: Int) async throws {
      _ = try await client.call(
        WireFirestore.Method.GetDocument.descriptor,
        WireGetDocumentRequest.with { $0.name = Self.name(number) },
        as: WireDocument.self)
    }

    private func empty(_ client: Client, _ number: Int) async throws {
      _ = try await client.call(
        EchoService.echo, WireGetDocumentRequest.with { $0.name = Self.name(number) },
        as: WireDocument.self)
    }

    private func commit(
      _ client: Client, _ method: MethodDescriptor, _ number: Int, in collection: String
    ) async throws {
      _ = try await client.call(
        method,
        WireCommitRequest.with {
          $0.database = Self.project
          $0.writes = [
            .with {
              $0.update.name = Self.name(number, in: collection)
              $0.update.fields = Self.fields(number)
            }
          ]
        }, as: WireCommitResponse.self)
    }

    /// The same commit without the protocol.
    private static func write(
      _ number: Int, _ collection: String, _ database: Database
    ) async throws {
      var fields: [String: Value] = ["number": .integer(Int64(number))]
      for field in 0..<6 {
        fields["text\(field)"] = .string(String(repeating: "abcdefgh", count: 7))
      }
      try await database.document("\(collection)/d\(number)").setData(fields)
    }

    private static let commitCall = WireFirestore.Method.Commit.descriptor

    private func measureCalls(
      _ echo: Client, _ served: Client, _ database: Database, _ result: inout SuiteResult
    ) async throws {
      for number in 0..<1_000 {
        try await commit(served, Self.commitCall, number, in: "items")
      }
      var times: [Workload: [Double]] = [:]
      func time(_ workload: Workload, _ body: (Int) async throws -> Void) async throws {
        let all = try await microseconds {
          for number in 0..<Self.calls { try await body(number) }
        }
        times[workload, default: []].append(all / Double(Self.calls))
      }
      for turn in 0..<plan.turns {
        try await time(.echo) { try await empty(echo, $0) }
        try await time(.get) { try await get(served, $0) }
        let first = turn * Self.calls
        try await time(.embeddedCommit) { try await Self.write(first + $0, "embedded", database) }
        try await time(.commitInCall) {
          try await commit(echo, EchoService.commit, first + $0, in: "called")
        }
        try await time(.commit) {
          try await commit(served, Self.commitCall, first + $0, in: "written")
        }
      }
      let all = times.mapValues { median($0) }
      for workload in [Workload.echo, .get, .embeddedCommit, .commitInCall, .commit] {
        result.note(workload, all[workload] ?? .nan)
      }
      let nothing = all[.echo] ?? .nan
      result.note(Workload.getByEcho, (all[.get] ?? .nan) / nothing)
      result.note(
        Workload.commitByEmbedded,
        ((all[.commit] ?? .nan) - nothing) / (all[.embeddedCommit] ?? .nan))
      result.note(
        Workload.commitByCall, (all[.commit] ?? .nan) / (all[.commitInCall] ?? .nan))
    }

    private func measureManyClients(
      _ echo: Client, _ served: Client, _ result: inout SuiteResult
    ) async throws {
      func rate(_ body: @escaping @Sendable (Int) async throws -> Void) async throws -> Double {
        let time = try await microseconds {
          try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<Self.clients {
              group.addTask {
                for call in 0..<Self.calls { try await body((client * 31 + call) % 1_000) }
              }
            }
            try await group.waitForAll()
          }
        }
        return Double(Self.clients * Self.calls) / time * 1_000_000
      }
      var (echoes, gets): ([Double], [Double]) = ([], [])
      for _ in 0..<max(3, plan.turns / 8) {
        echoes.append(try await rate { [self] in try await empty(echo, $0) })
        gets.append(try await rate { [self] in try await get(served, $0) })
      }
      result.note(Workload.echoes, median(echoes))
      result.note(Workload.gets, median(gets))
      result.note(Workload.echoesByGets, median(echoes) / median(gets))
    }

    // MARK: - Streams

    private func listen(to number: Int) -> WireListenRequest {
      .with {
        $0.database = Self.project
        $0.addTarget.targetID = 1
        $0.addTarget.query.parent = "\(Self.project)/documents"
        $0.addTarget.query.structuredQuery.from = [.with { $0.collectionID = "live" }]
        $0.addTarget.query.structuredQuery.where.fieldFilter.field.fieldPath = "number"
        $0.addTarget.query.structuredQuery.where.fieldFilter.op = .equal
        $0.addTarget.query.structuredQuery.where.fieldFilter.value.integerValue = Int64(number)
      }
    }

    private func measureStreams(
      _ served: Client, _ database: Database, _ result: inout SuiteResult
    ) async throws {
      var bytes = 0.0
      let (delivered, deliver) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
      let (before, streams) = (ProcessMemory.current()?.residentBytes ?? 0, plan.streams)
      try await withThrowingTaskGroup(of: Void.self) { group in
        let current = Counter()
        for number in 0..<streams {
          group.addTask { [self] in
            try await served.stream(
              WireFirestore.Method.Listen.descriptor, listen(to: number)
            ) { (message: WireListenResponse) in
              if message.targetChange.targetChangeType == .current {
                current.add()
              }
              if case .documentChange = message.responseType { deliver.yield(.now) }
              return true
            }
          }
        }
        while current.value < streams {
          try await Task.sleep(for: .milliseconds(20))
        }
        let after = ProcessMemory.current()?.residentBytes ?? 0
        bytes = Double(after - before) / Double(streams)
        var moments = delivered.makeAsyncIterator()
        var times: [Double] = []
        for turn in 0..<(10 * plan.turns) {
          let start = ContinuousClock.now
          let number = turn * 7_919 % streams
          try await database.document("live/d\(turn)").setData(["number": number])
          guard let moment = await moments.next() else { break }
          times.append((moment - start) / .milliseconds(1))
        }
        result.note(Workload.delivery, percentile(0.95, ofSorted: times.sorted()))
        group.cancelAll()
        while (try? await group.next()) != nil {}
      }
      result.note(Workload.stream, bytes / 1_000)
    }

    /// The bytes of a stream in this process, at both its ends.
    private func memory(
      ofStreams client: Client, _ method: MethodDescriptor,
      _ body: @escaping @Sendable (WireListenResponse) -> Bool
    ) async throws -> Double {
      let (before, streams) = (ProcessMemory.current()?.residentBytes ?? 0, plan.streams)
      var bytes = 0.0
      try await withThrowingTaskGroup(of: Void.self) { group in
        let open = Counter()
        for number in 0..<streams {
          group.addTask { [self] in
            try await client.stream(method, listen(to: number)) { (message: WireListenResponse) in
              open.add()
              return body(message)
            }
          }
        }
        while open.value < streams {
          try await Task.sleep(for: .milliseconds(20))
        }
        bytes = Double((ProcessMemory.current()?.residentBytes ?? 0) - before) / Double(streams)
        group.cancelAll()
        while (try? await group.next()) != nil {}
      }
      return bytes
    }

    // MARK: - A long result

    private func measureQuery(
      _ served: Client, _ database: Database, _ result: inout SuiteResult
    ) async throws {
      for start in stride(from: 0, to: plan.documents, by: 1_000) {
        let batch = database.batch()
        for number in start..<min(start + 1_000, plan.documents) {
          let text = String(repeating: "abcdefgh", count: 48)
          try batch.setData(["text": text], forDocument: database.document("many/d\(number)"))
        }
        try await batch.commit(durability: .process)
      }
      let request = WireRunQueryRequest.with {
        $0.parent = "\(Self.project)/documents"
        $0.structuredQuery.from = [.with { $0.collectionID = "many" }]
      }
      ProcessMemory.restartPeak()
      let before = ProcessMemory.current()?.residentBytes ?? 0
      let time = try await microseconds {
        let count = try await served.count(request)
        guard count == plan.documents else {
          throw ChildFailure(
            description: "\(count) documents came instead of \(plan.documents)")
        }
      }
      result.note(Workload.query, Double(plan.documents) / time * 1_000_000)
      let peak = ProcessMemory.current()?.peakBytes ?? 0
      result.note(Workload.queryMemory, Double(peak - before) / 1_048_576)
    }
  }
#else
  @main
  struct ServeBenchmarks {
    static func main() {
      print("the serve suite is built with --traits Server")
    }
  }
#endif
