// The tree's listeners when other rules come into force, and rules that come by REST. Also what the
// server's gate does with requests on a WebSocket.

#if Server
  import Foundation
  import Logging
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct TreeDeploymentTests {
    private static let open = "{\"rules\": {\".read\": true, \".write\": true}}"
    private static let closed = "{\"rules\": {\"b\": {\".read\": true}}}"

    @Test func `A listener is asked about again when other rules are in force`() async throws {
      let stage = try await TreeStage.inMemory()
      try await stage.deploy(Self.open)
      let (session, client) = stage.session(1)
      let running = Task { await session.run() }
      for path in ["/a", "/b"] { #expect(await client.listen(session, path)?.status == "ok") }
      try await stage.deploy(Self.closed)
      for _ in 0..<1_000_000 where client.listening("a")?.isRevoked != true { await Task.yield() }
      #expect(client.listening("a")?.isRevoked == true)
      #expect(client.listening("b")?.isRevoked == false)
      // Nothing is shown any more, also not of what is written now.
      try await stage.database.tree.child("a").setValue("secret")
      try await stage.poll(session)
      #expect(client.view("a") == .null)
      running.cancel()
      await session.end()
      await running.value
    }

    @Test func `A stream of events ends when other rules deny it`() async throws {
      let stage = try await TreeStage.inMemory()
      try await stage.deploy(Self.open)
      let rest = TreeREST(stage.database, stage.access)
      func events(_ path: String) async throws -> TreeEventStream.Iterator {
        try await TreeEventStream(TreeHTTPRequest(method: "GET", target: path), rest)
          .makeAsyncIterator()
      }
      var (ended, other) = (try await events("/a.json"), try await events("/b.json"))
      #expect(try await ended.next()?.name == "put")
      #expect(try await other.next()?.name == "put")
      try await stage.deploy(Self.closed)
      #expect(try await ended.next() == .cancel)
      #expect(try await ended.next() == nil)
      try await stage.database.tree.child("b").setValue(1)
      #expect(try await other.next()?.name == "put")
    }

    @Test func `Rules that are put are a deployment like any other`() async throws {
      let stage = try await TreeStage.inMemory()
      let firestore = "rules_version = '2'; service cloud.firestore {}"
      _ = try await stage.rules.deploy(RulesTexts(firestore: firestore))
      let rest = TreeREST(stage.database, stage.access)
      func put(_ text: String, as user: String = "admin") async -> Int {
        await rest.respond(
          to: TreeHTTPRequest(
            method: "PUT", target: "/.settings/rules.json?auth=\(user)", body: Array(text.utf8))
        ).status
      }
      #expect(await put(Self.closed) == 200)
      #expect(await put("{\"rules\": {\".read\": \"1 +\"}}") == 400)
      #expect(await put(Self.open, as: "ann") == 401)
      #expect(await put(Self.closed) == 200)
      let documents = try await stage.database.collection(ServerRules.root).getDocuments().documents
      #expect(documents.map(\.documentID) == ["000000000001", "000000000002"])
      #expect(
        documents.last.map { RulesTexts($0.data()) }
          == RulesTexts(firestore: firestore, database: Self.closed))
      // They are in force when the answer comes.
      #expect(stage.access.rules?.indexes(at: []) != nil && stage.access.rulesNumber == 2)
    }

    @Test func `A write of several places needs the permission for each`() async throws {
      let stage = try await TreeStage.inMemory()
      try await stage.deploy("{\"rules\": {\"$u\": {\".write\": \"auth.uid == $u\"}}}")
      let (session, client) = stage.session(1)
      _ = await client.ask(session, "auth", "{\"cred\":\"ann\"}")
      for places in ["\"ann\":1,\"ben\":1", "\"ben\":1,\"ann\":1", "\"ann/a\":1,\"ben/a\":1"] {
        let answer = await client.ask(session, "m", "{\"p\":\"/\",\"d\":{\(places)}}")
        #expect(answer?.status == "permission_denied", "\(places)")
      }
      #expect(try await !stage.database.tree.getData().exists)
      #expect(await client.ask(session, "m", "{\"p\":\"/\",\"d\":{\"ann\":1}}")?.status == "ok")
    }

    @Test func `A closed database does not leave a deployment waiting`() async throws {
      let stage = try await TreeStage.inMemory()
      try await stage.deploy(Self.open)
      try await stage.database.close()
      await #expect(throws: (any Error).self) { try await stage.deploy(Self.closed) }
    }

    @Test func `Requests on a WebSocket are calls, and a refused one has its answer`()
      async throws
    {
      var admission = Admission()
      var limits = ServerLimits.none
      (limits.callsOfAddress, limits.callsOfAccount) = (5, 3)
      admission.limiter = CallLimiter(limits) { 0 }
      let events = Guarded<[AuditEvent]>([])
      admission.audit = AuditTrail { event in events.withLock { $0.append(event) } }
      let gate = CallGate(
        admission: admission, metrics: CallMetrics(),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
      let stage = TreeStage(try await Database.inMemory(), gate)
      try await stage.deploy("{\"rules\": {\"a\": {\".read\": true}}}")
      func statuses(_ count: Int, _ source: String, _ user: String? = nil) async -> [String?] {
        let (session, client) = stage.session(1) { options in
          options.source = CallSource(peer: source)
          if let user {
            options.principal.isAdministrator = user == "admin"
            options.principal.account = CallerAccount(project: "p", uid: user)
          }
        }
        var statuses: [String?] = []
        for number in 0..<count {
          let path = number == 0 ? "/b" : "/a"
          statuses.append(await client.ask(session, "g", "{\"p\":\"\(path)\"}")?.status)
        }
        #expect(!client.isClosed)
        return statuses
      }
      #expect(
        await statuses(7, "203.0.113.7")
          == ["permission_denied"] + Array(repeating: "ok", count: 4)
          + ["unavailable", "unavailable"])
      #expect(await statuses(1, "203.0.113.7") == ["unavailable"])
      #expect(
        await statuses(4, "203.0.113.8", "ann") == ["permission_denied", "ok", "ok", "unavailable"])
      #expect(await statuses(1, "203.0.113.9", "ann") == ["unavailable"])
      #expect(Set(await statuses(20, "203.0.113.7", "admin").dropFirst(4)) == ["unavailable"])
      let kinds = events.withLock { $0.map(\.kind) }
      #expect(kinds.filter { $0 == .denial }.count == 2)
      #expect(events.withLock { $0.contains { $0.kind == .denial && $0.account == "ann" } })
    }
  }
#endif
