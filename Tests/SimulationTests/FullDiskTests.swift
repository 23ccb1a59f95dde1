// The engine on full disks, without descriptors, and over unreadable blocks: temporary failures,
// after which everything continues without reopening the database.

import OndolEngine
import OndolTestKit
import Testing

private let tooManyFiles: Int32 = 24
private let inputOutputError: Int32 = 5

private func row(_ number: UInt8) -> [UInt8] { [0, 0, 0x10, 0, number] }

private func put(_ number: UInt8, _ value: [UInt8]) -> Batch {
  var batch = Batch()
  batch.put(row(number).bytes, value.bytes)
  return batch
}

private func open(_ fileSystem: SimulatedFileSystem) async throws -> Engine {
  var options = EngineOptions()
  options.shardCount = 1
  options.smallShardSize = 0
  let world = SimulatedWorld(fileSystem: fileSystem, seed: 1)
  return try await Engine.open(at: "/db", options: options, environment: world.environment)
}

/// A closed database with one segment of twenty rows.
private func closedDatabase() async throws -> SimulatedFileSystem {
  let fileSystem = SimulatedFileSystem()
  let engine = try await open(fileSystem)
  for number: UInt8 in 0..<20 {
    _ = try await engine.commit(put(number, [number]), durability: .process)
  }
  try await engine.close()
  return fileSystem
}

@Suite struct `A failure that passes` {
  @Test(arguments: Seeds.first(1))
  func `leaves a full disk with all that was promised, and room can be made`(seed: UInt64) {
    let report = FullDiskTest(seed: seed, step: 1_500).run()
    #expect(report.violation == nil, "\(report)")
    #expect(report.full >= 20 && report.refusals >= 500, "\(report)")
    // Deletes succeed in the reserve's space, except on disks too small for one.
    #expect(report.freed * 10 >= report.full * 8, "\(report)")
  }

  @Test func `asks nothing of a file system that cannot set space aside`() async throws {
    let fileSystem = SimulatedFileSystem()
    fileSystem.forbidReserving()
    var engine = try await open(fileSystem)
    _ = try await engine.commit(put(0, [0]), durability: .power)
    fileSystem.setCapacity(fileSystem.used + 20_000)
    var last: UInt8 = 0
    do throws(EngineError) {
      for number: UInt8 in 1..<200 {
        let value = [UInt8](repeating: number, count: 900)
        _ = try await engine.commit(put(number, value), durability: .power)
        last = number
      }
    } catch {
      // A failed write of a log has stopped all writing.
      guard case .poisoned = error else { throw error }
    }
    #expect(last > 10 && last < 199)
    try? await engine.close()
    fileSystem.setCapacity(nil)
    engine = try await open(fileSystem)
    #expect(try await engine.snapshot().get(row(last)) == [UInt8](repeating: last, count: 900))
    _ = try await engine.commit(put(201, [1]), durability: .power)
    try await engine.close()
  }

  @Test func `gives an open segment to the next reader when descriptors had run out`()
    async throws
  {
    let fileSystem = try await closedDatabase()
    let engine = try await open(fileSystem)
    fileSystem.inject([
      Fault(failing: [.open], of: .segment, errno: tooManyFiles, isSticky: true)
    ])
    do throws(EngineError) {
      _ = try await engine.snapshot().get(row(3))
      Issue.record("the read found its file")
    } catch {
      guard case .io(_, let file, _, tooManyFiles) = error else { throw error }
      #expect(file.hasSuffix(".seg"))
    }
    _ = try await engine.commit(put(50, [50]), durability: .power)
    fileSystem.inject([])
    #expect(try await engine.snapshot().get(row(3)) == [3])
    try await engine.close()
  }

  @Test(arguments: [OperationKind.read, .create, .open], [false, true])
  func `retries a merge`(kind: OperationKind, isFlush: Bool) async throws {
    let fileSystem = try await closedDatabase()
    let engine = try await open(fileSystem)
    _ = try await engine.commit(put(3, [33]), durability: .power)
    if !isFlush { try await engine.flush() }
    let errno = kind == .read ? inputOutputError : tooManyFiles
    fileSystem.inject([Fault(failing: [kind], of: .segment, errno: errno, isSticky: true)])
    do throws(EngineError) {
      try await engine.compact { _, _ in }
      Issue.record("the merge found nothing amiss")
    } catch {
      guard case .io(_, let file, _, errno) = error else { throw error }
      #expect(file.hasSuffix(".seg"))
    }
    _ = try await engine.commit(put(51, [51]), durability: .power)
    fileSystem.inject([])
    try await engine.compact { _, _ in }
    #expect(try await engine.snapshot().get(row(3)) == [33])
    #expect(try await engine.snapshot().get(row(51)) == [51])
    try await engine.close()
  }

  @Test func `names the file and the byte of a block that cannot be read, and reads it again`()
    async throws
  {
    let fileSystem = try await closedDatabase()
    for after in 0..<12 {
      let engine = try await open(fileSystem)
      fileSystem.inject([
        Fault(failing: [.read], of: .segment, after: after, errno: inputOutputError)
      ])
      do throws(EngineError) {
        #expect(try await engine.snapshot().get(row(7)) == [7])
      } catch {
        guard case .io(_, let file, _, inputOutputError) = error else { throw error }
        #expect(file.hasSuffix(".seg"))
      }
      #expect(try await engine.snapshot().get(row(7)) == [7])
      _ = try await engine.commit(put(7, [7]), durability: .power)
      fileSystem.inject([])
      try await engine.close()
    }
  }

  @Test(arguments: [0, 4_096, 65_536, 69_632] as [UInt64])
  func `uses another superblock slot, and mends the bad one`(slot: UInt64) async throws {
    let fileSystem = try await closedDatabase()
    let directory = try fileSystem.openDirectory(at: "/db", create: false)
    let file = try directory.open("SUPER", access: .readWrite)
    let sound = try file.read(at: slot, count: 4_096)
    try file.write([UInt8](repeating: 0xA5, count: 4_096).bytes, at: slot)
    var engine = try await open(fileSystem)
    _ = try await engine.commit(put(9, [99]), durability: .power)
    try await engine.close()
    if sound.contains(where: { $0 != 0 }) {
      #expect(try file.read(at: slot, count: 4_096) == sound)
    }
    // An unreadable one is skipped as well.
    fileSystem.inject([
      Fault(failing: [.read], of: .superblock, after: Int(slot % 3), errno: inputOutputError)
    ])
    engine = try await open(fileSystem)
    #expect(try await engine.snapshot().get(row(9)) == [99])
    try await engine.close()
  }
}
