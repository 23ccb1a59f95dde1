// The server: ports, services and shutdown. Start reading here. Firestore/FirestoreService
// continues with the calls.

#if Server
  import FlyingFox
  import FlyingSocks
  import Foundation
  import GRPCCore
  import GRPCNIOTransportHTTP2Posix
  public import Logging
  public import Ondol
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
  /// nothing else. Every client that reaches the port may read and write, so the server listens
  /// only on this machine.
  public final class Server: Sendable {
    /// Options of a server.
    public struct Options: Sendable {
      /// The port for Firestore's clients; 0 for a free one.
      public var firestorePort = 8080
      /// The port for Prometheus; 0 for a free one, nil for none.
      public var metricsPort: Int?
      /// The time that calls have to end once the server shuts down.
      public var grace = Duration.seconds(10)
      /// The largest size of a request, or of one message of a stream, in bytes.
      public var requestLimit = 16 << 20
      /// The largest number of concurrent calls on one connection.
      public var callsOfConnection = 20_000
      /// Logs a line for each call.
      public var logger = Logger(label: "ondol.server")

      /// The defaults.
      public init() {}
    }

    /// The addresses of a server, each as host and port.
    public struct Addresses: Sendable, Hashable {
      /// For Firestore's clients: the value of `FIRESTORE_EMULATOR_HOST`.
      public var firestore: String
      /// For Prometheus; nil without a port for it.
      public var metrics: String?
    }

    private let directory: any DatabaseDirectory
    private let options: Options
    private let drain = Drain()
    private let metrics = CallMetrics()
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
      self.options = options
    }

    private static let host = "127.0.0.1"

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
      let firestore = GRPCServer(
        transport: transport(), services: services,
        interceptors: [CallLog(logger: options.logger, metrics: metrics)])
      var scraped: HTTPServer?
      if let port = options.metricsPort { scraped = try await metricsServer(port: port) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await firestore.serve() }
        if let scraped { group.addTask { try await scraped.run() } }
        group.addTask { [self] in
          await drain.wait()
          firestore.beginGracefulShutdown()
          try await Task.sleep(for: options.grace)
        }
        do {
          let address = try await firestore.transport.listeningAddress
          var addresses = Addresses(firestore: "\(Self.host):\(address.ipv4?.port ?? 0)")
          if let scraped {
            try await scraped.waitUntilListening()
            if case .ip4(_, port: let port)? = await scraped.listeningAddress {
              addresses.metrics = "\(Self.host):\(port)"
            }
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
      let ports = [options.firestorePort, options.metricsPort].compactMap(\.self)
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

    private func transport() -> HTTP2ServerTransport.Posix {
      HTTP2ServerTransport.Posix(
        address: .ipv4(host: Self.host, port: options.firestorePort),
        transportSecurity: .plaintext,
        config: .defaults {
          $0.rpc.maxRequestPayloadSize = options.requestLimit
          $0.http2.maxConcurrentStreams = options.callsOfConnection
          // Clients may ping a connection as often as they like.
          $0.connection.keepalive.clientBehavior.minPingIntervalWithoutCalls = .seconds(10)
          $0.connection.keepalive.clientBehavior.allowWithoutCalls = true
        })
    }

    private var services: [any RegistrableRPCService] {
      let names = [
        WireFirestore.descriptor, WireHealth.descriptor, WireServerReflection.descriptor,
      ]
      .map(\.fullyQualifiedService)
      return [
        FirestoreService(directory: directory, drain: drain, metrics: metrics),
        HealthService(drain: drain, services: Set(names)), ReflectionService(services: names),
      ]
    }

    /// Serves Prometheus.
    private func metricsServer(port: Int) async throws -> HTTPServer {
      let server = HTTPServer(
        address: try .inet(ip4: Self.host, port: UInt16(clamping: port)), logger: .disabled)
      await server.appendRoute("GET /metrics") { [metrics] _ in
        HTTPResponse(
          statusCode: .ok, headers: [.contentType: "text/plain; version=0.0.4"],
          body: Data(metrics.text.utf8))
      }
      return server
    }
  }
#endif
