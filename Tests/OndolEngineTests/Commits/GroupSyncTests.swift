// How commits share a sync, without an engine: no frame is lost or written twice, and no sync can
// leave a hole.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct GroupSyncTests {
  /// A log in memory, and commits that go into it one after another.
  private struct Line {
    var sync: GroupSync
    var commits = CommitState(sequence: .zero, time: 0, end: .zero)
    let log: LogFile
    var offset: UInt64 = 0

    init(_ options: EngineOptions = EngineOptions()) {
      sync = GroupSync(options)
      log = LogFile(
        SpareLog(
          number: FileNumber(rawValue: 3), file: MemoryFile(name: "LOG-3", []), salt: 5,
          prewritten: 0, reserved: .max), base: .zero)
    }

    /// Places a commit of a number of bytes, and returns what to write for it.
    mutating func commit(
      _ bytes: Int, _ durability: Durability, isSecured: Bool = true
    ) -> PendingWrite? {
      let frame = [UInt8](repeating: 0, count: FrameHeader.length + bytes)
      let length = FrameBuilder.length(ofPayload: bytes)
      let start = offset
      offset += UInt64(length)
      let syncedThrough = commits.syncedThrough
      let sequence = commits.place(
        time: commits.nextTime(now: 0), end: log.position(of: offset), durability: durability,
        writtenFrom: sync.isPuttingOff ? nil : log.position(of: start))
      return sync.take(
        PendingWrite(
          log: log, offset: start, prefix: [], frame: frame, operations: 1,
          context: FrameContext(sequence: sequence, time: 0, syncedThrough: syncedThrough),
          waitsForSync: durability == .power),
        durability, through: offset, isSecured: isSecured)
    }

    /// Whether such a commit's write syncs itself; nil if it is deferred.
    mutating func syncs(
      _ bytes: Int, _ durability: Durability, isSecured: Bool = true
    ) -> Bool? {
      guard let write = commit(bytes, durability, isSecured: isSecured) else { return nil }
      return write.isSynced
    }

    mutating func begin(waiting: LogPosition? = nil, isSecured: Bool = true) -> Bool {
      sync.begin(commits, waiting: waiting, isSecured: isSecured)
    }

    /// Ends a sync of everything written.
    mutating func end(satisfying count: Int = 1) {
      commits.markSynced(through: commits.writtenThrough)
      _ = commits.publish()
      sync.end()
      sync.noteSatisfied(count, goesOn: false)
    }
  }

  @Test(arguments: Seeds.first(20))
  func `Every frame is written once, in its place`(seed: UInt64) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var options = EngineOptions()
    options.deferredBytes = 2_000
    var line = Line(options)
    var written: [(offset: UInt64, count: Int)] = []
    for _ in 0..<300 {
      let durability = random.pick([Durability.memory, .process, .power])
      if let write = line.commit(random.below(300), durability) {
        let (offset, isSynced) = (write.offset, write.isSynced)
        written.append((offset, write.build().count))
        line.commits.endWrite(at: line.log.position(of: offset))
        if isSynced { line.end() }
      }
      if random.below(4) == 0, line.begin() {
        if let deferred = line.sync.takeDeferred(for: line.log) {
          written.append((deferred.offset, deferred.bytes.count))
          line.commits.endWrite(at: deferred.start)
        }
        line.end()
      }
    }
    if let rest = line.sync.takeDeferred(for: line.log) {
      written.append((rest.offset, rest.bytes.count))
    }
    written.sort { $0.offset < $1.offset }
    var end: UInt64 = 0
    for (offset, count) in written {
      #expect(offset == end, "SEED=\(seed)")
      end = offset + UInt64(count)
    }
    #expect(end == line.offset, "SEED=\(seed)")
  }

  @Test func `A lone commit syncs its own bytes, and no other sync begins`() {
    var line = Line()
    let write = line.syncs(10, .power)
    #expect(write == true)
    let other = line.syncs(10, .power)
    // It shares the next sync.
    #expect(other == nil)
    #expect(line.sync.gathered == 1)
    expect(!line.begin())
  }

  // A write that synced itself after an unsynced one would have been acknowledged, and a power cut
  // could have left a hole before it.
  @Test func `A commit after unsynced bytes does not sync by itself`() {
    var line = Line()
    let first = line.syncs(10, .process)
    #expect(first == false)
    line.commits.endWrite(at: .zero)
    let second = line.syncs(10, .power)
    #expect(second == false)
  }

  @Test func `A log that a power cut may take is not synced`() {
    var line = Line()
    let write = line.syncs(10, .power, isSecured: false)
    #expect(write == false)
    line.commits.endWrite(at: .zero)
    expect(!line.begin(isSecured: false))
    expect(line.begin(isSecured: true))
  }

  @Test func `Concurrent commits do not sync on their own threads, and a lone one does again`() {
    var line = Line()
    _ = line.commit(10, .power)
    line.commits.endWrite(at: .zero)
    line.end(satisfying: 2)
    #expect(!line.sync.isCallers)
    let write = line.syncs(10, .power)
    #expect(write == false)
    line.commits.endWrite(at: line.log.position(of: line.offset - 72))
    expect(line.begin())
    line.end(satisfying: 1)
    #expect(line.sync.isCallers)
    let alone = line.syncs(10, .power)
    #expect(alone == true)
  }

  @Test func `A sync begins when a commit waits for it, and not before`() {
    var line = Line()
    _ = line.commit(10, .process)
    expect(!line.begin())
    let end = line.commits.placedEnd
    expect(!line.begin(waiting: end), "it is not written")
    line.commits.endWrite(at: .zero)
    expect(!line.begin(waiting: LogPosition(rawValue: end.rawValue + 1)))
    expect(line.begin(waiting: end))
    expect(!line.begin(waiting: end), "one is under way")
  }

  @Test func `Long syncs are waited for a quarter as long, short ones not at all`() {
    var line = Line()
    for (duration, patience): (Int64, Int64) in [(-5, 0), (499, 0), (500, 125), (40_000, 10_000)] {
      line.sync.noteDuration(duration)
      #expect(line.sync.patience == patience)
    }
  }

  @Test func `A sync waits for the writers of the last one, until no more come`() {
    var line = Line()
    _ = line.commit(10, .power)
    line.commits.endWrite(at: .zero)
    line.end(satisfying: 3)
    expect(line.begin() == false)
    #expect(line.sync.gathered(beyond: -1) == 0)
    #expect(line.sync.gathered(beyond: 0) == nil, "nobody has come since")
  }

  @Test func `A periodic sync is scheduled once, for the earliest waiting commit`() {
    var line = Line()
    expect(line.sync.arm(.process, now: 0) == nil)
    expect(line.sync.arm(.periodic(microseconds: 100), now: 10) == 100)
    expect(line.sync.arm(.periodic(microseconds: 100), now: 20) == nil)
    expect(line.sync.arm(.periodic(microseconds: 50), now: 20) == 50)
    line.sync.disarm()
    expect(line.sync.arm(.periodic(microseconds: 100), now: 30) == 100)
    expect(line.sync.arm(.periodic(microseconds: .max), now: 30) == nil)
  }
}
