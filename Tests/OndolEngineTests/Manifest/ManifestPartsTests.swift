// Edits of any size: cut into parts at every limit, read back, refused if no manifest can contain
// them, damaged, and cut short by a power cut.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct `A manifest of any size` {
  private let largest = FrameHeader.maximumPayload

  // MARK: - Frames

  private func edits(_ frames: [UInt8], _ version: ManifestHeader.Version) throws -> ManifestEdits {
    let header = ManifestHeader(
      version: version, number: FileNumber(rawValue: 1), identity: ManifestSamples.identity,
      salt: 9)
    return try ManifestEdits(header.encode() + frames, of: ManifestSamples.superblock())
  }

  @Test(arguments: [
    (8, 64), (63, 64), (64, 64), (65, 64), (128, 64), (129, 64), (10_000, 64),
    (4 << 20, 4 << 20), ((4 << 20) - 1, 4 << 20), ((4 << 20) + 1, 4 << 20),
    (8 << 20, 4 << 20), ((8 << 20) + 1, 4 << 20),
  ])
  func `has edits that come back at every limit and one above`(
    _ length: Int, _ limit: Int
  ) throws {
    var random = OndolTestKit.SeededRandom(seed: UInt64(length))
    let payload = random.bytes(length)
    let frames = FrameBuilder.buildEdit(
      payload, ordinal: 1, time: 5, salt: 9, offset: 64, limit: limit)
    #expect(frames.count == FrameBuilder.length(ofPayload: length, limit: limit))
    var reader = try edits(frames, length <= limit ? .wholeEdits : .editsInParts)
    let edit = try #require(try reader.next())
    #expect(edit.payload == payload)
    #expect(edit.ordinal == 1 && edit.time == 5 && edit.length == frames.count)
    #expect(try reader.next() == nil)
    #expect(reader.endsBlank)
  }

  /// A frame of any length was once written, but none above 4 MiB is read. The database was closed
  /// without an error, and could not be reopened.
  @Test func `opens with a state longer than a frame`() throws {
    var state = ManifestSamples.state()
    for change in ManifestSamples.adds(10..<2_010, keyLength: 1_500) { try state.apply(change) }
    let directory = MemoryDirectory()
    _ = try ManifestSamples.make(state, in: directory, .memory())
    let bytes = try #require(directory.file("MANIFEST-1")).bytes
    #expect(bytes.count > largest)
    #expect(bytes[8] == 2, "older versions are told that there are parts")
    #expect(try ManifestSamples.load(from: directory).state == state)
  }

  @Test func `has the old bytes if edits fit in a frame`() throws {
    let directory = MemoryDirectory()
    let manifest = try ManifestSamples.make(ManifestSamples.state(), in: directory, .memory())
    try manifest.commit(ManifestSamples.adds(10..<20))
    let bytes = try #require(directory.file("MANIFEST-1")).bytes
    #expect(bytes[8] == 1)
    #expect(bytes[64 + 4] == FrameKind.edit.rawValue)
  }

  // MARK: - Limits

  @Test func `begins the next one for an edit that this one cannot take`() throws {
    let directory = MemoryDirectory()
    let limits = ManifestLimits(frame: 512)
    let manifest = try ManifestSamples.make(
      ManifestSamples.state(), in: directory, .memory(), rotationSize: 1 << 20, limits: limits)
    #expect(try ManifestSamples.current(in: directory) == 1)
    try manifest.commit(ManifestSamples.adds(10..<100))
    let second = try ManifestSamples.current(in: directory)
    #expect(second > 1)
    // This one may have parts anywhere.
    try manifest.commit(ManifestSamples.adds(100..<200))
    #expect(try ManifestSamples.current(in: directory) == second)
    let again = try ManifestSamples.load(from: directory, limits: limits)
    #expect(again.state == manifest.state)
    #expect(again.state.shards[0].segments.count == 190)
    #expect(!again.hasTornTail)
    #expect(directory.file("MANIFEST-1") == nil)
  }

  @Test func `refuses impossible edits before anything is written`() throws {
    let directory = MemoryDirectory()
    let limits = ManifestLimits(frame: 512, state: 4_000, file: 8_000)
    let manifest = try ManifestSamples.make(
      ManifestSamples.state(), in: directory, .memory(), rotationSize: 100, limits: limits)
    var next = 10
    func grow() throws {
      try manifest.commit(ManifestSamples.adds(next..<(next + 10)))
      next += 10
    }
    #expect(throws: EngineError.self) { while next < 10_000 { try grow() } }
    // The file was used up to its limit, and no committed edit is lost.
    #expect(manifest.state.shards[0].segments.count == next - 10)
    let names = Set(try directory.list())
    #expect(throws: EngineError.self) { try grow() }
    #expect(Set(try directory.list()) == names)
    let again = try ManifestSamples.load(from: directory, limits: limits)
    #expect(again.state.shards == manifest.state.shards)
    #expect(again.offset <= 8_000)
    // Edits that make it smaller are accepted again.
    let drops = (20..<next).map {
      ManifestChange.dropSegment(shard: 0, number: FileNumber(rawValue: UInt64($0)))
    }
    try manifest.commit(drops)
    #expect(try ManifestSamples.load(from: directory, limits: limits).state == manifest.state)
  }

  // MARK: - Reading back

  /// The old fault: a frame that no reader accepts. The manifest before it stays current.
  @Test func `continues from the last one if the next cannot be read back`() throws {
    let directory = MemoryDirectory()
    let manifest = try ManifestSamples.make(
      ManifestSamples.state(), in: directory, .memory(),
      limits: ManifestLimits(frame: 2 * largest))
    #expect(throws: EngineError.self) {
      for start in stride(from: 10, to: 4_000, by: 500) {
        try manifest.commit(
          ManifestSamples.adds(start..<(start + 500), keyLength: 1_500))
      }
    }
    let again = try ManifestSamples.load(from: directory)
    #expect(again.superblock.manifest.rawValue == 1 || again.state.shards[0].segments.count > 0)
    #expect(again.state.shards == manifest.state.shards)
    let newer = try directory.list().compactMap { FileNumber.parse($0, prefix: "MANIFEST-") }
      .filter { $0 > again.superblock.manifest }
    #expect(newer.count == 1, "what cannot be read stays")
  }

  // MARK: - Hostile bytes

  /// Parts of the first edit, or of the second, with a mistake among them.
  @Test(arguments: [true, false])
  func `refuses parts that are not those of one edit`(_ isFirst: Bool) throws {
    let changes = ManifestSamples.adds(10..<30)
    func payload(_ chain: UInt64, _ changes: [ManifestChange]) -> [UInt8] {
      var payload: [UInt8] = []
      payload.appendLittleEndian(chain)
      for change in changes { change.encode(into: &payload) }
      return payload
    }
    let begin = payload(0, ManifestSamples.state().asChanges)
    let chain = seededChecksum(0, begin.bytes)
    let body =
      isFirst ? payload(0, ManifestSamples.state().asChanges + changes) : payload(chain, changes)
    let front =
      isFirst
      ? [] : FrameBuilder.buildEdit(begin, ordinal: 1, time: 5, salt: 9, offset: 64)
    let start = 64 + UInt64(front.count)
    let ordinal: UInt64 = isFirst ? 1 : 2

    /// Frames for pieces of the body, each as described.
    struct Piece {
      var range: Range<Int>
      var kind: FrameKind
      var part: Int
      var ordinal: UInt64
      var time: Int64 = 5
    }
    func frames(_ pieces: [Piece]) -> [UInt8] {
      var bytes: [UInt8] = []
      for piece in pieces {
        var frame = [UInt8](repeating: 0, count: FrameHeader.length) + body[piece.range]
        let header = FrameHeader(
          kind: piece.kind, payloadLength: piece.range.count,
          sequence: SequenceNumber(rawValue: piece.ordinal), time: piece.time,
          operationCount: piece.part, syncedThrough: LogPosition(rawValue: start),
          payloadChecksum: crc32c(body.bytes.extracting(piece.range)))
        header.write(into: &frame, salt: 9, offset: start + UInt64(bytes.count))
        bytes += frame + [UInt8](repeating: 0, count: header.frameLength - frame.count)
      }
      return bytes
    }
    let (third, end) = (body.count / 3, body.count)
    let sound = [
      Piece(range: 0..<third, kind: .part, part: 0, ordinal: ordinal),
      Piece(range: third..<(2 * third), kind: .part, part: 1, ordinal: ordinal),
      Piece(range: (2 * third)..<end, kind: .lastPart, part: 2, ordinal: ordinal),
    ]
    /// The segments that are read, nil if everything is refused.
    func read(_ pieces: [Piece], _ version: ManifestHeader.Version = .editsInParts) -> Int? {
      let header = ManifestHeader(
        version: version, number: FileNumber(rawValue: 1), identity: ManifestSamples.identity,
        salt: 9)
      let directory = MemoryDirectory()
      directory.put(header.encode() + front + frames(pieces), as: "MANIFEST-1")
      let manifest = try? Manifest.load(
        ManifestSamples.superblock(), directory: directory, environment: .memory(),
        rotationSize: 1 << 20)
      return manifest?.state.shards[0].segments.count
    }
    #expect(read(sound) == 20)
    #expect(read(sound, .wholeEdits) == nil)
    #expect(read([sound[2], sound[0], sound[1]]) == nil, "the last part first")
    #expect(read([sound[1], sound[0], sound[2]]) == nil, "parts in another order")
    #expect(read([sound[0], sound[2]]) == nil, "a part is missing")
    #expect(read([sound[0], sound[0], sound[1], sound[2]]) == nil, "a part is there twice")
    for index in 0..<3 {
      var mixed = sound
      mixed[index].ordinal += 1
      #expect(read(mixed) == nil, "part \(index) is of another edit")
      mixed = sound
      mixed[index].time += 1
      #expect(read(mixed) == nil, "part \(index) is of another time")
      mixed = sound
      mixed[index].kind = .edit
      #expect(read(mixed) == nil, "part \(index) is a whole edit")
      mixed = sound
      mixed[index].part += 1
      #expect(read(mixed) == nil, "part \(index) is another part")
    }
    // If nothing vouches for the parts, the power went before the last one.
    #expect(read(Array(sound.prefix(2))) == (isFirst ? nil : 0))
    #expect(read(Array(sound.prefix(1))) == (isFirst ? nil : 0))
  }

  @Test func `tells a damaged part from one that never came`() throws {
    let directory = MemoryDirectory()
    let limits = ManifestLimits(frame: 100)
    let manifest = try ManifestSamples.make(
      ManifestSamples.state(), in: directory, .memory(), rotationSize: 1 << 20, limits: limits)
    try manifest.commit(ManifestSamples.adds(3..<10))
    let before = Int(manifest.offset)
    try manifest.commit(ManifestSamples.adds(10..<30))
    let whole = try #require(directory.file("MANIFEST-\(manifest.superblock.manifest.rawValue)"))
    let name = whole.name
    let bytes = whole.bytes
    let end = Int(manifest.offset)
    for place in stride(from: before, to: end, by: 41) where bytes[place] != 0 {
      var damaged = bytes
      damaged[place] ^= 1
      directory.put(damaged, as: name)
      let read = try? ManifestSamples.load(from: directory, limits: limits)
      // Nothing after it says that it was on the device.
      #expect(read == nil || read?.state.shards[0].segments.count == 7, "byte \(place)")
    }
    directory.put(bytes, as: name)
    try manifest.commit(ManifestSamples.adds(30..<40))
    // The manifest opens its file by name for each edit.
    let longer = try #require(directory.file(name)).bytes
    for place in stride(from: before, to: end, by: 41) where longer[place] != 0 {
      var damaged = longer
      damaged[place] ^= 1
      directory.put(damaged, as: name)
      #expect(throws: EngineError.self, "byte \(place)") {
        try ManifestSamples.load(from: directory, limits: limits)
      }
    }
  }

  // MARK: - Crashes

  /// A power cut before every operation of edits that begin new manifests in many parts: the state
  /// before or after the edit comes back, and never less.
  @Test(arguments: [64, 300, 4 << 20])
  func `comes back from a power cut before any operation`(frame: Int) throws {
    let limits = ManifestLimits(frame: frame)
    let world = SimulatedWorld(seed: 1)
    let directory = try world.fileSystem.openDirectory(at: "/db", create: true)
    try directory.syncName()
    let manifest = try ManifestSamples.make(
      ManifestSamples.state(), in: directory, world.environment, rotationSize: 500,
      limits: limits)
    world.fileSystem.keepPictures()
    var states = [manifest.state.shards]
    var manifests: Set<FileNumber> = []
    for round in 0..<24 {
      world.fileSystem.note(states.count - 1)
      let first = 10 + 6 * round
      var changes = ManifestSamples.adds(first..<(first + 6))
      if round > 2 {
        for number in (first - 12)..<(first - 6) {
          changes.append(.dropSegment(shard: 0, number: FileNumber(rawValue: UInt64(number))))
        }
      }
      try manifest.commit(changes)
      manifests.insert(manifest.superblock.manifest)
      states.append(manifest.state.shards)
    }
    #expect(manifests.count > 2, "new ones were begun")
    let pictures = world.fileSystem.takePictures()
    for picture in pictures {
      for seed in 0..<6 {
        let left = SimulatedFileSystem(
          storage: picture.storage.afterPowerCut(seed: UInt64(picture.operation * 6 + seed)))
        let disk = try left.openDirectory(at: "/db", create: false)
        let read = try ManifestSamples.load(from: disk, limits: limits)
        let isKnown =
          read.state.shards == states[picture.note]
          || read.state.shards == states[picture.note + 1]
        #expect(
          isKnown,
          "operation \(picture.operation), \(picture.kind) of \(picture.file), seed \(seed)")
      }
    }
  }
}
