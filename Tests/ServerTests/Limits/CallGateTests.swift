// The gate of a server's calls: who pays for a call, what is asked first, and what is told of it.

#if Server
  import Foundation
  import GRPCCore
  import Logging
  import OndolAccounts
  import OndolEngine
  import OndolTestKit
  import OndolWire
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct CallGateTests {
    /// A gate with a clock that stands still until it is moved.
    private struct Stage {
      let seconds = Guarded(0.0)
      let events = Guarded<[AuditEvent]>([])
      var gate: CallGate

      init(_ change: (inout ServerLimits) -> Void) {
        var limits = ServerLimits.none
        change(&limits)
        var admission = Admission()
        admission.adminToken = "0123456789abcdef"
        admission.isLoopback = false
        admission.limiter = CallLimiter(limits) { [seconds] in seconds.withLock { $0 } }
        admission.audit = AuditTrail { [events] event in events.withLock { $0.append(event) } }
        gate = CallGate(
          admission: admission, metrics: CallMetrics(),
          logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
      }

      /// Whether a call is let in.
      func admits(_ source: CallSource, bytes: Int = 0) -> Bool {
        let call = gate.open("Get", from: source)
        defer { gate.end(call, status: "OK") }
        do throws(LimitReached) {
          try gate.admit(call, source)
          call.countReceived(bytes)
          return true
        } catch {
          return false
        }
      }
    }

    @Test func `Each address has its own allowance, which comes back with time`() {
      let stage = Stage { $0.callsOfAddress = 60 }
      let (ann, ben) = (CallSource(peer: "203.0.113.7"), CallSource(peer: "203.0.113.8"))
      #expect((0..<100).count { _ in stage.admits(ann) } == 60)
      #expect(stage.admits(ben))
      stage.seconds.withLock { $0 = 10 }
      #expect((0..<100).count { _ in stage.admits(ann) } == 10)
      stage.seconds.withLock { $0 = 1_000 }
      #expect((0..<100).count { _ in stage.admits(ann) } == 60)
    }

    @Test func `A network of IPv6 is one caller`() {
      let stage = Stage { $0.callsOfAddress = 10 }
      let admitted = (0..<100).count { number in
        stage.admits(CallSource(peer: "2001:db8:0:1::\(String(number + 1, radix: 16))"))
      }
      #expect(admitted == 10)
      #expect(stage.admits(CallSource(peer: "2001:db8:0:2::1")))
    }

    @Test func `Bytes are owed, and the next call waits for them`() {
      let stage = Stage { $0.bytesOfAddress = 6_000 }
      let ann = CallSource(peer: "203.0.113.7")
      #expect(stage.admits(ann, bytes: 9_000))
      #expect(!stage.admits(ann))
      stage.seconds.withLock { $0 = 30 }
      #expect(!stage.admits(ann))
      stage.seconds.withLock { $0 = 30.1 }
      #expect(stage.admits(ann, bytes: 1_000))
      #expect(!stage.admits(ann))
    }

    @Test func `Administrators have no allowance, and guesses of their token do`() {
      let stage = Stage { $0.callsOfAddress = 5 }
      let admin = CallSource(peer: "203.0.113.7", bearer: "Bearer 0123456789abcdef")
      #expect((0..<100).count { _ in stage.admits(admin) } == 100)
      let guesses = (0..<100).count { number in
        stage.admits(CallSource(peer: "203.0.113.7", bearer: "Bearer 0123456789abc\(number)"))
      }
      #expect(guesses == 5)
      // Everybody knows this one, and it is for this machine.
      #expect(!stage.admits(CallSource(peer: "203.0.113.7", bearer: "Bearer owner")))
      #expect(stage.admits(admin))
    }

    @Test func `Behind a proxy the last address of its header counts, and elsewhere none`() {
      var stage = Stage { $0.callsOfAddress = 5 }
      func address(_ forwarded: String?) -> String? {
        stage.gate.address(of: CallSource(peer: "10.0.0.1", forwarded: forwarded))?.description
      }
      #expect(address("203.0.113.7") == "10.0.0.1")
      stage.gate.isBehindProxy = true
      let cases: [(String?, String)] = [
        ("203.0.113.7", "203.0.113.7"), ("1.1.1.1, 203.0.113.7", "203.0.113.7"),
        ("127.0.0.1,203.0.113.7\t", "203.0.113.7"), (" 2001:db8::1 ", "2001:db8:0:0::/64"),
        (nil, "10.0.0.1"), ("", "10.0.0.1"), ("unknown", "10.0.0.1"),
        ("203.0.113.7, evil", "10.0.0.1"), (",,,", "10.0.0.1"),
      ]
      for (forwarded, expected) in cases {
        #expect(address(forwarded) == expected, "\(forwarded ?? "nil")")
      }
      // A caller who invents addresses is still the one that the proxy saw.
      let admitted = (0..<50).count { number in
        stage.admits(CallSource(peer: "10.0.0.1", forwarded: "1.1.1.\(number), 203.0.113.7"))
      }
      #expect(admitted == 5)
    }

    @Test func `A flood is reported once`() {
      let stage = Stage { $0.callsOfAddress = 3 }
      let ann = CallSource(peer: "203.0.113.7")
      for _ in 0..<50 { _ = stage.admits(ann) }
      #expect(stage.events.withLock { $0.map(\.kind) } == [.limit])
      stage.seconds.withLock { $0 = 25 }
      for _ in 0..<50 { _ = stage.admits(ann) }
      #expect(stage.events.withLock { $0.map(\.kind) } == [.limit, .limit])
      #expect(stage.events.withLock { $0.allSatisfy { $0.address == "203.0.113.7" } })
    }

    // MARK: - gRPC

    private func call(
      _ gate: CallGate, method: String = "GetDocument", peer: String = "ipv4:203.0.113.7:5000",
      _ metadata: Metadata = [:], messages: Int = 1,
      _ body: @escaping @Sendable (Int) async throws -> Void
    ) async -> RPCError.Code? {
      let context = ServerContext(
        descriptor: MethodDescriptor(
          service: ServiceDescriptor(package: "p", service: "s"), method: method),
        remotePeer: peer, localPeer: "", cancellation: ServerContext.RPCCancellationHandle())
      let request = StreamingServerRequest(
        metadata: metadata,
        messages: RPCAsyncSequence(
          wrapping: AsyncThrowingStream<Int, any Error> { continuation in
            for number in 0..<messages { continuation.yield(number) }
            continuation.finish()
          }))
      return await code {
        let response = try await CallLog(gate: gate).intercept(
          request: request, context: context
        ) { request, _ in
          for try await message in request.messages { try await body(message) }
          return StreamingServerResponse<Int>(metadata: [:]) { _ in [:] }
        }
        _ = try await response.accepted.get().producer(RPCWriter(wrapping: Answers<Int>()))
      }
    }

    private func code(_ body: () async throws -> Void) async -> RPCError.Code? {
      do {
        try await body()
        return nil
      } catch {
        return (error as? RPCError)?.code ?? .unknown
      }
    }

    @Test func `A refused call of gRPC reaches no service`() async {
      let stage = Stage { $0.callsOfAddress = 3 }
      let reached = Guarded(0)
      var codes: [RPCError.Code?] = []
      for number in 0..<10 {
        codes.append(
          await call(stage.gate, ["authorization": "Bearer guess\(number)"]) { _ in
            reached.withLock { $0 += 1 }
          })
      }
      #expect(codes.prefix(3).allSatisfy { $0 == nil })
      #expect(codes.dropFirst(3).allSatisfy { $0 == .resourceExhausted })
      #expect(reached.withLock { $0 } == 3)
      // Another address, and one of IPv6.
      #expect(await call(stage.gate, peer: "ipv6:[2001:db8::1]:5000") { _ in } == nil)
    }

    @Test(arguments: ["Write", "Listen"])
    func `Each message of a stream is a call`(method: String) async {
      let stage = Stage { $0.callsOfAddress = 10 }
      let reached = Guarded(0)
      let code = await call(stage.gate, method: method, messages: 50) { _ in
        reached.withLock { $0 += 1 }
      }
      #expect(code == .resourceExhausted)
      #expect(reached.withLock { $0 } == 10)
    }

    @Test func `Each message of a person's stream is a call of the account`() async {
      let stage = Stage { $0.callsOfAccount = 10 }
      let reached = Guarded(0)
      let code = await call(stage.gate, method: "Write", messages: 50) { _ in
        reached.withLock { $0 += 1 }
        let account = CallerAccount(project: "p", uid: "ann")
        OpenCall.current?.note(OpenCall.Caller(kind: .user, account: account, project: "p"))
      }
      #expect(code == .resourceExhausted)
      // The first message was before anybody was known.
      #expect(reached.withLock { $0 } == 11)
    }

    // MARK: - Accounts

    @Test func `An account has its allowance wherever it calls from`() async throws {
      let stage = try await AuthStage { $0.limits?.callsOfAccount = 5 }
      let (ann, ben) = (try await stage.signUp(), try await stage.signUp("ben@example.com"))
      func admits(_ answer: AuthStage.Answer) async -> Bool {
        do throws(DatabaseError) {
          _ = try await stage.admission.principal(
            ofBearer: "Bearer \(answer.text("idToken"))", project: "app", in: stage.directory)
          return true
        } catch {
          #expect(error.code == .resourceExhausted)
          return false
        }
      }
      var admitted = 0
      for _ in 0..<20 where await admits(ann) { admitted += 1 }
      #expect(admitted == 5)
      #expect(await admits(ben))
    }

    @Test func `Sign-ins are limited whether they succeed or not`() async throws {
      let stage = try await AuthStage { $0.limits?.signInsOfAddress = 20 }
      _ = try await stage.signUp()
      stage.runs.withLock { $0 = 0 }
      var statuses: [Int] = []
      for _ in 0..<50 {
        statuses.append(
          try await stage.client(
            "signInWithPassword",
            ["email": "ann@example.com", "password": .string(AuthStage.password)],
            peer: "203.0.113.7"
          ).status)
      }
      #expect(statuses.prefix(20).allSatisfy { $0 == 200 })
      #expect(statuses.dropFirst(20).allSatisfy { $0 == 429 })
      #expect(stage.runs.withLock { $0 } == 20)
      let signUp = try await stage.client(
        "signUp", ["email": "eve@example.com", "password": "secret"], peer: "203.0.113.7")
      #expect(signUp.status == 429 && signUp.error == "QUOTA_EXCEEDED")
      #expect(try await stage.signUp("eve@example.com").status == 200)
    }

    @Test func `A refusal over HTTP has the form of the face`() async throws {
      let stage = try await AuthStage { $0.limits?.callsOfAddress = 1 }
      _ = try await stage.client("lookup", [:], peer: "203.0.113.7")
      let refused = try await stage.client("lookup", [:], peer: "203.0.113.7")
      #expect(refused.status == 429 && refused["error"]?["status"] == "RESOURCE_EXHAUSTED")
      let headers = Dictionary(refused.headers.map { ($0.name, $0.value) }) { $1 }
      #expect(
        headers["retry-after"] == "60"
          && headers["access-control-allow-origin"] == "*")
    }

    @Test func `Behind a proxy guests are limited by the address that it names`() async throws {
      let stage = try await AuthStage {
        $0.accounts.maximumGuestsOfOrigin = 3
        $0.isBehindProxy = true
      }
      func guest(_ forwarded: String) async throws -> Bool {
        try await stage.call(
          "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=app", [:],
          headers: ["x-forwarded-for": forwarded]
        ).status == 200
      }
      for number in 0..<6 {
        #expect(try await guest("1.1.1.\(number), 203.0.113.7") == (number < 3))
      }
      #expect(try await guest("203.0.113.8"))
    }

    // MARK: - Names

    @Test func `Limits have names, and others are refused`() throws {
      var limits = ServerLimits()
      for (index, name) in ServerLimits.names.enumerated() { try limits.set(name, to: index + 1) }
      #expect(
        [
          limits.callsOfAddress, limits.callsOfAccount, limits.bytesOfAddress,
          limits.bytesOfAccount, limits.signInsOfAddress, limits.connections,
          limits.connectionsOfAddress,
        ] == [1, 2, 3, 4, 5, 6, 7])
      for name in ServerLimits.names { try limits.set(name, to: nil) }
      #expect(limits == ServerLimits.none)
      for (name, number) in [("calls", 1), ("", 1), ("connections", 0), ("connections", -1)] {
        #expect(throws: DatabaseError.self) { try limits.set(name, to: number) }
      }
    }

    @Test func `They are on where others come in, and off on this machine`() {
      var options = Server.Options()
      #expect(options.limitsInForce == .none)
      options.isBehindProxy = true
      #expect(options.limitsInForce == ServerLimits())
      options.isBehindProxy = false
      options.host = "0.0.0.0"
      #expect(options.limitsInForce == ServerLimits())
      options.limits = ServerLimits.none
      #expect(options.limitsInForce == .none)
    }

    @Test func `A port and an address have so many connections`() {
      var limits = ServerLimits.none
      limits.connections = 5
      limits.connectionsOfAddress = 2
      let (ann, ben) = (NetworkAddress("203.0.113.7"), NetworkAddress("203.0.113.8"))
      let port = ConnectionLimit(limits, isBehindProxy: false)
      #expect((0..<5).map { _ in port.begin(ann) } == [true, true, false, false, false])
      #expect(port.begin(ben) && port.begin(ben) && port.begin(nil))
      #expect(!port.begin(nil) && !port.begin(NetworkAddress("203.0.113.9")))
      port.end(ann)
      #expect(port.begin(ann) && !port.begin(ann))
      let proxied = ConnectionLimit(limits, isBehindProxy: true)
      #expect((0..<9).count { _ in proxied.begin(ann) } == 5)
    }
  }
#endif
