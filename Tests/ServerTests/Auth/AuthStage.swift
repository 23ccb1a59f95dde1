// What the tests of accounts' protocol share: a device that keeps a database, a clock that tests
// move, a scrypt that is cheap and counted, and a face that is called without a socket.

#if Server
  import Foundation
  import Logging
  import OndolAccounts
  import OndolEngine
  import OndolJSON
  import OndolTestKit

  @testable import Ondol
  @testable import OndolServer

  /// A server's accounts on one device.
  struct AuthStage: Sendable {
    static let owner = ["authorization": "Bearer owner"]
    static let password = "secret"

    let clock: ManualClock
    let device: SimulatedDevice
    let database: Database
    let served: ServedDatabase
    let runs = Guarded(0)
    let mails = Guarded<[AccountMail]>([])
    let events = Guarded<[AuditEvent]>([])
    var admission: Admission
    var project: String?
    private let isBehindProxy: Bool

    init(
      seed: UInt64 = 1, _ change: (inout Server.Options) -> Void = { _ in }
    ) async throws {
      let clock = ManualClock()
      let device = SimulatedDevice(seed: seed, clock: clock)
      try await self.init(clock, device, path: "app.ondol", change)
    }

    /// Another server with the same clock.
    init(
      _ clock: ManualClock, _ device: SimulatedDevice, path: String,
      _ change: (inout Server.Options) -> Void = { _ in }
    ) async throws {
      (self.clock, self.device) = (clock, device)
      database = try await Database.open(at: path, on: device)
      served = ServedDatabase(database)
      var options = Server.Options()
      options.accounts.hashing = PasswordHashing(unchecked: 2, 1, 1)
      options.sendMail = { [mails] mail in mails.withLock { $0.append(mail) } }
      options.audit = { [events] event in events.withLock { $0.append(event) } }
      options.limits = ServerLimits.none
      change(&options)
      admission = Admission(options)
      // Time passes for limits only where a test says so.
      admission.limiter = CallLimiter(options.limitsInForce) { 0 }
      isBehindProxy = options.isBehindProxy
      project = options.project
      admission.derivation = KeyDerivation { [runs] password, salt, hashing throws(AuthError) in
        runs.withLock { $0 += 1 }
        return try KeyDerivation.scrypt.derive(password, salt, hashing)
      }
    }

    var directory: SingleDatabase { SingleDatabase(served) }
    var identity: Identity { served.identity }
    var face: AccountsFace {
      AccountsFace(directory: directory, admission: admission, project: project)
    }

    /// What calls go through.
    var gate: CallGate {
      var gate = CallGate(
        admission: admission, metrics: CallMetrics(),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
      gate.isBehindProxy = isBehindProxy
      return gate
    }

    /// The kinds of the events so far.
    var kinds: [AuditEvent.Kind] { events.withLock { $0.map(\.kind) } }

    /// An answer's status and fields.
    struct Answer: Sendable {
      let status: Int
      let body: Value
      let headers: [(name: String, value: String)]

      /// The error's name and reason; nil of a success.
      var error: String? { body["error"]?["message"]?.string }

      subscript(name: String) -> Value? { body[name] }
      func text(_ name: String) -> String { body[name]?.string ?? "" }
    }

    /// Calls a path.
    func call(
      _ target: String, _ body: Value? = nil, method: String = "POST",
      headers: [String: String] = [:], peer: String = "127.0.0.1"
    ) async throws -> Answer {
      let bytes = body.map { Array(JSONWriter.line($0, .plain).utf8) } ?? []
      guard
        var call = HTTPCall(method, target, headers: headers, body: bytes)
      else { throw DatabaseError(.invalidArgument, "no target: \(target)") }
      // As a port does it.
      let source = CallSource(
        peer: peer, forwarded: headers["x-forwarded-for"], bearer: headers["authorization"])
      let open = gate.open(face.name(of: call), from: source)
      call.address = open.address
      let answer: HTTPAnswer
      do throws(LimitReached) {
        try gate.admit(open, source)
        answer = await open.bind { [call, face] in await face.answer(call) }
      } catch {
        answer = face.refusal(error)
      }
      gate.end(open, status: String(answer.status), isDenial: answer.isDenial)
      let value = answer.body.isEmpty ? .null : try JSONReader.read(answer.body, .plain)
      return Answer(status: answer.status, body: value, headers: answer.headers)
    }

    /// A client's call.
    func client(
      _ name: String, _ body: Value, peer: String = "127.0.0.1"
    ) async throws -> Answer {
      try await call(
        "/identitytoolkit.googleapis.com/v1/accounts:\(name)?key=app", body, peer: peer)
    }

    /// An administrator's call.
    func admin(_ name: String, _ body: Value) async throws -> Answer {
      let suffix = name == "create" ? "" : ":\(name)"
      return try await call(
        "/identitytoolkit.googleapis.com/v1/projects/app/accounts\(suffix)", body,
        headers: Self.owner)
    }

    /// Signs up with an address.
    func signUp(_ email: String = "ann@example.com") async throws -> Answer {
      try await client("signUp", ["email": .string(email), "password": .string(Self.password)])
    }

    func refresh(_ token: String) async throws -> Answer {
      try await call(
        "/securetoken.googleapis.com/v1/token?key=app",
        ["grant_type": "refresh_token", "refresh_token": .string(token)])
    }
  }

  /// The problem that `body` throws; nil when it throws none.
  func problem(_ body: () async throws -> Void) async -> TokenProblem? {
    do {
      try await body()
      return nil
    } catch {
      return error as? TokenProblem
    }
  }
#endif
