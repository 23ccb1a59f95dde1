// A device of a simulated server: a database on a disk of its own, which loses power or is killed,
// a clock that is years off, and a network that breaks, vanishes for long and comes back.

#if Server && Sync
  import Foundation
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolMapping
  import OndolSync
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf

  /// The network between a device and the servers, from the device's start to its end.
  final class SimulatedTransport: SyncTransport {
    private struct State: Sendable {
      var random: SeededRandom
      var isCut = false
      var isOver = false
      var breaks = true
      var next = 0
      var cuts: [Int: @Sendable () -> Void] = [:]
      var broken = 0
    }

    private let site: SimulatedSite
    private let executor: SimulationExecutor
    private let sabotage: SyncSabotage?
    private let state: Guarded<State>

    init(
      to site: SimulatedSite, seed: UInt64, _ sabotage: SyncSabotage?,
      on executor: SimulationExecutor
    ) {
      self.site = site
      self.sabotage = sabotage
      self.executor = executor
      state = Guarded(State(random: SeededRandom(seed: seed)))
    }

    /// The number of streams that broke.
    var broken: Int { state.withLock(\.broken) }

    /// Takes the network away, or brings it back.
    func setCut(_ isCut: Bool) {
      end { state in state.isCut = isCut }
    }

    /// Whether streams break by themselves.
    func setBreaks(_ breaks: Bool) { state.withLock { $0.breaks = breaks } }

    func close() async { end { $0.isOver = true } }

    /// The device is dead: nothing leaves it from now on.
    func die() { end { $0.isOver = true } }

    private func end(_ change: (inout State) -> Void) {
      let cuts = state.withLock { state in
        change(&state)
        guard state.isCut || state.isOver else { return [(@Sendable () -> Void)]() }
        defer { state.cuts = [:] }
        return state.cuts.sorted { $0.key < $1.key }.map(\.value)
      }
      for cut in cuts { cut() }
    }

    private static let unavailable = RPCError(code: .unavailable, message: "there is no network")

    private func chance(_ numerator: Int, in denominator: Int) -> Bool {
      state.withLock { $0.random.chance(numerator, in: denominator) }
    }

    private func life() async throws -> ServerLife {
      let server = try state.withLock { state in
        guard !state.isCut, !state.isOver else { throw Self.unavailable }
        return state.random.below(site.serverCount)
      }
      return try await site.life(of: server)
    }

    func call(
      _ credential: String?, _ request: StorageRequest
    ) async throws -> StorageAnswer {
      let life = try await life()
      // The network breaks before the server has the request, or after it.
      if breaksNow() { throw Self.unavailable }
      if sabotage == .lostContents, request.method != "GET" {
        return StorageAnswer(status: 200, headers: [:], body: [])
      }
      let answer = try await request.answer(of: life.storage)
      if life.isOver || breaksNow() || state.withLock({ $0.isCut || $0.isOver }) {
        throw Self.unavailable
      }
      return answer
    }

    private func context(_ method: MethodDescriptor) -> ServerContext {
      ServerContext(
        descriptor: method, remotePeer: "device", localPeer: "server",
        cancellation: ServerContext.RPCCancellationHandle())
    }

    func listen(
      _ credential: String?, _ requests: AsyncStream<WireListenRequest>,
      _ receive: @escaping @Sendable (WireListenResponse) async throws -> Void
    ) async throws {
      let (life, tamperer) = (try await life(), SyncTamperer(sabotage))
      let context = context(WireFirestore.Method.Listen.descriptor)
      let connection = SimulatedConnection<WireListenRequest, WireListenResponse>(
        to: life, on: executor, changing: { tamperer.change($0) }
      ) { requests, answers in
        try await life.service.listen(request: requests, response: answers, context: context)
      }
      try await pump(connection, requests, { try await tamperer.change($0, life) }, receive)
    }

    func write(
      _ credential: String?, _ requests: AsyncStream<WireWriteRequest>,
      _ receive: @escaping @Sendable (WireWriteResponse) async throws -> Void
    ) async throws {
      let (life, tamperer) = (try await life(), SyncTamperer(sabotage))
      let context = context(WireFirestore.Method.Write.descriptor)
      let connection = SimulatedConnection<WireWriteRequest, WireWriteResponse>(
        to: life, on: executor
      ) { requests, answers in
        try await life.service.write(request: requests, response: answers, context: context)
      }
      try await pump(connection, requests, { tamperer.change($0) }, receive)
    }

    private func pump<Request: Sendable, Response: Sendable>(
      _ connection: SimulatedConnection<Request, Response>, _ requests: AsyncStream<Request>,
      _ change: @escaping @Sendable (Request) async throws -> Request,
      _ receive: @escaping @Sendable (Response) async throws -> Void
    ) async throws {
      let isNoticed = chance(1, in: 2)
      let number = state.withLock { state in
        state.next += 1
        state.cuts[state.next] = { connection.cut(isNoticed: isNoticed) }
        return state.next
      }
      if state.withLock({ $0.isCut || $0.isOver }) { connection.cut(isNoticed: true) }
      defer {
        state.withLock { _ = $0.cuts.removeValue(forKey: number) }
        connection.end()
      }
      try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask {
          for await request in requests { connection.send(try await change(request)) }
          connection.finish()
          return false
        }
        group.addTask { [self] in
          for try await message in connection.answers {
            if breaksNow() { connection.cut(isNoticed: isNoticed) }
            try await receive(message)
          }
          return true
        }
        defer { group.cancelAll() }
        while let isOver = try await group.next() { if isOver { return } }
      }
    }

    private func breaksNow() -> Bool {
      state.withLock { state in
        guard state.breaks, state.random.chance(1, in: 30) else { return false }
        state.broken += 1
        return true
      }
    }
  }

  /// A device from its start to its end.
  final class DeviceLife: Sendable {
    let database: Database
    let sync: Sync
    let transport: SimulatedTransport
    private let isDead = Guarded(false)

    init(_ database: Database, _ sync: Sync, _ transport: SimulatedTransport) {
      self.database = database
      self.sync = sync
      self.transport = transport
    }

    /// Whether what it does now is of no effect.
    var isOver: Bool { isDead.withLock { $0 } }

    func end() {
      isDead.withLock { $0 = true }
      transport.die()
    }
  }

  /// A device that is restarted with what is on its disk.
  final class SimulatedDevice: Sendable {
    private struct State: Sendable {
      var disk = SimulatedFileSystem()
      var life: DeviceLife?
      var databases: [Database] = []
      var lives = 0
      var time: Int64
      var isCut = false
      var breaks = true
      var broken = 0
    }

    let number: Int
    private let site: SimulatedSite
    private let seed: UInt64
    private let sabotage: SyncSabotage?
    /// Whether the device takes the server for one of Google's.
    private let isGoogles: Bool
    private let executor: SimulationExecutor
    private let state: Guarded<State>

    init(
      _ number: Int, of site: SimulatedSite, seed: UInt64, _ sabotage: SyncSabotage?,
      isGoogles: Bool, on executor: SimulationExecutor
    ) {
      self.number = number
      self.site = site
      self.seed = SeededRandom.derive(seed, 1_000 + number)
      self.sabotage = sabotage
      self.isGoogles = isGoogles
      self.executor = executor
      // Clocks are years off: nobody may rely on them.
      let years: [Int64] = [-20, 0, 15, 3, -7]
      let year: Int64 = 365 * 86_400 * 1_000_000
      state = Guarded(State(time: 1_000_000_000_000_000 + years[number % years.count] * year))
    }

    /// The number of streams that broke.
    var broken: Int {
      state.withLock { $0.broken + ($0.life?.transport.broken ?? 0) }
    }

    /// Starts with what is on the disk.
    func start() async throws {
      let (disk, lives, time, isCut, breaks) = state.withLock { state in
        state.lives += 1
        return (state.disk, state.lives, state.time, state.isCut, state.breaks)
      }
      let seed = SeededRandom.derive(seed, lives)
      let world = SimulatedWorld(fileSystem: disk, seed: seed, startTime: time, threads: executor)
      let options = Database.Options(
        durability: sabotage == .unsyncedCommits ? .memory : .power, shardCount: 2,
        serverTimeout: nil)
      var engineOptions = EngineOptions()
      engineOptions.memtableSize = 16 << 10
      engineOptions.logSize = 32 << 10
      engineOptions.firstPrewrittenSize = 4 << 10
      let database = try await Database.open(
        at: "/device", options: options, environment: SimulatedSite.patient(world.environment),
        engineOptions: engineOptions)
      state.withLock { $0.databases.append(database) }
      let transport = SimulatedTransport(to: site, seed: seed ^ 7, sabotage, on: executor)
      transport.setCut(isCut)
      transport.setBreaks(breaks)
      var syncOptions = Sync.Options()
      // Some contents of a history need several requests.
      syncOptions.contentPiece = 1_000
      syncOptions.contents = number.isMultiple(of: 2) ? .lazy : .eager
      let sync = try await Sync(
        database, over: transport, to: DatabaseName(project: "p", id: "(default)"),
        bucket: "p.appspot.com", isGoogles: isGoogles, options: syncOptions)
      try await sync.merge(of: "merged", by: Self.joinLines)
      for follow in Self.follows(of: database) { try await sync.follow(follow) }
      let life = DeviceLife(database, sync, transport)
      state.withLock { $0.life = life }
    }

    /// The collections that devices follow. Of the last one, only a part.
    static let collections = [
      "counters", "made", "pairs", "tally", "photos", "merged", "bookings", "slots", "notes",
    ]
    static let noteLimit: Int64 = 6

    /// Keeps the lines of both sides.
    private static let joinLines: MergeRule = { _, mine, theirs in
      guard let mine, let theirs else { return mine ?? theirs }
      var merged = theirs
      let lines = (theirs["lines"]?.array ?? []) + (mine["lines"]?.array ?? [])
      var (seen, joined) = (Set<Value>(), [Value]())
      for line in lines where seen.insert(line).inserted { joined.append(line) }
      merged["lines"] = .array(joined)
      return merged
    }

    static func follows(of database: Database) -> [Query] {
      collections.map { name in
        let collection = database.collection(name)
        return name == "notes"
          ? collection.whereField("n", isLessThan: noteLimit) : collection.query
      }
    }

    /// Ends abruptly.
    func end(cutsPower: Bool, seed: UInt64) {
      let life = state.withLock { state in
        state.disk = cutsPower ? state.disk.crash(seed: seed) : state.disk.kill()
        state.time = state.life?.database.now() ?? state.time
        state.broken += state.life?.transport.broken ?? 0
        defer { state.life = nil }
        return state.life
      }
      life?.end()
    }

    /// The present life; waits until there is one.
    func life() async throws -> DeviceLife {
      while true {
        try Task.checkCancellation()
        if let life = state.withLock({ $0.life }) { return life }
        await executor.doze()
      }
    }

    func setCut(_ isCut: Bool) {
      let life = state.withLock { state in
        state.isCut = isCut
        return state.life
      }
      life?.transport.setCut(isCut)
    }

    func setBreaks(_ breaks: Bool) {
      let life = state.withLock { state in
        state.breaks = breaks
        return state.life
      }
      life?.transport.setBreaks(breaks)
    }

    func close() async {
      let (life, databases) = state.withLock { state in
        defer { state.databases = [] }
        return (state.life, state.databases)
      }
      life?.end()
      for database in databases { try? await database.close() }
    }
  }

  /// A dishonest network's changes.
  private final class SyncTamperer: Sendable {
    private let sabotage: SyncSabotage?
    private let state = Guarded<(changes: Int, moment: WireListenResponse?)>((0, nil))

    init(_ sabotage: SyncSabotage?) {
      self.sabotage = sabotage
    }

    func change(_ message: WireListenResponse) -> [WireListenResponse] {
      let isChange = if case .documentChange = message.responseType { true } else { false }
      return state.withLock { state in
        if isChange { state.changes += 1 }
        switch sabotage {
        case .lostChanges: return isChange && state.changes.isMultiple(of: 5) ? [] : [message]
        case .halfCommits:
          if message.targetChange.targetChangeType == .noChange, !isChange {
            state.moment = message
          }
          guard isChange, let moment = state.moment else { return [message] }
          return [message, moment]
        case .keptDocuments:
          switch message.responseType {
          case .documentDelete, .documentRemove: return []
          default: return [message]
          }
        case .lateMoments:
          guard message.targetChange.targetChangeType == .noChange, !isChange else {
            return [message]
          }
          var late = message
          late.targetChange.readTime.seconds = 0
          return [late]
        default: return [message]
        }
      }
    }

    func change(
      _ request: WireListenRequest, _ life: ServerLife
    ) async throws -> WireListenRequest {
      guard sabotage == .skippedCommits, !request.addTarget.resumeToken.isEmpty else {
        return request
      }
      var request = request
      request.addTarget.resumeToken = Data(try await life.newestToken().description.utf8)
      request.addTarget.clearExpectedCount()
      return request
    }

    func change(_ request: WireWriteRequest) -> WireWriteRequest {
      var request = request
      switch sabotage {
      case .forgottenNames: request.streamToken = Data()
      case .forgottenReliances:
        for index in request.writes.indices
        where request.writes[index].currentDocument.conditionType != nil {
          if case .updateTime? = request.writes[index].currentDocument.conditionType {
            request.writes[index].clearCurrentDocument()
          }
        }
        request.writes.removeAll { write in
          if case .verify? = write.operation { !write.hasCurrentDocument } else { false }
        }
      case .forgottenMerges:
        for index in request.writes.indices
        where request.writes[index].update.name.contains("/merged/") {
          request.writes[index].clearCurrentDocument()
        }
      case .forgottenFootprints:
        let parts = String(decoding: request.streamToken, as: UTF8.self).split(separator: ":")
        if parts.count == 4 {
          request.streamToken = Data(parts.prefix(3).joined(separator: ":").utf8)
        }
      case .lostEntries:
        // A network that throws a write away and keeps the group.
        state.withLock { $0.changes += 1 }
        if !request.writes.isEmpty, state.withLock({ $0.changes.isMultiple(of: 9) }) {
          for index in request.writes.indices {
            var empty = WireWrite()
            if case .update(let document)? = request.writes[index].operation {
              empty.verify = document.name
              request.writes[index] = empty
            }
          }
        }
      default: break
      }
      return request
    }
  }
#endif
