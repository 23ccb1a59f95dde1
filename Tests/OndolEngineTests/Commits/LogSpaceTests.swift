// The logs that commits go into, without writing a file: places follow each other, nothing is
// placed without room, and the change to the next log leaves no gap in the sequence.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct LogSpaceTests {
  private struct NoPlace: Error {}

  /// Logs, and the commits that went into them.
  private struct Line {
    var logs: LogSpace
    var commits = CommitState(sequence: .zero, time: 0, end: LogPosition(rawValue: 777))
    var number: UInt64 = 10

    init(_ options: EngineOptions) {
      logs = LogSpace(
        RecoveredLog(
          sequence: .zero, time: 0, end: commits.placedEnd, number: FileNumber(rawValue: 9),
          length: 333,
          starts: [
            LogStart(
              number: FileNumber(rawValue: 9), base: LogPosition(rawValue: 444), sequence: .zero,
              time: 0)
          ]), identity: DatabaseIdentity(low: 1, high: 2), options)
    }

    mutating func offer(prewritten: UInt64 = 0, reserved: UInt64 = .max) {
      logs.offer(
        SpareLog(
          number: FileNumber(rawValue: number), file: MemoryFile(name: "LOG-\(number)", []),
          salt: number, prewritten: prewritten, reserved: reserved))
      number += 1
    }

    /// Places a commit whose frames have a number of bytes; nil if it must wait.
    mutating func place(_ length: Int, isPuttingOff: Bool = false) -> LogSpace.Place? {
      let answer = logs.place(
        FrameLength(clear: length, sealed: length), after: commits, isPuttingOff: isPuttingOff)
      guard case .place(let place) = answer else { return nil }
      _ = commits.place(
        time: commits.nextTime(now: 0), end: place.log.position(of: place.end),
        durability: .process, writtenFrom: nil)
      return place
    }

    mutating func placed(_ length: Int) throws -> LogSpace.Place {
      guard let place = place(length) else { throw NoPlace() }
      return place
    }

    /// Returns what a commit would have to wait for, without changing the logs.
    func missing(_ length: Int) -> MissingSpace? {
      var logs = logs
      let frames = FrameLength(clear: length, sealed: length)
      guard case .needsSpace(let space) = logs.place(frames, after: commits, isPuttingOff: false)
      else { return nil }
      return space
    }
  }

  private func options(size: Int = 64 << 10, retention: Int = 8 << 10) -> EngineOptions {
    var options = EngineOptions()
    options.logSize = size
    options.memtableSize = retention
    options.firstPrewrittenSize = 16 << 10
    return options
  }

  @Test func `Without a log a commit waits for one, and says so`() {
    var line = Line(options())
    #expect(line.logs.needsLog)
    expect(line.place(100)?.log == nil)
    line.offer()
    #expect(!line.logs.needsLog)
    expect(line.place(100)?.log != nil)
  }

  @Test(arguments: Seeds.first(20))
  func `Places follow each other without a gap, within the room there is`(seed: UInt64) throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var line = Line(options(size: 32 << 10))
    var last: LogSpace.Place?
    var spares = 0
    line.offer(reserved: UInt64(random.below(9_000)))
    for _ in 0..<300 {
      let length = 8 * (1 + random.below(200))
      let end = line.commits.placedEnd
      if let missing = line.missing(length) {
        // Nothing is placed until there is room.
        expect(line.place(length)?.log == nil, "SEED=\(seed)")
        #expect(line.commits.placedEnd == end, "SEED=\(seed)")
        line.logs.noteReserved(
          missing.log, through: missing.range.upperBound + UInt64(random.below(5_000)))
      }
      let place = try line.placed(length)
      let begins = place.log !== last?.log
      #expect(begins == !place.header.isEmpty, "SEED=\(seed)")
      #expect(place.offset == (begins ? 0 : last?.end), "SEED=\(seed)")
      #expect(place.end == place.offset + UInt64(place.header.count + length), "SEED=\(seed)")
      // The positions of all logs continue where the last one ended.
      if begins { #expect(place.log.base == end, "SEED=\(seed)") }
      if place.spareRequest != nil {
        spares += 1
        line.offer(reserved: UInt64(random.below(9_000)))
      }
      last = place
    }
    #expect(
      line.logs.end(of: line.commits).starts.count == spares + 1 + (line.logs.spare == nil ? 1 : 0))
  }

  @Test func `A log's first commit carries a header with the end of the last log`() throws {
    var line = Line(options())
    line.offer()
    let place = try line.placed(80)
    guard case .header(let header) = try LogHeader.read(place.header.bytes, file: "LOG-10") else {
      return #expect(Bool(false), "no header")
    }
    #expect(header.previous.rawValue == 9)
    #expect(header.previousLength == 333)
    #expect(header.base == LogPosition(rawValue: 777))
    #expect(header.firstSequence.rawValue == 1)
  }

  @Test func `While frames are put off no other log is gone on in`() throws {
    var line = Line(options(size: 8 << 10))
    line.offer()
    let first = try line.placed(9 << 10)
    line.offer()
    expect(line.place(100, isPuttingOff: true)?.log === first.log)
    expect(line.place(100)?.log !== first.log)
  }

  @Test func `Rows from a log far in the past are overdue when the next one begins`() throws {
    var line = Line(options(size: 8 << 10, retention: 8 << 10))
    line.offer()
    var overdue: [UInt64?] = []
    for _ in 0..<4 {
      overdue.append(try line.placed(9 << 10).overdue?.rawValue)
      line.offer()
    }
    // Each log has 13 KiB, and 16 KiB may come after the floor.
    #expect(overdue == [nil, nil, 10, 11])
  }

  @Test func `A spare is requested once for each log, and again after a failure`() throws {
    var line = Line(options(size: 16 << 10))
    line.offer()
    try expect(line.placed(1 << 10).spareRequest?.prewritten == nil)
    try expect(line.placed(4 << 10).spareRequest?.prewritten != nil)
    try expect(line.placed(8).spareRequest?.prewritten == nil)
    line.logs.noteNoSpare(.closed)
    try expect(line.placed(8).spareRequest?.prewritten != nil)
  }

  @Test func `Without a new log, commits continue while the current one has room`() {
    for prewritten: UInt64 in [0, 16 << 10] {
      var line = Line(options(size: 16 << 10))
      line.offer(prewritten: prewritten)
      var placed = 0
      while placed < 40, line.place(1 << 10) != nil {
        line.logs.noteNoSpare(.closed)
        placed += 1
      }
      // The commit that would go beyond finds no place, and a log must be made.
      #expect(placed == 12)
      #expect(line.logs.needsLog)
    }
  }

  @Test func `Many syncs in a log that grows have the next one written ahead, ever larger`() throws
  {
    var line = Line(options(size: 1 << 20))
    line.offer()
    var requests: [UInt64] = []
    for _ in 0..<4 {
      for _ in 0..<8 {
        if let request = try line.placed(64).spareRequest {
          requests.append(request.prewritten)
        }
        line.logs.noteSynced(through: line.commits.placedEnd)
      }
      // A log that is not written ahead after all, for the next commits.
      line.offer()
      _ = line.place(1 << 20)
    }
    #expect(requests.first == 16 << 10)
    #expect(zip(requests, requests.dropFirst()).allSatisfy { $0 * 4 == $1 || $1 == 1 << 20 })
  }

  @Test func `A finished log is covered once its successor's beginning is on the device`() throws {
    var line = Line(options(size: 8 << 10))
    line.offer()
    let first = try line.placed(9 << 10)
    let end = line.commits.placedEnd
    line.offer()
    let second = try line.placed(100)
    #expect(line.logs.uncovered.map(\.number) == [first.log.number, second.log.number])
    line.logs.noteSynced(through: LogPosition(rawValue: end.rawValue - 1))
    #expect(line.logs.uncovered.count == 2)
    line.logs.noteSynced(through: end)
    #expect(line.logs.uncovered.map(\.number) == [second.log.number])
  }

  @Test func `Recovery needs the log of the oldest row in memory, and no log forgotten is named`()
    throws
  {
    var line = Line(options(size: 8 << 10))
    line.offer()
    for _ in 0..<3 {
      _ = try line.placed(9 << 10)
      line.offer()
    }
    #expect(line.logs.floor(holding: FileNumber(rawValue: 11)).number.rawValue == 11)
    #expect(line.logs.floor(holding: nil).number.rawValue == 12)
    line.logs.forget(before: FileNumber(rawValue: 11), keeping: nil)
    #expect(line.logs.end(of: line.commits).starts.map(\.number.rawValue) == [11, 12])
  }

  @Test func `A log is secured when it is found after a power cut`() {
    var line = Line(options())
    #expect(line.logs.isSecured)
    line.offer()
    _ = line.place(8)
    #expect(!line.logs.isSecured)
    line.logs.noteSecured(FileNumber(rawValue: 10))
    #expect(line.logs.isSecured)
  }
}
