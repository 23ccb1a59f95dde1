// A connection with one stream of messages each way, which breaks: for both ends, or only for the
// client, while the server still works on its requests.

#if Server
  import GRPCCore
  import OndolEngine
  import OndolTestKit

  /// A call with streams in both directions.
  final class SimulatedConnection<Request: Sendable, Response: Sendable>: Sendable {
    typealias Stream = AsyncThrowingStream<Response, any Error>

    private struct State: Sendable {
      var task: Task<Void, Never>?
      var number: Int?
      /// Whether the client can send nothing more.
      var isCut = false
    }

    /// What the client receives.
    let answers: Stream
    private let requests: AsyncThrowingStream<Request, any Error>.Continuation
    private let responses: Stream.Continuation
    private let life: ServerLife
    private let state = Guarded(State())

    /// - Parameters:
    ///   - life: the server.
    ///   - executor: runs the server's end.
    ///   - change: the network's change to an answer; an honest network returns only the answer.
    ///   - serve: the server's call.
    init(
      to life: ServerLife, on executor: SimulationExecutor,
      changing change: @escaping @Sendable (Response) -> [Response] = { [$0] },
      _ serve:
        @escaping @Sendable (RPCAsyncSequence<Request, any Error>, RPCWriter<Response>)
        async throws -> Void
    ) {
      self.life = life
      let (incoming, requests) = AsyncThrowingStream.makeStream(
        of: Request.self, throwing: (any Error).self)
      let (answers, responses) = Stream.makeStream(of: Response.self, throwing: (any Error).self)
      (self.requests, self.responses, self.answers) = (requests, responses, answers)
      let writer = RPCWriter(wrapping: Pipe(to: responses, change))
      let task = Task(executorPreference: executor) {
        do {
          try await serve(RPCAsyncSequence(wrapping: incoming), writer)
          responses.finish()
        } catch {
          responses.finish(throwing: error)
        }
      }
      state.withLock { $0.task = task }
      let number = life.attach { [requests, responses] in
        responses.finish(throwing: Self.broken)
        requests.finish(throwing: Self.broken)
        task.cancel()
      }
      state.withLock { $0.number = number }
    }

    static var broken: RPCError {
      RPCError(code: .unavailable, message: "the connection is broken")
    }

    func send(_ request: Request) {
      // The server may not have noticed yet, and gets nothing more.
      if !state.withLock(\.isCut) { requests.yield(request) }
    }

    /// Sends nothing more.
    func finish() { requests.finish() }

    /// Breaks the connection for the client.
    ///
    /// - Parameter isNoticed: whether the server notices it.
    func cut(isNoticed: Bool) {
      state.withLock { $0.isCut = true }
      responses.finish(throwing: Self.broken)
      guard isNoticed else { return }
      requests.finish(throwing: Self.broken)
      end()
    }

    /// Ends the call as a client does that no longer needs it.
    func end() {
      requests.finish()
      let (task, number) = state.withLock { ($0.task, $0.number) }
      task?.cancel()
      if let number { life.detach(number) }
    }
  }

  /// The server's end of a stream of answers.
  private struct Pipe<Element: Sendable>: RPCWriterProtocol {
    private let stream: AsyncThrowingStream<Element, any Error>.Continuation
    private let change: @Sendable (Element) -> [Element]

    init(
      to stream: AsyncThrowingStream<Element, any Error>.Continuation,
      _ change: @escaping @Sendable (Element) -> [Element]
    ) {
      self.stream = stream
      self.change = change
    }

    func write(_ element: Element) async throws {
      await Task.yield()
      for element in change(element) { stream.yield(element) }
    }

    func write(contentsOf elements: some Sequence<Element>) async throws {
      for element in elements { try await write(element) }
    }
  }
#endif
