// The server: ports, services and shutdown. Start reading here. Firestore/FirestoreService
// continues with the calls.

#if Server
  import Foundation
  import GRPCCore
  import GRPCNIOTransportHTTP2Posix
  public import Logging
  import NIOCertificateReloading
  import NIOCore
  public import Ondol
  public import OndolAccounts
  import OndolWire
  import Synchronization

  /// Serves a database to Firestore's own clients.
  ///
  /// ```swift
  /// let server = Server(database)
  /// try await server.run { print("export FIRESTORE_EMULATOR_HOST=\($0.firestore)") }
  /// ```
  ///
  /// To use it, point Google's clients to it with their setting for Firestore's emulator. They need
  /// nothing else. Until rules are deployed, every program of this machine may read and write. For
  /// others, set `Options.host`, a certificate or a proxy, and an administrators' token, and deploy
  /// rules.
  public final class Server: Sendable {
    /// Options of a server.
    public struct Options: Sendable {
      /// The address to listen on. Only programs of this machine reach the default.
      public var host = "127.0.0.1"
      /// Encrypts connections; nil for none.
      public var certificate: Certificate?
      /// Whether a proxy of yours encrypts connections and passes them on. It may run on this
      /// machine: `host` then says nothing about where callers are.
      public var isBehindProxy = false
      /// The port for Firestore's clients; 0 for a free one.
      public var firestorePort = 8080
      /// The port for the Realtime Database's clients; 0 for a free one, nil for none.
      public var databasePort: Int?
      /// The port for Prometheus; 0 for a free one, nil for none.
      public var metricsPort: Int?
      /// The port for Firebase's clients for accounts; 0 for a free one, nil for none.
      public var authPort: Int?
      /// The port for clients of Google Cloud Storage and Firebase Storage; 0 for a free one, nil
      /// for none.
      public var storagePort: Int?
      /// The project of requests for accounts that name none; nil takes their API key for its name.
      public var project: String?
      /// The token of administrators, to whom no rules apply. Without it, only `owner` is one, and
      /// only on this machine.
      public var adminToken: String?
      /// Whether tokens are taken that nobody has signed. Firebase's libraries make them for
      /// emulators, and so can everybody else.
      public var acceptsUnsignedTokens = false
      /// What accounts are opened with. The rules for passwords are Firebase's: six characters.
      public var accounts: Accounts.Options = {
        var options = Accounts.Options()
        options.minimumPasswordLength = 6
        options.refusesSimplePasswords = false
        return options
      }()
      /// Sends a mail with a code. With nil, the default, calls that would send one are refused.
      public var sendMail: (@Sendable (AccountMail) async throws -> Void)?
      /// The time that calls have to end once the server shuts down.
      public var grace = Duration.seconds(10)
      /// What callers may use. With nil, the default, callers of this machine may use everything,
      /// and those of others what `ServerLimits()` allows.
      public var limits: ServerLimits?
      /// The largest size of a request, or of one message of a stream, in bytes.
      public var requestLimit = 16 << 20
      /// The largest number of concurrent calls on one connection.
      public var callsOfConnection = 20_000
      /// Whether callers without credentials are administrators even if there are rules.
      public var isOpen = false
      /// Whether a query is refused unless it proves that the rules allow every document that it
      /// can find, as in Firestore. Otherwise the rules may also be asked about each document.
      public var isStrict = false
      /// Records sign-ins, refusals and administrators' changes. It is called on the threads of the
      /// calls, so it is quick; `AuditFile` writes a file.
      public var audit: (@Sendable (AuditEvent) -> Void)?
      /// Shows what the server does to those who answer for it; nil if nobody looks.
      package var view: ServerView?
      /// Logs a line for each call.
      public var logger = Logger(label: "ondol.server")

      /// Whether only programs of this machine reach the server.
      var isLocal: Bool { ["127.0.0.1", "::1"].contains(host) && !isBehindProxy }

      /// The limits that are in force.
      package var limitsInForce: ServerLimits { limits ?? (isLocal ? .none : ServerLimits()) }

      /// The defaults.
      public init() {}
    }

    /// The addresses of a server, each as host and port.
    public struct Addresses: Sendable, Hashable {
      /// For Firestore's clients: the value of `FIRESTORE_EMULATOR_HOST`.
      public var firestore: String
      /// For the Realtime Database's clients: the value of `FIREBASE_DATABASE_EMULATOR_HOST`; nil
      /// without a port for them.
      public var database: String?
      /// For Prometheus; nil without a port for it.
      public var metrics: String?
      /// For Firebase's clients for accounts, the value of `FIREBASE_AUTH_EMULATOR_HOST`; nil
      /// without a port for them.
      public var auth: String?
      /// For clients of storage, with `http://` or `https://`, the value of
      /// `STORAGE_EMULATOR_HOST`; nil without a port for them.
      public var storage: String?
    }

    let directory: any DatabaseDirectory
    /// Who a caller is.
    let admission: Admission
    private let options: Options
    private let drain = Drain()
    private let metrics: CallMetrics
    private let isRunning = Mutex(false)

    /// Creates a server of one database, which is the default database of every project.
    ///
    /// - Parameters:
    ///   - database: stays open when the server ends.
    ///   - options: the options of the server.
    public convenience init(_ database: Database, options: Options = Options()) {
      self.init(SingleDatabase(ServedDatabase(database)), options: options)
    }

    /// Creates a server of a directory's databases.
    package init(_ directory: any DatabaseDirectory, options: Options) {
      self.directory = directory
      var options = options
      if let view = options.view {
        let record = options.audit
        options.audit = { event in
          view.note(event)
          record?(event)
        }
      }
      self.options = options
      metrics = options.view?.metrics ?? CallMetrics()
      admission = Admission(options)
    }

    /// Refuses to serve others without what protects the databases.
    private func checkProtection() async throws(DatabaseError) {
      guard !options.isLocal else { return }
      func refusal(_ reason: String) -> DatabaseError {
        DatabaseError(
          .failedPrecondition, "callers from other machines may reach the server, and \(reason)")
      }
      guard options.certificate != nil || options.isBehindProxy else {
        throw refusal(
          "connections are not encrypted: name a certificate, or the proxy that has one")
      }
      guard options.adminToken != nil else { throw refusal("there is no administrators' token") }
      guard !options.isOpen else { throw refusal("everybody would be an administrator") }
      guard try await directory.hasRules else {
        throw refusal("no rules are deployed: nothing would be allowed")
      }
    }

    /// Serves until `shutDown()` is called or the task is cancelled.
    ///
    /// - Parameter whenReady: called once, when the server listens.
    /// - Throws: `DatabaseError` with `.failedPrecondition` when the server already runs or has
    ///   run, and with `.unavailable` when a port is taken.
    public func run(whenReady: @Sendable (Addresses) async -> Void = { _ in }) async throws {
      let isSecond = isRunning.withLock { isRunning in
        defer { isRunning = true }
        return isRunning
      }
      guard !isSecond else {
        throw DatabaseError(.failedPrecondition, "a server runs once; make another")
      }
      try await checkProtection()
      let reloader = try options.certificate?.reloader(options.logger)
      let firestore = GRPCServer(
        transport: try transport(reloader), services: services,
        interceptors: [CallLog(gate: gate), CallCredentialsInterceptor()])
      let (scraped, auth) = (try metricsListener, try authListener(reloader))
      let storage = try storageListener(reloader)
      let listeners = [scraped, auth, storage].compactMap(\.self)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await Self.serve(firestore, listeners) }
        if let reloader { group.addTask { try await reloader.run() } }
        group.addTask { [self] in
          await drain.wait()
          firestore.beginGracefulShutdown()
          for listener in listeners { listener.beginShutdown() }
          try await Task.sleep(for: options.grace)
        }
        do {
          let address = try await firestore.transport.listeningAddress
          var addresses = Addresses(
            firestore: Self.text(options.host, address.ipv4?.port ?? address.ipv6?.port))
          addresses.metrics = try await scraped?.address
          addresses.auth = try await auth?.address
          addresses.storage = try await storage?.address
          addresses.storage = addresses.storage.map { "\(admission.scheme)://\($0)" }
          if let port = options.databasePort {
            addresses.database = try await startTreeFace(served(port, reloader), in: &group)
          }
          await whenReady(addresses)
          // The first to end is the server itself, its grace time, or a port that is taken.
          try await group.next()
        } catch {
          group.cancelAll()
          throw await reason(error, &group)
        }
        group.cancelAll()
      }
    }

    /// Serves until all have ended, or one fails.
    private static func serve(
      _ firestore: GRPCServer<HTTP2ServerTransport.Posix>, _ listeners: [HTTPListener]
    ) async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await firestore.serve() }
        for listener in listeners { group.addTask { try await listener.run() } }
        while try await group.next() != nil {}
      }
    }

    /// Serves the Realtime Database's clients, and returns the address when it listens.
    private func startTreeFace(
      _ port: ServedPort, in group: inout ThrowingTaskGroup<Void, any Error>
    ) async throws -> String {
      let face = TreeFace(directory, gate, drain: drain)
      let (ports, found) = AsyncStream.makeStream(of: Int.self)
      group.addTask {
        defer { found.finish() }
        try await face.run(at: port) { found.yield($0) }
      }
      for await number in ports { return Self.text(options.host, number) }
      throw DatabaseError(.unavailable, "the port \(port.number) is taken")
    }

    /// The reason why the server does not run. Only its listeners know of a port that is taken.
    private func reason(
      _ error: any Error, _ group: inout ThrowingTaskGroup<Void, any Error>
    ) async -> any Error {
      guard !(error is DatabaseError), !(error is CancellationError) else { return error }
      var causes: [any Error] = []
      while !group.isEmpty {
        do {
          try await group.next()
        } catch {
          if !(error is CancellationError) { causes.append(error) }
        }
      }
      let ports = [
        options.firestorePort, options.databasePort, options.metricsPort, options.authPort,
        options.storagePort,
      ].compactMap(\.self)
      return DatabaseError(
        .unavailable,
        "the server cannot listen on port \(ports.map(String.init).joined(separator: " or ")):"
          + " \(causes.first ?? error)", suggestion: "name another port; 0 takes a free one")
    }

    /// Accepts no more calls, ends streams with UNAVAILABLE, lets calls in progress finish within
    /// `Options.grace`, and then makes `run(whenReady:)` return.
    public func shutDown() {
      drain.begin()
    }

    /// An address as clients want it.
    static func text(_ host: String, _ port: Int?) -> String {
      host.contains(":") ? "[\(host)]:\(port ?? 0)" : "\(host):\(port ?? 0)"
    }

    private func transport(
      _ reloader: (any CertificateReloader)?
    ) throws -> HTTP2ServerTransport.Posix {
      let (host, port) = (options.host, options.firestorePort)
      return HTTP2ServerTransport.Posix(
        address: host.contains(":") ? .ipv6(host: host, port: port) : .ipv4(host: host, port: port),
        transportSecurity: try reloader.map { try .tls(certificateReloader: $0) } ?? .plaintext,
        config: .defaults {
          $0.rpc.maxRequestPayloadSize = options.requestLimit
          $0.http2.maxConcurrentStreams = options.callsOfConnection
          // Clients may ping a connection as often as they like.
          $0.connection.keepalive.clientBehavior.minPingIntervalWithoutCalls = .seconds(10)
          $0.connection.keepalive.clientBehavior.allowWithoutCalls = true
          let connections = connectionLimit
          // gRPC has made a connection of it already, and sees that it is closed.
          $0.channelDebuggingCallbacks.onAcceptTCPConnection = { channel in
            connections.admit(channel).recover { _ in }
          }
        })
    }

    private var connectionLimit: ConnectionLimit {
      ConnectionLimit(options.limitsInForce, isBehindProxy: options.isBehindProxy)
    }

    /// What every call goes through.
    private var gate: CallGate {
      var gate = CallGate(admission: admission, metrics: metrics, logger: options.logger)
      gate.isBehindProxy = options.isBehindProxy
      gate.view = options.view
      return gate
    }

    /// A port for callers.
    private func served(_ port: Int, _ reloader: TimedCertificateReloader?) -> ServedPort {
      ServedPort(
        host: options.host, number: port, reloader: reloader, gate: gate,
        requestLimit: options.requestLimit, connections: connectionLimit)
    }

    private var services: [any RegistrableRPCService] {
      let names = [
        WireFirestore.descriptor, WireHealth.descriptor, WireServerReflection.descriptor,
      ]
      .map(\.fullyQualifiedService)
      return [
        FirestoreService(directory: directory, drain: drain, metrics: metrics, policy: policy),
        HealthService(drain: drain, services: Set(names)), ReflectionService(services: names),
      ]
    }

    private var policy: AccessPolicy {
      var policy = AccessPolicy { [admission, directory] (header, project) throws(DatabaseError) in
        try await admission.principal(ofBearer: header, project: project, in: directory)
      }
      policy.isOpen = options.isOpen
      policy.isLocal = options.isLocal
      policy.isStrict = options.isStrict
      policy.audit = admission.audit
      return policy
    }

    /// Serves Prometheus.
    private var metricsListener: HTTPListener? {
      get throws {
        try options.metricsPort.map { port in
          try HTTPListener(
            MetricsFace(metrics: metrics),
            at: ServedPort(
              host: "127.0.0.1", number: port, reloader: nil, gate: nil,
              requestLimit: options.requestLimit, connections: connectionLimit))
        }
      }
    }

    /// Serves Firebase's clients for accounts.
    private func authListener(_ reloader: TimedCertificateReloader?) throws -> HTTPListener? {
      try options.authPort.map { port in
        try HTTPListener(
          AccountsFace(directory: directory, admission: admission, project: options.project),
          at: served(port, reloader))
      }
    }

    /// Serves clients of storage.
    private func storageListener(_ reloader: TimedCertificateReloader?) throws -> HTTPListener? {
      try options.storagePort.map { port in
        try HTTPListener(
          StorageFace(directory: directory, admission: admission, policy: policy),
          at: served(port, reloader))
      }
    }
  }
#endif
