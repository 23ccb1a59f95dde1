// The log. The target makes one or two logs of frames whose fields come from the input, each with
// correct checksums, then cuts or damages them, and recovers. Recovery refuses them or returns a
// prefix of the commits. Undamaged logs come back whole.

@testable import OndolEngine

enum LogTarget: FuzzTarget {
  static let name = "log"

  private static let identity = DatabaseIdentity(low: 1, high: 2)
  private static let first = FileNumber(rawValue: 2)
  private static let second = FileNumber(rawValue: 3)

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    if input.flag() {
      recover(&input)
    } else {
      readFrames(input.rest())
    }
  }

  // MARK: - Any bytes

  private static func readFrames(_ bytes: [UInt8]) {
    var frames = FrameReader(bytes, salt: 9, from: 0)
    while let frame = frames.next() {
      demand(frame.payload.upperBound <= bytes.count, "a payload behind the end")
      var operations = OperationReader(bytes.bytes.extracting(frame.payload))
      while let operation = try? operations.next() {
        demand(operation.key.byteCount >= Batch.keyspaceLength, "a key without a keyspace")
      }
    }
    _ = frames.furthestClaim()
    _ = frames.isBlankFromHere()
    _ = try? LogHeader.read(bytes.bytes, file: "LOG-2")
  }

  // MARK: - Recovery

  private static func recover(_ input: inout FuzzInput) {
    let isOrdinary = !input.oneIn(4)
    let floor = LogStart(
      number: first, base: LogPosition(rawValue: isOrdinary ? 0 : input.edge()),
      sequence: SequenceNumber(rawValue: isOrdinary ? 0 : input.edge()), time: 0)
    var maker = LogMaker(isHonest: isOrdinary, sequence: floor.sequence.rawValue)
    let header = LogHeader(
      number: first, identity: identity, salt: 9, kind: .normal, base: floor.base,
      previous: .zero, previousLength: 0,
      firstSequence: SequenceNumber(rawValue: floor.sequence.rawValue &+ 1))
    var logs = [first.logName: maker.log(header, &input)]
    var newest = first
    if input.flag() {
      let length = UInt64(logs[first.logName]?.count ?? 0)
      let next = LogHeader(
        number: second, identity: identity, salt: 11, kind: .normal,
        base: LogPosition(rawValue: floor.base.rawValue &+ length), previous: first,
        previousLength: isOrdinary ? length : input.edge(),
        firstSequence: SequenceNumber(rawValue: maker.sequence &+ 1))
      logs[second.logName] = maker.log(next, &input)
      newest = second
    }
    var isSound = isOrdinary
    for name in logs.keys.sorted() where input.flag() {
      let before = logs[name]
      logs[name]?.damage(&input)
      isSound = isSound && logs[name] == before
    }
    check(logs, floor, newest, isSound ? maker.commits : nil, maker.commits)
  }

  /// Recovers. It must find `expected` commits if given, and at most `most`.
  private static func check(
    _ logs: [String: [UInt8]], _ floor: LogStart, _ newest: FileNumber, _ expected: Int?,
    _ most: Int
  ) {
    var state = ManifestState(
      nextFile: FileNumber(rawValue: 4), floor: floor, newestLog: newest,
      shards: [ShardState(), ShardState()])
    // A state that the manifest refuses does not get this far.
    guard (try? state.apply(.logs(floor: floor, newest: newest))) != nil else { return }
    var recovery = Recovery(
      directory: FuzzDirectory(logs), identity: identity, manifest: state,
      memtableSize: 4 << 10)
    do throws(EngineError) {
      try recovery.replay(Array(logs.keys))
    } catch {
      return demand(expected == nil, "sound logs are refused: \(error)")
    }
    let found = recovery.recovered.sequence.rawValue &- floor.sequence.rawValue
    demand(found <= UInt64(most), "\(found) commits from \(most)")
    if let expected { demand(found == UInt64(expected), "\(found) commits, not \(expected)") }
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var maker = LogMaker(isHonest: true, sequence: 0)
    var frames = FuzzInput([5, 1, 3, 4, 9, 9, 9, 9, 2, 2, 1, 1])
    let header = LogHeader(
      number: first, identity: identity, salt: 9, kind: .normal, base: .zero, previous: .zero,
      previousLength: 0, firstSequence: SequenceNumber(rawValue: 1))
    let log = maker.log(header, &frames)
    var chance = Chance(4)
    return [[0] + log.prefix(256), [0] + maker.frames(&frames, at: 0, salt: 9)]
      + [40, 120, 300].map { [1] + chance.bytes($0) }
  }
}
