// A server and its devices in one process, without sockets. The network between them can be taken
// away.

#if Server && Sync
  import Foundation
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolMapping
  import OndolServerTestKit
  import OndolWire
  import SwiftProtobuf
  import Synchronization

  @testable import OndolServer
  @testable import OndolSync

  /// A server's database, and a way for devices to reach it.
  struct SyncStage: Sendable {
    static let name = DatabaseName(project: "p", id: "(default)")

    let server: Database
    private let directory: any DatabaseDirectory

    init() async throws {
      server = try await Database.inMemory(
        options: Database.Options(changeRetention: Database.ChangeRetention()))
      directory = SingleDatabase(ServedDatabase(server))
    }

    /// A network of a device.
    func network() -> DirectTransport {
      DirectTransport(
        to: firestoreService(of: directory), storage: StorageFace(open: directory))
    }

    /// A synchronised database in memory.
    func device(
      options: Sync.Options = Sync.Options(), bucket: String? = "p.appspot.com",
      isGoogles: Bool = false, following collections: String...
    ) async throws -> SyncDevice {
      let database = try await Database.inMemory()
      let device = try await self.device(
        database, options: options, bucket: bucket, isGoogles: isGoogles)
      for collection in collections {
        try await device.sync.follow(database.collection(collection))
      }
      return device
    }

    /// Synchronises a database.
    func device(
      _ database: Database, options: Sync.Options = Sync.Options(),
      bucket: String? = "p.appspot.com", isGoogles: Bool = false,
      as session: (any SyncSession)? = nil
    ) async throws -> SyncDevice {
      let network = network()
      let sync = try await Sync(
        database, over: network, to: Self.name, bucket: bucket, isGoogles: isGoogles, as: session,
        options: options)
      return SyncDevice(database: database, sync: sync, network: network)
    }
  }

  /// A device of a stage.
  struct SyncDevice: Sendable {
    let database: Database
    let sync: Sync
    let network: DirectTransport

    /// Takes the network away, and waits until the device has noticed.
    func goOffline() async {
      network.cut()
      for await state in sync.states where !state.isOnline { return }
    }

    /// Brings the network back, and waits until everything is exchanged.
    func goOnline() async throws {
      network.mend()
      await sync.reconnect()
      try await sync.settle()
    }

    /// Waits until the document has this number.
    func wait(for path: String, _ number: Int64?) async throws {
      for try await snapshot in database.document(path).snapshots
      where snapshot["n"] as Int64? == number {
        return
      }
    }

    /// Waits until a field of the document has this value.
    func wait<T: FieldReadable & Equatable & Sendable>(
      for document: DocumentReference, _ field: FieldPath, _ value: T
    ) async throws {
      for try await snapshot in document.snapshots where snapshot[field] as T? == value { return }
    }

    /// Waits until the document, which may not be readable at first, has this number.
    func waitUntilReadable(_ path: String, _ number: Int64) async {
      while ((try? await self.number(path)) ?? nil) != number { await Task.yield() }
    }

    func number(_ path: String) async throws -> Int64? {
      try await database.document(path).getDocument()["n"] as Int64?
    }
  }

  /// Calls a service in the same process.
  final class DirectTransport: SyncTransport {
    private struct State: Sendable {
      var isCut = false
      var next = 0
      var cuts: [Int: @Sendable () -> Void] = [:]
      var received = 0
      var refused: String?
      var credentials: [String?] = []
      var requests: [StorageRequest] = []
      var tamper: Tamper?
      /// Rings when messages of listen streams go on, while they do not.
      var holding: Bell?
    }

    /// Changes what the server's storage answers; the answer is lost when it throws.
    typealias Tamper = @Sendable (StorageRequest, StorageAnswer) throws -> StorageAnswer

    private let service: any WireFirestore.SimpleServiceProtocol
    private let storage: any HTTPFace
    private let state = Mutex(State())

    init(to service: any WireFirestore.SimpleServiceProtocol, storage: any HTTPFace) {
      self.service = service
      self.storage = storage
    }

    /// The number of messages that the device has received.
    var received: Int { state.withLock(\.received) }

    /// The tokens that streams were opened with.
    var credentials: [String?] { state.withLock(\.credentials) }

    /// The requests to storage.
    var requests: [StorageRequest] { state.withLock(\.requests) }

    func tamper(_ change: Tamper?) { state.withLock { $0.tamper = change } }

    func call(
      _ credential: String?, _ request: StorageRequest
    ) async throws -> StorageAnswer {
      try open(credential)
      let tamper = state.withLock { state in
        state.requests.append(request)
        return state.tamper
      }
      let answer = try await request.answer(of: storage)
      return try tamper?(request, answer) ?? answer
    }

    func cut() {
      let cuts = state.withLock { state in
        state.isCut = true
        defer { state.cuts = [:] }
        return state.cuts.values
      }
      for cut in cuts { cut() }
    }

    func mend() { state.withLock { $0.isCut = false } }

    /// Keeps the messages of listen streams, and lets answers to writes pass.
    func holdListening() { state.withLock { $0.holding = Bell() } }

    private var gate: Bell? { state.withLock(\.holding) }

    func releaseListening() { state.withLock { $0.holding.take() }?.ring() }

    /// Refuses streams with this token.
    func refuse(_ credential: String) { state.withLock { $0.refused = credential } }

    func close() async { cut() }

    private func open(_ credential: String?) throws {
      try state.withLock { state in
        state.credentials.append(credential)
        guard !state.isCut else { throw RPCError(code: .unavailable, message: "no network") }
        guard credential == nil || credential != state.refused else {
          throw RPCError(code: .unauthenticated, message: "the token has expired")
        }
      }
    }

    func listen(
      _ credential: String?, _ requests: AsyncStream<WireListenRequest>,
      _ receive: @escaping @Sendable (WireListenResponse) async throws -> Void
    ) async throws {
      try open(credential)
      let context = context(WireFirestore.Method.Listen.descriptor)
      let held: @Sendable (WireListenResponse) async throws -> Void = { [self] message in
        await gate?.wait()
        try await receive(message)
      }
      try await pump(requests, held) { [service] requests, answers in
        try await service.listen(request: requests, response: answers, context: context)
      }
    }

    func write(
      _ credential: String?, _ requests: AsyncStream<WireWriteRequest>,
      _ receive: @escaping @Sendable (WireWriteResponse) async throws -> Void
    ) async throws {
      try open(credential)
      let context = context(WireFirestore.Method.Write.descriptor)
      try await pump(requests, receive) { [service] requests, answers in
        try await service.write(request: requests, response: answers, context: context)
      }
    }

    private func context(_ method: MethodDescriptor) -> ServerContext {
      ServerContext(
        descriptor: method, remotePeer: "device", localPeer: "server",
        cancellation: ServerContext.RPCCancellationHandle())
    }

    private func pump<Request: Sendable, Response: Sendable>(
      _ requests: AsyncStream<Request>,
      _ receive: @escaping @Sendable (Response) async throws -> Void,
      _ serve:
        @escaping @Sendable (RPCAsyncSequence<Request, any Error>, RPCWriter<Response>)
        async throws -> Void
    ) async throws {
      let (incoming, ask) = AsyncThrowingStream.makeStream(
        of: Request.self, throwing: (any Error).self)
      let (answers, answer) = AsyncThrowingStream.makeStream(
        of: Response.self, throwing: (any Error).self)
      let number = state.withLock { state in
        state.next += 1
        state.cuts[state.next] = {
          let error = RPCError(code: .unavailable, message: "the network is gone")
          ask.finish(throwing: error)
          answer.finish(throwing: error)
        }
        return state.next
      }
      defer { state.withLock { _ = $0.cuts.removeValue(forKey: number) } }
      try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask {
          for await request in requests { ask.yield(request) }
          ask.finish()
          return false
        }
        group.addTask {
          do {
            try await serve(RPCAsyncSequence(wrapping: incoming), RPCWriter(wrapping: Pipe(answer)))
            answer.finish()
          } catch {
            answer.finish(throwing: error)
          }
          return false
        }
        group.addTask { [self] in
          for try await message in answers {
            state.withLock { $0.received += 1 }
            try await receive(message)
          }
          return true
        }
        defer { group.cancelAll() }
        while let isOver = try await group.next() { if isOver { return } }
      }
    }
  }

  /// The server's end of a stream.
  private struct Pipe<Element: Sendable>: RPCWriterProtocol {
    private let stream: AsyncThrowingStream<Element, any Error>.Continuation

    init(_ stream: AsyncThrowingStream<Element, any Error>.Continuation) {
      self.stream = stream
    }

    func write(_ element: Element) async throws { stream.yield(element) }

    func write(contentsOf elements: some Sequence<Element>) async throws {
      for element in elements { stream.yield(element) }
    }
  }
#endif
