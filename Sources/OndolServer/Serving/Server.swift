// The server: ports, services and how it ends. Start reading here; a call goes on in
// Firestore/FirestoreService.

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
  /// Google's clients are pointed at it by the setting that they have for Firestore's emulator, and
  /// need nothing else. Everyone who reaches the port may read and write, so it listens on this
  /// machine alone.
  public final class Server: Sendable {
    /// How a server serves.
    public struct Options: Sendable {
      /// The port for Firestore's clients; a free one for 0.
      public var firestorePort = 8080
      /// The port for Prometheus; a free one for 0, and none when nil.
      public var metricsPort: Int?
      /// How long calls may take to end once the server shuts down.
      public var grace = Duration.seconds(10)
      /// Bytes of a request, or of one message of a stream.
      public var requestLimit = 16 << 20
      /// Calls that one connection may have under way.
      public var callsOfConnection = 20_000
      /// Gets a line for each call.
      public var logger = Logger(label: "ondol.server")

      /// The defaults.
      public init() {}
    }

    /// Where a server listens, each as host and port.
    public struct Addresses: Sendable, Hashable {
      /// For Firestore's clients: the value of `FIRESTORE_EMULATOR_HOST`.
      public var firestore: String
      /// For Prometheus; nil without.
      public var metrics: String?
    }

    private let directory: any DatabaseDirectory
    private let options: Options
    private let drain = Drain()
    private let metrics = CallMetrics()
    private let isRunning = Mutex(false)

    /// A server of one database, which is the usual database of every project.
    ///
    /// - Parameters:
    ///   - database: stays open when the server ends.
    ///   - options: how it serves.
    public convenience init(_ database: Database, options: Options = Options()) {
      self.init(SingleDatabase(ServedDatabase(database)), options: options)
    }

    /// A server of the databases that a directory knows.
    package init(_ directory: any DatabaseDirectory, options: Options) {
      self.directory = directory
      self.options = options
    }

    private static let host = "127.0.0.1"

    /// Serves until `shutDown()` is called or the task is cancelled.
    ///
    /// - Parameter whenReady: called once, when the server listens.
    /// - Throws: `DatabaseError` with `.failedPrecondition` when it runs already or has run, and
    ///   with `.unavailable` when a port is taken.
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
          // The first to end is the server itself, its grace, or a port that is taken.
          try await group.next()
        } catch {
          group.cancelAll()
          throw await reason(error, &group)
        }
        group.cancelAll()
      }
    }

    /// Why the server does not run: a port that it cannot have is known to those who listen.
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

    /// Takes no more calls, ends streams with UNAVAILABLE, lets calls under way finish for
    /// `Options.grace`, and then has `run(whenReady:)` return.
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
          // Clients ask whether a connection lives as often as they like.
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

    /// Answers Prometheus.
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
