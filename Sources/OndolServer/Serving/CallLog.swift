// The calls of gRPC at the server's gate: limits first, then a line in the log and a number in the
// metrics for each call, with method, database, status, time and bytes. It wraps all services.

#if Server
  import GRPCCore
  import Ondol
  import OndolWire

  /// Watches calls from their start to the end of their answer.
  struct CallLog: ServerInterceptor {
    let gate: CallGate

    func intercept<Input: Sendable, Output: Sendable>(
      request: StreamingServerRequest<Input>, context: ServerContext,
      next:
        @concurrent @Sendable (StreamingServerRequest<Input>, ServerContext) async throws ->
        StreamingServerResponse<Output>
    ) async throws -> StreamingServerResponse<Output> {
      let call = WatchedCall(context, request.metadata, gate)
      do {
        try call.admit()
        let request = call.counting(request, context)
        var response = try await call.open.bind { try await next(request, context) }
        switch response.accepted {
        case .success(var contents):
          let producer = contents.producer
          contents.producer = { writer in
            do {
              let metadata = try await call.open.bind { try await producer(writer) }
              call.end(nil)
              return metadata
            } catch {
              call.end(error)
              throw error
            }
          }
          response.accepted = .success(contents)
        case .failure(let error): call.end(error)
        }
        return response
      } catch {
        call.end(error)
        throw error
      }
    }
  }

  /// A call in progress.
  private struct WatchedCall: Sendable {
    /// The calls that have several messages of the client's. Each counts as a call.
    private static let streams: Set<String> = ["Listen", "Write"]

    let open: OpenCall
    private let gate: CallGate
    private let source: CallSource
    private let database: String

    init(_ context: ServerContext, _ metadata: Metadata, _ gate: CallGate) {
      self.gate = gate
      source = CallSource(
        peer: Self.address(in: context.remotePeer),
        forwarded: Self.last(metadata[stringValues: "x-forwarded-for"]),
        bearer: metadata[stringValues: "authorization"].first { _ in true })
      // Clients also name a call's database in the metadata, so that routers need not read the
      // message.
      database = metadata[stringValues: "google-cloud-resource-prefix"].first { _ in true } ?? ""
      open = gate.open(context.descriptor.method, from: source)
    }

    private static func last(_ values: Metadata.StringValues) -> String? {
      var last: String?
      for value in values { last = value }
      return last
    }

    /// The address in gRPC's name of a peer, such as `ipv4:127.0.0.1:5000` or `ipv6:[::1]:5000`.
    private static func address(in peer: String) -> String {
      guard let kind = peer.firstIndex(of: ":"), let port = peer.lastIndex(of: ":"), kind < port
      else { return "" }
      let address = peer[peer.index(after: kind)..<port]
      return String(address.hasPrefix("[") ? address.dropFirst().dropLast() : address)
    }

    func admit() throws(RPCError) {
      do throws(LimitReached) {
        try gate.admit(open, source)
      } catch {
        throw ErrorMapping.rpcError(error.error, in: nil)
      }
    }

    /// The request, each further message of which is admitted as a call.
    func counting<Input: Sendable>(
      _ request: StreamingServerRequest<Input>, _ context: ServerContext
    ) -> StreamingServerRequest<Input> {
      guard Self.streams.contains(context.descriptor.method), gate.limiter.limits != .none else {
        return request
      }
      var request = request
      let messages = request.messages
      request.messages = RPCAsyncSequence(
        wrapping: AdmittedMessages(messages: messages) { [self] in
          try admit()
          guard let account = open.caller?.account else { return }
          do throws(DatabaseError) {
            try gate.admission.admit(account)
          } catch {
            throw ErrorMapping.rpcError(error, in: nil)
          }
        })
      return request
    }

    func end(_ error: (any Error)?) {
      let status = error.map { Self.status(of: $0) } ?? "OK"
      gate.end(
        open, status: status, error: error.map { ($0 as? RPCError)?.message ?? "\($0)" },
        database: database, isDenial: status == "PERMISSION_DENIED",
        isFault: ["INTERNAL", "UNKNOWN", "DATA_LOSS"].contains(status))
    }

    /// The code's name in gRPC's documentation: ALREADY_EXISTS.
    private static func name(of code: RPCError.Code) -> String {
      if code == .internalError { return "INTERNAL" }
      var name = ""
      for character in "\(code)" {
        if character.isUppercase { name += "_" }
        name += character.uppercased()
      }
      return name
    }

    private static func status(of error: any Error) -> String {
      switch error {
      case let error as RPCError: name(of: error.code)
      case is CancellationError: "CANCELLED"
      default: "UNKNOWN"
      }
    }
  }

  /// A client's messages, of which the first has been admitted with its call.
  private struct AdmittedMessages<Message: Sendable>: AsyncSequence, Sendable {
    let messages: RPCAsyncSequence<Message, any Error>
    let admit: @Sendable () throws -> Void

    func makeAsyncIterator() -> Iterator {
      Iterator(messages: messages.makeAsyncIterator(), admit: admit)
    }

    struct Iterator: AsyncIteratorProtocol {
      private var messages: RPCAsyncSequence<Message, any Error>.AsyncIterator
      private let admit: @Sendable () throws -> Void
      private var isFirst = true

      fileprivate init(
        messages: RPCAsyncSequence<Message, any Error>.AsyncIterator,
        admit: @escaping @Sendable () throws -> Void
      ) {
        self.messages = messages
        self.admit = admit
      }

      mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(any Error) -> Message? {
        guard let message = try await messages.next(isolation: actor) else { return nil }
        if !isFirst { try admit() }
        isFirst = false
        return message
      }
    }
  }
#endif
