// Devices that synchronise with dying servers over a network that breaks. One history is a few
// devices that write, offline and online, lose power and come back, and somebody who writes on the
// server, until all is quiet.
//
// The promises hold whatever happens. After quiet, every device has what the server has of what it
// follows, and keeps nothing else. An increment that a device has acknowledged counts exactly once.
// A transaction made offline is one commit of the server or none. Of several creations of one
// document one wins, and the others become rejections. Documents that the app's rule merges lose no
// line. Of transactions that found the same seat free one books it. What was taken and released is
// free again on every device. No listener on a device ever sees half of a commit of the server, or
// a document that does not wait and is not the server's. Nothing is left in the outbox, or of
// states that are kept for waiting writes.

#if Server && Sync
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolSync
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf

  /// A promise that is broken on purpose, which a trial must notice.
  package enum SyncSabotage: String, Sendable, CaseIterable {
    case lostChanges = "changes are lost on their way to a device"
    case halfCommits = "moments come in the middle of commits"
    case skippedCommits = "a device that comes back skips commits"
    case forgottenNames = "groups of writes lose their names"
    case forgottenReliances = "what transactions rely on is not checked"
    case forgottenMerges = "merged writes overwrite what they have not seen"
    case forgottenFootprints = "what transactions have read by queries is not checked"
    case unmarkedWrites = "documents are not marked while they wait"
    case lostEntries = "a write is answered and not made"
    case keptDocuments = "documents that leave stay on devices"
    case lostContents = "a server forgets the bytes that it was sent"
    case lateMoments = "moments come without their time"
    case unsyncedCommits = "a device acknowledges before its disk has it"
  }

  /// The counts of trials.
  package struct SyncCounts: Sendable {
    package var increments = 0
    package var transactions = 0
    /// Lines of documents that are merged.
    package var lines = 0
    package var bookings = 0
    package var rejections = 0
    /// Streams that broke.
    package var connections = 0
    /// Servers and devices that died.
    package var deaths = 0
    /// Results that listeners on devices were shown.
    package var results = 0
    /// Contents that were read on a device that another one had put.
    package var contents = 0

    package init() {}

    package static func += (left: inout SyncCounts, right: SyncCounts) {
      left.increments += right.increments
      left.transactions += right.transactions
      left.lines += right.lines
      left.bookings += right.bookings
      left.rejections += right.rejections
      left.connections += right.connections
      left.deaths += right.deaths
      left.results += right.results
      left.contents += right.contents
    }
  }

  /// What the devices acknowledged.
  struct SyncLedger: Sendable {
    /// Increments of each counter: acknowledged ones, and those of a device that died meanwhile.
    var added: [String: Int] = [:]
    var unsure: [String: Int] = [:]
    /// Transactions on the shared number.
    var counted = 0
    var unsureCounted = 0
    /// Increments of the same number by thousands, which read nothing.
    var bumped = 0
    var unsureBumped = 0
    /// Creations of each document.
    var made: [String: Int] = [:]
    var unsureMade: [String: Int] = [:]
    /// Lines of the document that is merged. A device whose document changed between its reading
    /// and its writing removes what came in between on purpose.
    var lines: Set<String> = []
    var unsureLines: Set<String> = []
    var removedLines: Set<String> = []
    /// Bookings of each seat.
    var booked: [Int: Int] = [:]
    var unsureBooked: [Int: Int] = [:]
    var counts = SyncCounts()
  }

  /// One history.
  package struct SyncTrial: Sendable {
    private static let turns = 14
    /// The most steps until all is quiet. A history has about a tenth of them.
    private static let mostSteps = 4_000_000
    /// The same, when it need not become quiet.
    private static let mostSabotagedSteps = 400_000

    let seed: UInt64
    let sabotage: SyncSabotage?
    /// Whether the devices take the server for one of Google's: what they write counts at least
    /// once then.
    let isGoogles: Bool
    let site: SimulatedSite
    let devices: [SimulatedDevice]
    let executor: SimulationExecutor
    let ledger = Guarded(SyncLedger())
    let trace: (@Sendable (String) -> Void)?

    /// Runs the history of a seed.
    ///
    /// - Parameter trace: receives a line for each event.
    /// - Throws: `ServeFault` with the seed and the broken promise.
    package static func run(
      seed: UInt64, sabotage: SyncSabotage? = nil, isGoogles: Bool = false,
      trace: (@Sendable (String) -> Void)? = nil
    ) throws -> SyncCounts {
      do {
        return try SimulationExecutor.run(seed: seed) { executor in
          try await SyncTrial(seed: seed, sabotage, isGoogles, trace, on: executor).run()
        }
      } catch let error as ServeFault {
        throw ServeFault(description: "seed \(seed): \(error.description)")
      }
    }

    private init(
      seed: UInt64, _ sabotage: SyncSabotage?, _ isGoogles: Bool,
      _ trace: (@Sendable (String) -> Void)?, on executor: SimulationExecutor
    ) {
      (self.seed, self.sabotage, self.trace, self.executor) = (seed, sabotage, trace, executor)
      self.isGoogles = isGoogles
      let site = SimulatedSite(
        seed: seed, serverCount: seed.isMultiple(of: 3) ? 1 + Int(seed / 3 % 3) : nil,
        durability: .power, on: executor)
      self.site = site
      devices = (0..<(2 + Int(seed % 3))).map {
        SimulatedDevice(
          $0, of: site, seed: seed, sabotage, isGoogles: isGoogles, on: executor)
      }
    }

    func fault(_ text: String) -> ServeFault { ServeFault(description: text) }

    private var mostSteps: Int { sabotage == nil ? Self.mostSteps : Self.mostSabotagedSteps }

    func say(_ text: @autoclosure () -> String) { trace?(text()) }

    func random(_ number: Int) -> SeededRandom {
      SeededRandom(seed: SeededRandom.derive(seed, number))
    }

    func run() async throws -> SyncCounts {
      for server in 0..<site.serverCount { try await site.start(server) }
      let result: Result<Void, any Error>
      do {
        try await commit([
          ServeClient.write("counters/a", 0), ServeClient.write("counters/b", 0),
          ServeClient.write("tally/t", 0), ServeClient.write("merged/k", 0),
        ])
        site.setFaults(true)
        try await live()
        result = .success(try await compare())
      } catch {
        result = .failure(error)
      }
      site.setFaults(false)
      for device in devices {
        let broken = device.broken
        ledger.withLock { $0.counts.connections += broken }
        await device.close()
      }
      await site.close()
      try result.get()
      return ledger.withLock { $0.counts }
    }

    // MARK: - The server's side

    /// Commits on the server, until it answers.
    func commit(_ writes: [WireWrite]) async throws {
      let client = ServeClient(
        site: site, executor: executor, ledger: ServeLedger(), sabotage: nil, number: 900,
        trace: nil)
      while true {
        try Task.checkCancellation()
        let life = try await site.life(of: 0)
        do {
          _ = try await client.call(life) {
            try await life.service.commit(
              request: .with {
                $0.database = ServeClient.database
                $0.writes = writes
              }, context: client.context(WireFirestore.Method.Commit.descriptor))
          }
          return
        } catch {
          guard ServeClient.isVague(error) else { throw error }
          await executor.doze()
        }
      }
    }

    func pair(_ name: String, _ number: Int) -> [WireWrite] {
      ["\(name)-l", "\(name)-r"].map { ServeClient.write("pairs/\($0)", number) }
    }

    /// Writes pairs, which listeners on devices must never see half of, and moves notes.
    func writeOnServer() async throws {
      var random = random(500)
      for turn in 0..<20 {
        for _ in 0..<random.below(60) { await Task.yield() }
        let name = "p\(random.below(3))"
        if random.chance(1, in: 5) {
          try await commit(["\(name)-l", "\(name)-r"].map { ServeClient.delete("pairs/\($0)") })
        } else {
          try await commit(pair(name, turn))
        }
        if random.chance(1, in: 2) {
          try await commit([
            ServeClient.write("notes/n\(random.below(5))", random.below(10)),
            ServeClient.increment("counters/\(random.chance(1, in: 2) ? "x" : "y")"),
            ServeClient.increment("merged/k"),
          ])
        }
      }
    }

    func endServers() async throws {
      var random = random(200)
      for _ in 0..<random.below(3) {
        for _ in 0..<random.below(600) { await Task.yield() }
        let server = random.below(site.serverCount)
        site.end(server, cutsPower: random.chance(2, in: 3), seed: random.next())
        say("server \(server) ends")
        ledger.withLock { $0.counts.deaths += 1 }
        for _ in 0..<random.below(40) { await Task.yield() }
        try await site.start(server)
      }
    }

    // MARK: - Devices

    func live() async throws {
      for device in devices {
        try await device.start()
        say("device \(device.number) starts")
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for device in devices { group.addTask { try await watch(device) } }
        group.addTask {
          try await withThrowingTaskGroup(of: Void.self) { group in
            for device in devices {
              group.addTask { try await use(device) }
              group.addTask { try await trouble(device) }
            }
            group.addTask { try await writeOnServer() }
            group.addTask { try await endServers() }
            for try await _ in group {}
          }
          try await calm()
        }
        for try await _ in group {}
      }
    }

    /// Ends all trouble, waits until devices and server have exchanged everything, and makes the
    /// last commit, which listeners wait for.
    func calm() async throws {
      site.setFaults(false)
      say("calm")
      for device in devices {
        device.setBreaks(false)
        device.setCut(false)
      }
      for device in devices {
        let life = try await device.life()
        await life.sync.reconnect()
        while !life.sync.currentState.isSettled {
          guard executor.steps < mostSteps else {
            throw fault("device \(device.number) does not settle: \(life.sync.currentState)")
          }
          await executor.doze()
        }
        say("device \(device.number) has settled")
      }
      try await commit(pair("last", -1))
      say("after \(executor.steps) steps")
    }

    func trouble(_ device: SimulatedDevice) async throws {
      var random = random(300 + device.number)
      for _ in 0..<random.below(5) {
        for _ in 0..<random.below(500) { await Task.yield() }
        switch random.below(3) {
        case 0:
          device.setCut(true)
          say("device \(device.number) is offline")
          for _ in 0..<random.below(600) { await Task.yield() }
          // Hours may pass.
          for _ in 0..<random.below(20) { await executor.doze() }
          device.setCut(false)
          say("device \(device.number) is online")
        default:
          _ = try await device.life()
          device.end(
            cutsPower: sabotage == .unsyncedCommits || random.chance(1, in: 2), seed: random.next())
          say("device \(device.number) ends")
          ledger.withLock { $0.counts.deaths += 1 }
          for _ in 0..<random.below(60) { await Task.yield() }
          try await device.start()
          say("device \(device.number) starts")
        }
      }
    }

    /// What the app on a device does.
    func use(_ device: SimulatedDevice) async throws {
      var random = random(100 + device.number)
      for turn in 0..<Self.turns {
        for _ in 0..<random.below(80) { await Task.yield() }
        let life = try await device.life()
        do {
          let name = "d\(device.number)-\(turn)"
          switch random.below(13) {
          case 0, 1: try await increment(random.chance(1, in: 2) ? "a" : "b", life)
          case 2: try await count(life)
          case 9: try await bump(life)
          case 3: try await make("m\(random.below(4))", name, life)
          case 4, 5: try await addLine(name, life)
          case 6: try await book(random.below(3), name, life)
          case 7, 8: try await take(name, "d\(device.number)", life)
          case 10: try await photograph(&random, name, life)
          case 11: try await look(life)
          default: try await note(&random, life)
          }
        } catch let error as DatabaseError {
          // The document is not there, or is there, or the device has died.
          say("device \(device.number): \(error)")
          guard
            life.isOver || [.notFound, .alreadyExists, .failedPrecondition].contains(error.code)
          else { throw fault("device \(device.number) cannot write: \(error)") }
        }
      }
    }

    func increment(_ name: String, _ life: DeviceLife) async throws {
      ledger.withLock { $0.unsure[name, default: 0] += 1 }
      var isUnsure = false
      defer { if !isUnsure { ledger.withLock { $0.unsure[name, default: 0] -= 1 } } }
      do {
        try await life.database.document("counters/\(name)").updateData([
          "n": FieldValue.increment(1)
        ])
      } catch {
        isUnsure = life.isOver
        throw error
      }
      isUnsure = life.isOver
      guard !isUnsure else { return }
      ledger.withLock { ledger in
        ledger.added[name, default: 0] += 1
        ledger.counts.increments += 1
      }
    }

    func count(_ life: DeviceLife) async throws {
      let tally = life.database.document("tally/t")
      ledger.withLock { $0.unsureCounted += 1 }
      var isUnsure = false
      defer { if !isUnsure { ledger.withLock { $0.unsureCounted -= 1 } } }
      let number: Int64
      do {
        number = try await life.database.runTransaction { transaction in
          let document = try transaction.getDocument(tally)
          guard let number = document["n"] as Int64? else {
            throw DatabaseError(.notFound, "the tally has not arrived")
          }
          try transaction.setData(["n": number + 1], forDocument: tally)
          return number + 1
        }
      } catch {
        isUnsure = life.isOver
        throw error
      }
      isUnsure = life.isOver
      guard !isUnsure else { return }
      say("counted to \(number)")
      ledger.withLock { ledger in
        ledger.counted += 1
        ledger.counts.transactions += 1
      }
    }

    func bump(_ life: DeviceLife) async throws {
      ledger.withLock { $0.unsureBumped += 1 }
      var isUnsure = false
      defer { if !isUnsure { ledger.withLock { $0.unsureBumped -= 1 } } }
      do {
        try await life.database.document("tally/t").updateData(["n": FieldValue.increment(1_000)])
      } catch {
        isUnsure = life.isOver
        throw error
      }
      isUnsure = life.isOver
      if !isUnsure { ledger.withLock { $0.bumped += 1 } }
    }

    func make(_ name: String, _ maker: String, _ life: DeviceLife) async throws {
      ledger.withLock { $0.unsureMade[name, default: 0] += 1 }
      var isUnsure = false
      defer { if !isUnsure { ledger.withLock { $0.unsureMade[name, default: 0] -= 1 } } }
      do {
        try await life.database.document("made/\(name)").create(["by": maker])
      } catch {
        isUnsure = life.isOver
        throw error
      }
      isUnsure = life.isOver
      guard !isUnsure else { return }
      ledger.withLock { $0.made[name, default: 0] += 1 }
    }

    // MARK: - Listeners on devices

    /// Watches the pairs on a device, until the last commit has come.
    func watch(_ device: SimulatedDevice) async throws {
      while true {
        let life = try await device.life()
        let isDone = try await withThrowingTaskGroup(of: Bool.self) { group in
          group.addTask { try await watch(device, life) }
          group.addTask {
            try await watchMade(device, life)
            return false
          }
          group.addTask {
            while !life.isOver, !Task.isCancelled {
              guard executor.steps < mostSteps else {
                throw fault("no end comes: \(life.sync.currentState)")
              }
              await executor.doze()
            }
            return false
          }
          defer { group.cancelAll() }
          return try await group.next() ?? false
        }
        if isDone { return }
      }
    }

    /// Watches documents that are made once: one that does not wait stays as it is.
    func watchMade(_ device: SimulatedDevice, _ life: DeviceLife) async throws {
      var confirmed: [String: String] = [:]
      let made = life.database.collection("made")
      for try await snapshot in made.snapshots(includeMetadataChanges: true) {
        var isAny = false
        for document in snapshot.documents {
          let isWaiting = document.metadata.hasPendingWrites && sabotage != .unmarkedWrites
          isAny = isAny || isWaiting
          guard !isWaiting, let maker = document["by"] as String? else { continue }
          let before = confirmed.updateValue(maker, forKey: document.documentID)
          guard before == nil || before == maker else {
            throw fault(
              "device \(device.number) saw \(document.documentID) by \(before ?? ""), confirmed,"
                + " and then by \(maker)")
          }
        }
        guard isAny == snapshot.metadata.hasPendingWrites || sabotage == .unmarkedWrites else {
          throw fault("device \(device.number) saw marks that the result does not have")
        }
      }
    }

    func watch(_ device: SimulatedDevice, _ life: DeviceLife) async throws -> Bool {
      for try await snapshot in life.database.collection("pairs").snapshots {
        ledger.withLock { $0.counts.results += 1 }
        var sides: [String: [Int64]] = [:]
        for document in snapshot.documents {
          let name = String(document.documentID.dropLast(2))
          sides[name, default: []].append(document["n"] as Int64? ?? -2)
        }
        for (name, numbers) in sides where numbers.count != 2 || numbers[0] != numbers[1] {
          throw fault("device \(device.number) saw half a commit of \(name): \(numbers)")
        }
        if sides["last"] != nil { return true }
      }
      return false
    }
  }
#endif
