// A port that speaks HTTP: a listener of Hummingbird's in front of a face. It bounds what a request
// may cost before the face sees it, and watches each call as CallLog does for gRPC's.

#if Server
  import HTTPTypes
  import HummingbirdCore
  import HummingbirdTLS
  import Logging
  import NIOCertificateReloading
  import NIOCore
  import NIOPosix
  import NIOSSL
  import Ondol
  import Synchronization

  /// Serves a face on a port.
  final class HTTPListener: Sendable {
    private static let headerBytes = 64 << 10
    private static let mostHeaders = 200
    /// Idle connections are closed after this time.
    private static let idleTime = TimeAmount.seconds(120)

    private let host: String
    private let serve: @Sendable () async throws -> Void
    private let endGracefully: @Sendable () async throws -> Void
    private let bound = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// - Parameters:
    ///   - port: the port, how to reach it, and what it does with each call.
    init(_ face: any HTTPFace, at port: ServedPort) throws {
      host = port.host
      let answering = HTTPAnswering(face: face, port: port)
      let channel = HTTP1Channel(
        responder: { request, writer, channel in
          try await answering.respond(to: request, writer, channel)
        },
        configuration: HTTP1Channel.Configuration(
          idleTimeout: Self.idleTime,
          httpDecoderConfiguration: .init(
            maxHeaderFieldSize: Self.headerBytes, maxHeaderListSize: Self.headerBytes,
            maxHeaderFieldCount: Self.mostHeaders)))
      if let reloader = port.reloader {
        let security = try TLSConfiguration.makeServerConfiguration(certificateReloader: reloader)
        let server = Self.server(
          GatedChannel(try TLSChannel(channel, tlsConfiguration: security), port.connections),
          port, bound.continuation)
        serve = { try await server.run() }
        endGracefully = { try await server.shutdownGracefully() }
      } else {
        let server = Self.server(
          GatedChannel(channel, port.connections), port, bound.continuation)
        serve = { try await server.run() }
        endGracefully = { try await server.shutdownGracefully() }
      }
    }

    private static func server<Channel: ServerChildChannel>(
      _ channel: Channel, _ port: ServedPort, _ ready: AsyncStream<Int>.Continuation
    ) -> HummingbirdCore.Server<Channel> {
      HummingbirdCore.Server(
        childChannelSetup: channel,
        configuration: ServerConfiguration(address: .hostname(port.host, port: port.number)),
        onServerRunning: { channel in
          ready.yield(channel.localAddress?.port ?? 0)
          ready.finish()
        }, eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
        // Its own lines name no call.
        logger: Logger(label: "ondol.http") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Serves until `shutDown()` or until the task is cancelled.
    ///
    /// - Throws: what the system says of a port that is taken.
    func run() async throws {
      defer { bound.continuation.finish() }
      try await serve()
    }

    /// Host and port, once it listens.
    ///
    /// - Throws: when it never will. `run()` throws the reason.
    var address: String {
      get async throws {
        guard let port = await bound.stream.first(where: { _ in true }) else {
          throw NeverListens()
        }
        return Server.text(host, port)
      }
    }

    /// Accepts no more connections. `run()` returns when the present calls have ended.
    func beginShutdown() {
      Task { [endGracefully] in try? await endGracefully() }
    }

    private struct NeverListens: Error {}
  }

  /// Answers the requests of all connections.
  private struct HTTPAnswering: Sendable {
    let face: any HTTPFace
    let port: ServedPort

    @concurrent func respond(
      to request: Request, _ writer: consuming ResponseWriter, _ channel: any Channel
    ) async throws {
      let peer = channel.remoteAddress?.ipAddress ?? ""
      let (answer, isWhole) = try await answer(request, peer)
      var fields = HTTPFields()
      for header in answer.headers {
        if let name = HTTPField.Name(header.name) {
          fields.append(HTTPField(name: name, value: header.value))
        }
      }
      fields[.contentLength] = String(answer.stream?.length ?? answer.body.count)
      // What is left of a refused body is not read: nobody knows how much it is.
      if !isWhole { fields[.connection] = "close" }
      let head = HTTPResponse(
        status: HTTPResponse.Status(code: answer.status), headerFields: fields)
      try await writer.write(
        response: head, body: request.method == .head ? ResponseBody() : Self.body(of: answer))
      if !isWhole { channel.close(mode: .all, promise: nil) }
    }

    private static func body(of answer: HTTPAnswer) -> ResponseBody {
      guard let (length, bytes) = answer.stream else {
        return ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body))
      }
      return ResponseBody(contentLength: length) { writer in
        for try await piece in bytes { try await writer.write(ByteBuffer(bytes: piece)) }
        try await writer.finish(nil)
      }
    }

    /// The answer, and whether the request was read to its end.
    private func answer(
      _ request: Request, _ peer: String
    ) async throws -> (HTTPAnswer, isWhole: Bool) {
      var headers: [String: String] = [:]
      for field in request.headers { headers[field.name.canonicalName] = field.value }
      headers["host"] = request.head.authority
      let incoming = IncomingBody(request.body, slack: port.requestLimit)
      guard
        var call = HTTPCall(request.method.rawValue, request.head.path ?? "/", headers: headers)
      else {
        return (.failure(400, "INVALID_ARGUMENT"), try await incoming.readRest())
      }
      guard let gate = port.gate else {
        return (await face.answer(call), try await incoming.readRest())
      }
      let source = CallSource(
        peer: peer, forwarded: headers["x-forwarded-for"], bearer: headers["authorization"])
      let open = gate.open(face.name(of: call), from: source)
      // Stays so when the client leaves before its request is whole.
      var answer = HTTPAnswer(status: 400)
      defer {
        open.countReceived(incoming.count)
        gate.end(
          open, status: String(answer.status), isDenial: answer.isDenial,
          isFault: answer.status >= 500)
      }
      do throws(LimitReached) {
        try gate.admit(open, source)
      } catch {
        answer = face.refusal(error)
        return (answer, false)
      }
      call.address = open.address
      if face.takesStream(call) {
        call.stream = incoming.body
      } else if let body = try await incoming.collect(atMost: port.requestLimit) {
        call.body = body
      } else {
        answer = .failure(413, "PAYLOAD_TOO_LARGE")
        return (answer, false)
      }
      answer = await open.bind { [call] in await face.answer(call) }
      open.countSent(answer.stream?.length ?? answer.body.count)
      return (answer, try await incoming.readRest())
    }
  }

  /// The body of a request, which can be read once. What a face leaves of it is read as well, so
  /// that a client which sends all before it listens gets the answer, but not without end.
  private final class IncomingBody: Sendable {
    private struct State: Sendable {
      var hasBegun = false
      var isWhole = false
      var count = 0
    }

    private let request: RequestBody
    /// The most bytes that are read after they are of no use any more.
    private let slack: Int
    private let state = Mutex(State())

    init(_ request: RequestBody, slack: Int) {
      self.request = request
      self.slack = slack
    }

    /// Bytes so far.
    var count: Int { state.withLock(\.count) }

    var body: HTTPBody { HTTPBody(pass) }

    /// The whole body; nil if it is longer than `limit`.
    func collect(atMost limit: Int) async throws -> [UInt8]? {
      var bytes: [UInt8] = []
      do {
        try await pass { piece in
          guard piece.count <= limit - bytes.count else { throw TooLong() }
          bytes += piece
        }
      } catch is TooLong {
        return nil
      }
      return bytes
    }

    /// Reads what nobody has read. Returns whether the body has ended.
    func readRest() async throws -> Bool {
      if !state.withLock(\.hasBegun) { try? await pass { _ in throw TooLong() } }
      return state.withLock(\.isWhole)
    }

    private func pass(_ take: HTTPBody.Take) async throws {
      let isFirst = state.withLock { state in
        defer { state.hasBegun = true }
        return !state.hasBegun
      }
      guard isFirst else { throw TooLong() }
      var failure: (any Error)?
      var unused = 0
      for try await piece in request {
        state.withLock { $0.count += piece.readableBytes }
        if failure == nil {
          do { try await take(Array(piece.readableBytesView)) } catch { failure = error }
        } else {
          unused += piece.readableBytes
          if unused > slack { break }
        }
      }
      if unused <= slack { state.withLock { $0.isWhole = true } }
      if let failure { throw failure }
    }

    private struct TooLong: Error {}
  }

  /// What Prometheus reads.
  struct MetricsFace: HTTPFace {
    let metrics: CallMetrics

    func name(of call: HTTPCall) -> String { "metrics" }

    func answer(_ call: HTTPCall) async -> HTTPAnswer {
      guard call.path == ["metrics"], call.method == "GET" else {
        return .failure(404, "NOT_FOUND")
      }
      return HTTPAnswer(type: "text/plain; version=0.0.4", body: Array(metrics.text.utf8))
    }

    func refusal(_ limit: LimitReached) -> HTTPAnswer { .failure(429, limit.error.message) }
  }
#endif
