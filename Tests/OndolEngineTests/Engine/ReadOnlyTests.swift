// An engine that only reads, beside one that writes: whatever the writer does, the reader shows the
// rows as of some commit, and the files stay as the writer has them.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@Suite struct `An engine that only reads` {
  /// Few rows fill a memtable and values are separated from their keys early, so that files come
  /// and go.
  private func busyOptions() -> EngineOptions {
    var options = tinyOptions()
    options.valueThreshold = 300
    options.valueFileSize = 4 << 10
    return options
  }

  private func openReader(_ environment: Environment, at path: String = "db") async throws -> Engine
  {
    try await Engine.open(
      at: path, options: busyOptions(), environment: environment, access: .readOnly)
  }

  // MARK: - Visible commits

  @Test(arguments: Seeds.first(8))
  func `Each refresh shows all that was committed, whatever the writer did since`(
    seed: UInt64
  ) async throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let environment = Environment.memory()
    var writer = try await Engine.open(at: "db", options: busyOptions(), environment: environment)
    let reader = try await openReader(environment)
    var states: [[[UInt8]: [UInt8]]] = [[:]]
    var kept: [Snapshot] = []
    for step in 0..<300 {
      switch random.below(40) {
      case 0: try await writer.flush()
      case 1: try await writer.compact()
      case 2:
        try await writer.close()
        writer = try await Engine.open(at: "db", options: busyOptions(), environment: environment)
      case 3...12:
        _ = try await reader.refresh()
        let snapshot = try reader.snapshot()
        #expect(Int(snapshot.sequence.rawValue) == states.count - 1, "seed \(seed), step \(step)")
        #expect(try contents(of: snapshot) == states.last, "seed \(seed), step \(step)")
        if random.below(8) == 0 { kept.append(snapshot) }
      default:
        let rows = randomRows(&random)
        try await writer.put(rows)
        var state = states.last ?? [:]
        for (key, value) in rows { state[key] = value }
        states.append(state)
      }
    }
    try await writer.compact()
    _ = try await reader.refresh()
    for snapshot in kept {
      #expect(
        try contents(of: snapshot) == states[Int(snapshot.sequence.rawValue)], "seed \(seed)")
    }
    try await writer.close()
    try await reader.close()
  }

  @Test(arguments: [false, true])
  func `A reader that refreshes while the writer works sees one commit's state after the other`(
    onDisk: Bool
  ) async throws {
    let place = FileManager.default.temporaryDirectory.appending(path: "ondol-\(UUID())")
    defer { try? FileManager.default.removeItem(at: place) }
    let environment = onDisk ? Environment.live() : Environment.memory()
    let path = onDisk ? place.path(percentEncoded: false) : "db"
    let writer = try await Engine.open(at: path, options: busyOptions(), environment: environment)
    let count: UInt64 = 400
    let (moments, writerIsHere) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    async let writing: Void = {
      defer { writerIsHere.finish() }
      for number in 1...count {
        try await writer.put(
          Self.rows(ofCommit: number), durability: number % 50 == 0 ? .power : .process)
        if number % 150 == 0 { try await writer.compact() }
        if number % 4 == 0 { writerIsHere.yield() }
      }
      try await writer.close()
    }()
    let reader = try await openReader(environment, at: path)
    var last: UInt64 = 0
    func look() async throws {
      _ = try await reader.refresh()
      let snapshot = try reader.snapshot()
      let sequence = snapshot.sequence.rawValue
      #expect(sequence >= last)
      last = sequence
      let found = try contents(of: snapshot)
      #expect(found == Self.state(afterCommit: sequence), "after commit \(sequence)")
    }
    for await _ in moments { try await look() }
    try await writing
    try await look()
    #expect(last == count)
    try await reader.close()
  }

  @Test(arguments: Seeds.first(24))
  func `Whatever moments its looks at the files fall on, it shows one commit's state`(
    seed: UInt64
  ) async throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let world = SimulatedWorld(seed: seed)
    world.fileSystem.keepPictures()
    var writer = try await Engine.open(
      at: "db", options: busyOptions(), environment: world.environment)
    let first = world.fileSystem.operations
    for number in 1...UInt64(160) {
      let durability: Durability = random.below(4) == 0 ? .power : .process
      try await writer.put(Self.rows(ofCommit: number), durability: durability)
      world.fileSystem.note(Int(number))
      if random.below(12) == 0 { try await writer.flush() }
      if random.below(30) == 0 { try await writer.compact() }
      guard random.below(40) == 0 else { continue }
      try await writer.close()
      writer = try await Engine.open(
        at: "db", options: busyOptions(), environment: world.environment)
    }
    try await writer.close()

    let pictures = world.fileSystem.takePictures()
    let files = MovingFileSystem(
      pictures, from: first, pace: 1 + random.below(40), seed: seed)
    let reading = SimulatedWorld(seed: seed).environment
    var environment = reading
    environment.fileSystem = files
    let reader = try await openReader(environment)
    var kept: [Snapshot] = []
    var isOver = false
    while !isOver {
      isOver = files.isAtEnd
      let least = files.note
      _ = try await reader.refresh()
      let snapshot = try reader.snapshot()
      let sequence = snapshot.sequence.rawValue
      #expect(sequence >= least, "seed \(seed)")
      #expect(
        try contents(of: snapshot) == Self.state(afterCommit: sequence),
        "seed \(seed), commit \(sequence)")
      kept.append(snapshot)
      files.move(by: random.below(60))
    }
    for snapshot in kept {
      #expect(
        try contents(of: snapshot) == Self.state(afterCommit: snapshot.sequence.rawValue),
        "seed \(seed)")
    }
    try await reader.close()
    #expect(files.writes == 0, "seed \(seed)")
  }

  /// The rows that commit `number` of the tests above puts.
  private static func rows(ofCommit number: UInt64) -> [[UInt8]: [UInt8]?] {
    let length = number % 7 == 0 ? 500 : 20
    let value = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length)
    return [
      rowKey("\(number % 97)", group: 1): .some(value), rowKey("last", group: 2): .some(value),
    ]
  }

  private static func state(afterCommit sequence: UInt64) -> [[UInt8]: [UInt8]] {
    var state: [[UInt8]: [UInt8]] = [:]
    for number in (sequence < 97 ? 0 : sequence - 97)..<(sequence + 1) where number > 0 {
      for (key, value) in rows(ofCommit: number) { state[key] = value }
    }
    return state
  }

  // MARK: - Unchanged files

  @Test func `A killed database is read without being recovered`() async throws {
    let world = SimulatedWorld(seed: 1)
    let writer = try await Engine.open(
      at: "db", options: busyOptions(), environment: world.environment)
    for number in 1...UInt64(60) { try await writer.put(Self.rows(ofCommit: number)) }
    let left = SimulatedWorld(fileSystem: world.fileSystem.kill(), seed: 2)
    let reader = try await openReader(left.environment)
    #expect(try contents(of: reader.snapshot()) == Self.state(afterCommit: 60))
    #expect(try await reader.refresh() == false)
    try await reader.close()
    for kind in OperationKind.allCases where kind != .open && kind != .read {
      #expect(left.fileSystem.count(of: kind) == 0, "\(kind)")
    }
    let again = try await Engine.open(
      at: "db", options: busyOptions(), environment: left.environment)
    #expect(try contents(of: again.snapshot()) == Self.state(afterCommit: 60))
    try await again.close()
  }

  @Test func `A refresh without news is a few small reads`() async throws {
    let world = SimulatedWorld(seed: 1)
    var writer = try await Engine.open(
      at: "db", options: busyOptions(), environment: world.environment)
    for number in 1...UInt64(200) { try await writer.put(Self.rows(ofCommit: number)) }
    // Background work ends as well.
    try await writer.close()
    let reader = try await openReader(world.environment)
    let before = world.fileSystem.count(of: .read)
    #expect(try await reader.refresh() == false)
    #expect(world.fileSystem.count(of: .read) - before < 20)
    writer = try await Engine.open(
      at: "db", options: busyOptions(), environment: world.environment)
    try await writer.put(Self.rows(ofCommit: 201))
    #expect(try await reader.refresh())
    #expect(try contents(of: reader.snapshot()) == Self.state(afterCommit: 201))
    try await writer.close()
    try await reader.close()
  }

  // MARK: - Refusals

  @Test func `Nothing can be written`() async throws {
    let environment = Environment.memory()
    let writer = try await Engine.open(at: "db", environment: environment)
    try await writer.put([rowKey("a"): [1]])
    let reader = try await openReader(environment)
    await #expect(throws: EngineError.readOnly) { try await reader.put([rowKey("a"): [2]]) }
    await #expect(throws: EngineError.readOnly) { try await reader.flush() }
    await #expect(throws: EngineError.readOnly) { try await reader.compact() }
    await #expect(throws: EngineError.readOnly) { try await reader.drop(keyspaces: [1]) }
    await #expect(throws: EngineError.readOnly) { try await reader.synchronize() }
    #expect(try await reader.snapshot().get(rowKey("a")) == [1])
    try await reader.close()
    #expect(throws: EngineError.closed) { try reader.snapshot() }
    await #expect(throws: EngineError.closed) { try await reader.refresh() }
    try await writer.put([rowKey("a"): [3]])
    try await writer.close()
  }

  @Test func `A missing database is not created`() async throws {
    let environment = Environment.memory()
    await #expect(throws: EngineError.self) { try await openReader(environment) }
    #expect(throws: EngineError.self) {
      try environment.fileSystem.openDirectory(at: "db", create: false)
    }
    _ = try environment.fileSystem.openDirectory(at: "db", create: true)
    do throws(EngineError) {
      _ = try await Engine.open(at: "db", environment: environment, access: .readOnly)
      Issue.record("an empty directory was opened")
    } catch {
      guard case .notADatabase = error else { throw error }
    }
  }

  @Test func `A file that is really missing is an error`() async throws {
    let environment = Environment.memory()
    let writer = try await Engine.open(at: "db", options: busyOptions(), environment: environment)
    for number in 1...UInt64(60) { try await writer.put(Self.rows(ofCommit: number)) }
    try await writer.close()
    let directory = try environment.fileSystem.openDirectory(at: "db", create: false)
    let segment = try #require(try directory.list().first { $0.hasSuffix(".seg") })
    try directory.remove(segment)
    do throws(EngineError) {
      _ = try await Engine.open(at: "db", environment: environment, access: .readOnly)
      Issue.record("a database without one of its files was opened")
    } catch {
      guard case .io(_, segment, _, _) = error else { throw error }
    }
  }

  // MARK: - Rows

  private func randomRows(
    _ random: inout OndolTestKit.SeededRandom
  ) -> [[UInt8]: [UInt8]?] {
    var rows: [[UInt8]: [UInt8]?] = [:]
    for _ in 0...random.below(4) {
      let key = rowKey("k\(random.below(60))", group: 1 + UInt32(random.below(3)))
      let length = random.below(6) == 0 ? 600 : random.below(60)
      let value = [UInt8](repeating: UInt8(random.below(256)), count: length)
      rows[key] = .some(random.below(4) == 0 ? nil : value)
    }
    return rows
  }

  /// All rows of the groups that these tests write.
  private func contents(of snapshot: Snapshot) throws -> [[UInt8]: [UInt8]] {
    var rows: [[UInt8]: [UInt8]] = [:]
    for group: UInt32 in 1...4 {
      var cursor = snapshot.cursor(from: rowKey("", group: group), to: rowKey("", group: group + 1))
      try cursor.seekToFirst()
      while cursor.isValid {
        rows[cursor.key.array] = try cursor.value.array
        try cursor.next()
      }
    }
    return rows
  }
}
