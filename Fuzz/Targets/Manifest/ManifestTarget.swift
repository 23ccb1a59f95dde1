// The manifest and the superblock. The target makes edits of any bytes, with correct checksums
// around them, and loads them. They are refused, or make a state that can be written whole and
// comes back the same. Then it recovers a log from that state, because nothing in the manifest may
// make recovery trap.

@testable import OndolEngine

enum ManifestTarget: FuzzTarget {
  static let name = "manifest"

  private static let identity = DatabaseIdentity(low: 1, high: 2)
  private static let salt: UInt64 = 9

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    switch input.below(3) {
    case 0: repeatChanges(input.rest())
    case 1: load(&input)
    default: readSuperblock(&input)
    }
  }

  // MARK: - Edits

  private static func repeatChanges(_ bytes: [UInt8]) {
    guard let changes = try? ManifestChange.decodeAll(bytes.bytes) else { return }
    var again: [UInt8] = []
    for change in changes { change.encode(into: &again) }
    demand((try? ManifestChange.decodeAll(again.bytes)) == changes, "changes differ: \(changes)")
  }

  private static func load(_ input: inout FuzzInput) {
    let superblock = superblock(shardCount: UInt32(1 + input.below(4)))
    let limit = input.flag() ? FrameHeader.maximumPayload : 8 + input.below(60)
    var bytes = header(superblock, input.oneIn(8) ? .wholeEdits : .editsInParts)
    var chain: UInt64 = 0
    for ordinal in 1...UInt64(1 + input.below(4)) {
      var payload: [UInt8] = []
      payload.appendLittleEndian(chain)
      payload += input.flag() ? changes(&input) : input.take(input.below(80))
      var frames = FrameBuilder.buildEdit(
        payload, ordinal: ordinal, time: 0, salt: salt, offset: UInt64(bytes.count), limit: limit)
      // One part fewer, or one from another edit instead, each with correct checksums.
      if input.oneIn(6) {
        frames = FrameBuilder.buildEdit(
          payload, ordinal: ordinal &+ UInt64(input.below(2)), time: 0, salt: salt,
          offset: UInt64(bytes.count), limit: limit)
        frames.removeLast(min(frames.count, FrameHeader.frameLength(payload: limit & 63)))
      }
      bytes += frames
      chain = seededChecksum(chain, payload.bytes)
    }
    if input.oneIn(4) { bytes.damage(&input) }
    let directory = FuzzDirectory([superblock.manifest.manifestName: bytes])
    guard
      let manifest = try? Manifest.load(
        superblock, directory: directory, environment: .memory(), rotationSize: 1 << 16)
    else { return }
    writeDown(manifest.state, shardCount: Int(superblock.shardCount))
    recover(manifest.state)
  }

  /// The state, written as changes to an empty state, gives the same state.
  private static func writeDown(_ state: ManifestState, shardCount: Int) {
    var again = ManifestState(
      nextFile: .zero,
      floor: LogStart(number: .zero, base: .zero, sequence: .zero, time: 0), newestLog: .zero,
      shards: Array(repeating: ShardState(), count: shardCount))
    var bytes: [UInt8] = []
    for change in state.asChanges { change.encode(into: &bytes) }
    do throws(MalformedBytes) {
      for change in try ManifestChange.decodeAll(bytes.bytes) { try again.apply(change) }
    } catch {
      return demand(false, "a state that was loaded is refused: \(error) \(state)")
    }
    demand(again == state, "\(state) comes back as \(again)")
  }

  private static func recover(_ state: ManifestState) {
    let header = LogHeader(
      number: state.floor.number, identity: identity, salt: 5, kind: .normal,
      base: state.floor.base, previous: .zero, previousLength: 0,
      firstSequence: SequenceNumber(rawValue: state.floor.sequence.rawValue &+ 1))
    let context = FrameContext(
      sequence: state.floor.sequence, time: state.floor.time, syncedThrough: .zero)
    let log =
      header.encode()
      + FrameBuilder.buildSeal(context, salt: 5, offset: UInt64(LogHeader.length))
    let name = state.floor.number.logName
    var recovery = Recovery(
      directory: FuzzDirectory([name: log]), identity: identity, manifest: state,
      memtableSize: 4 << 10)
    _ = try? recovery.replay([name])
    _ = recovery.recovered
  }

  private static func changes(_ input: inout FuzzInput) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0...input.below(6) { change(&input).encode(into: &bytes) }
    return bytes
  }

  private static func change(_ input: inout FuzzInput) -> ManifestChange {
    let shard = input.oneIn(8) ? input.below(1_024) : input.below(2)
    let number = FileNumber(rawValue: input.oneIn(4) ? input.edge() : UInt64(input.below(6)))
    switch input.below(8) {
    case 0: return .nextFile(number)
    case 1:
      let floor = LogStart(
        number: number, base: LogPosition(rawValue: input.edge()),
        sequence: SequenceNumber(rawValue: input.edge()),
        time: Int64(bitPattern: input.edge()))
      return .logs(floor: floor, newest: number)
    case 2: return .flushed(shard: shard, through: SequenceNumber(rawValue: input.edge()))
    case 3, 4:
      return .addSegment(
        shard: shard, level: input.below(7), run: UInt64(input.below(3)),
        segment(number, &input))
    case 5: return .dropSegment(shard: shard, number: number)
    case 6:
      let file = ValueFileMetadata(
        number: number, salt: 1, sizeBytes: input.edge(), values: input.edge())
      return .addValueFile(shard: shard, file)
    default:
      return .dropKeyspaces([UInt32(input.below(9)), UInt32(input.below(9))], before: number)
    }
  }

  private static func segment(
    _ number: FileNumber, _ input: inout FuzzInput
  ) -> SegmentMetadata {
    let low = [0, 0, 0, 1] + input.take(input.below(4))
    var segment = SegmentMetadata(
      number: number, salt: 3, sizeBytes: input.edge(), footerChecksum: 4, minKey: low,
      maxKey: low + input.take(input.below(4)), entries: input.edge(), tombstones: input.edge(),
      rawBytes: input.edge(), minSequence: SequenceNumber(rawValue: input.edge()),
      maxSequence: SequenceNumber(rawValue: input.edge()))
    if input.oneIn(4) {
      segment.valueReferences = [ValueReference(file: number, bytes: input.edge())]
    }
    return segment
  }

  private static func header(
    _ superblock: Superblock, _ version: ManifestHeader.Version = .wholeEdits
  ) -> [UInt8] {
    ManifestHeader(
      version: version, number: superblock.manifest, identity: identity, salt: salt
    ).encode()
  }

  // MARK: - Superblock

  private static func superblock(shardCount: UInt32) -> Superblock {
    Superblock(
      identity: identity, epoch: 1, manifest: FileNumber(rawValue: 1), shardCount: shardCount,
      created: 0, written: 0)
  }

  private static func readSuperblock(_ input: inout FuzzInput) {
    let directory = FuzzDirectory()
    do {
      let file = try directory.create(Superblock.name)
      var written = superblock(shardCount: 2)
      try written.write(to: file)
      written.epoch = 2
      try written.write(to: file)
    } catch {
      return demand(false, "\(error)")
    }
    var bytes = directory.contents(Superblock.name)
    for (slot, offset) in Superblock.slotOffsets.enumerated() where input.flag() {
      let place = Int(offset)..<(Int(offset) + Superblock.slotLength)
      guard place.upperBound <= bytes.count else { continue }
      var slotBytes = Array(bytes[place].prefix(120))
      slotBytes.damage(&input)
      for (index, byte) in slotBytes.prefix(120).enumerated() {
        bytes[place.lowerBound + index] = byte
      }
      if input.flag() { seal(&bytes, place, slot) }
    }
    let damaged = FuzzDirectory([Superblock.name: bytes])
    guard let file = try? damaged.open(Superblock.name, access: .readOnly),
      let found = try? Superblock.read(from: file)
    else { return }
    demand((1...1_024).contains(found.shardCount), "\(found.shardCount) shards")
    demand((try? Superblock.hasSoundSlot(in: file)) == true, "a slot was read and none is sound")
    let slots = (try? Superblock.slots(in: file)) ?? []
    demand(
      slots.compactMap(\.superblock).map(\.epoch).max() == found.epoch,
      "the newest of \(slots) is not \(found)")
    loadNamed(by: found, &input)
  }

  /// The manifest that a superblock names: the one of the database with the same identity.
  private static func loadNamed(by superblock: Superblock, _ input: inout FuzzInput) {
    let header = header(superblock)
    var payload: [UInt8] = []
    payload.appendLittleEndian(UInt64(0))
    payload += changes(&input)
    let edit = FrameBuilder.buildEdit(
      payload, ordinal: 1, time: 0, salt: salt, offset: UInt64(header.count))
    let directory = FuzzDirectory([superblock.manifest.manifestName: header + edit])
    guard
      let manifest = try? Manifest.load(
        superblock, directory: directory, environment: .memory(), rotationSize: 1 << 16)
    else { return }
    demand(superblock.identity == identity, "the manifest of another database is taken")
    writeDown(manifest.state, shardCount: Int(superblock.shardCount))
  }

  private static func seal(_ bytes: inout [UInt8], _ place: Range<Int>, _ slot: Int) {
    let body = place.lowerBound..<(place.upperBound - 8)
    let checksum = seededChecksum(
      0x4F4E_444F_4C53_4221 ^ UInt64(slot), bytes.bytes.extracting(body))
    bytes.overwriteLittleEndian(checksum, at: body.upperBound)
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var chance = Chance(5)
    var decisions = FuzzInput(chance.bytes(400))
    return [[0] + changes(&decisions), [0] + changes(&decisions)]
      + [30, 90, 250].map { [1] + chance.bytes($0) } + [[2] + chance.bytes(60)]
  }
}
