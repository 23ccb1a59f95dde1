// Contents of blobs. A content's location is parsed from any bytes or refused. The target writes
// packs, damages them, corrects their checksums, walks them from the front, and reads them at the
// returned locations. Every result is inside the file, and undamaged contents are correct. It also
// reads a file of one content by checksums that need not be its own.

@testable import OndolEngine

enum PackTarget: FuzzTarget {
  static let name = "pack"

  private static let number = FileNumber(rawValue: 5)
  private static let salt: UInt64 = 9

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    switch input.below(4) {
    case 0: readLocation(input.rest())
    case 1: readContentFile(&input)
    default: readPack(&input)
    }
  }

  // MARK: - Locations

  private static func readLocation(_ bytes: [UInt8]) {
    guard let location = try? ContentLocation(bytes.bytes) else { return }
    _ = location.length
    _ = location.storedBytes
    let written = location.bytes
    let again = try? ContentLocation(written.bytes)
    demand(again == location, "\(location) comes back as \(again as Any)")
    if case .pack(let place) = location {
      let file = FuzzDirectory([number.packName: bytes])
      _ = try? read(place, in: file, 0..<max(1, Int(place.length)))
    }
  }

  private static func readContentFile(_ input: inout FuzzInput) {
    let content = content(&input)
    guard !content.isEmpty else { return }
    let checksums = (0..<ContentFrame.count(ofContent: UInt64(content.count))).map { frame in
      let range = ContentFrame.range(frame, ofContent: content.count)
      return ContentFrame.checksum(
        content.bytes.extracting(range), salt: salt, offset: UInt64(range.lowerBound))
    }
    var place = ContentFilePlace(
      file: number, salt: salt, length: UInt64(content.count), checksums: checksums)
    var stored = content
    if input.flag() { stored.damage(&input) }
    if input.oneIn(4) { place.length = min(input.edge(), ContentFrame.largestContent) }
    // A possible row: as many checksums as frames.
    let frames = ContentFrame.count(ofContent: place.length)
    guard frames > 0, frames < 1 << 16 else { return }
    while place.checksums.count < frames { place.checksums.append(7) }
    place.checksums.removeLast(place.checksums.count - frames)
    let range = range(&input, in: Int(place.length))
    let directory = FuzzDirectory([number.contentFileName: stored])
    guard range.count < 1 << 22,
      let file = try? directory.open(number.contentFileName, access: .readOnly)
    else { return }
    let found = try? place.content(in: range, of: file, mayBlock: true)
    if stored == content, place.length == UInt64(content.count) {
      demand(found == Array(content[range]), "\(range) of a sound file is not what was written")
    } else if let found {
      demand(found.count == range.count, "\(found.count) bytes for \(range)")
    }
  }

  // MARK: - Packs

  private static func readPack(_ input: inout FuzzInput) {
    var pack = DataFileHeader(
      kind: .pack, number: number, salt: salt, identity: DatabaseIdentity(low: 1, high: 2), shard: 0
    ).encode()
    var written: [(content: [UInt8], place: PackPlace)] = []
    for index in 0...input.below(5) {
      let content = content(&input)
      let digest = [UInt8](repeating: UInt8(index), count: PackFormat.digestLength)
      let draft = PackEntryDraft(content, digest: digest, compress: input.flag())
      let place = PackPlace(
        pack: number, salt: salt, offset: UInt64(pack.count), length: UInt32(content.count),
        entryLength: UInt32(draft.entryLength(isSealed: false)))
      draft.append(to: &pack, salt: salt, offset: place.offset)
      written.append((content, place))
    }
    let sound = pack
    damage(&pack, written.map(\.place), &input)
    let directory = FuzzDirectory([number.packName: pack])
    walk(directory, pack, written.map(\.place), isSound: pack == sound)
    for (content, place) in written where !content.isEmpty {
      let range = range(&input, in: content.count)
      let found = try? read(place, in: directory, range)
      if pack == sound {
        demand(found == Array(content[range]), "\(range) of \(place) is not what was written")
      }
    }
    var place = input.pick(written).place
    switch input.below(4) {
    case 0: place.offset = min(input.edge() & ~7, PackFormat.largestOffset)
    case 1: place.length = UInt32(truncatingIfNeeded: input.edge())
    case 2: place.entryLength = UInt32(truncatingIfNeeded: input.edge())
    default: place.salt = input.edge()
    }
    // The value of a row states a location. Decoding it refuses impossible locations in packs.
    let row = ContentLocation.pack(place).bytes
    guard case .pack(let said)? = try? ContentLocation(row.bytes), said.length > 0 else { return }
    _ = try? read(said, in: directory, range(&input, in: Int(said.length)))
  }

  /// Damages the heads of entries, or any bytes, and corrects the checksums.
  private static func damage(
    _ pack: inout [UInt8], _ places: [PackPlace], _ input: inout FuzzInput
  ) {
    let length = pack.count
    if input.flag() {
      let start = Int(input.pick(places).offset)
      var head = Array(pack[start..<min(length, start + 80)])
      let before = head.count
      head.damage(&input)
      if head.count == before { pack.replaceSubrange(start..<(start + before), with: head) }
    }
    if input.oneIn(3) { pack.damage(&input) }
    guard pack.count == length, input.flag() else { return }
    for place in places { seal(&pack, Int(place.offset)) }
  }

  /// Corrects the checksums of an entry's frames and of its head, as far as they are inside the
  /// file.
  private static func seal(_ pack: inout [UInt8], _ start: Int) {
    func word(_ offset: Int) -> Int {
      pack[offset..<(offset + 4)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    let table = start + PackFormat.entryHeaderLength
    let frames = word(start + 12)
    guard frames < 1 << 10, table + frames * PackFormat.tableRowLength <= pack.count else { return }
    var offset = table + frames * PackFormat.tableRowLength
    for row in 0..<frames {
      let entry = table + row * PackFormat.tableRowLength
      let length = word(entry)
      guard offset + length <= pack.count else { break }
      let checksum = ContentFrame.checksum(
        pack.bytes.extracting(offset..<(offset + length)), salt: salt, offset: UInt64(offset))
      pack.overwriteLittleEndian(checksum, at: entry + 4)
      offset += length
    }
    let checksum = seededChecksum(
      contextSeed(salt: salt, offset: UInt64(start)),
      pack.bytes.extracting(start..<(start + PackFormat.checkedLength)),
      pack.bytes.extracting(table..<(table + frames * PackFormat.tableRowLength)))
    pack.overwriteLittleEndian(checksum, at: start + PackFormat.checkedLength)
  }

  private static func walk(
    _ directory: FuzzDirectory, _ pack: [UInt8], _ places: [PackPlace], isSound: Bool
  ) {
    guard let file = try? directory.open(number.packName, access: .readOnly),
      var walk = try? PackWalk(file, number: number, salt: salt)
    else { return demand(false, "a pack cannot be opened") }
    var found: [PackPlace] = []
    while let entry = try? walk.next() {
      let end = entry.place.offset + UInt64(entry.place.entryLength)
      demand(end <= UInt64(pack.count), "an entry that reaches behind the end")
      demand(entry.place.offset >= found.last.map(\.offset) ?? 0, "a walk that goes back")
      found.append(entry.place)
      demand(found.count <= pack.count, "a walk that does not end")
    }
    if isSound { demand(found == places, "\(found) are found, not \(places)") }
    for place in found.prefix(4) where place.length > 0 {
      _ = try? read(place, in: directory, 0..<Int(place.length))
    }
  }

  private static func read(
    _ place: PackPlace, in directory: FuzzDirectory, _ range: Range<Int>
  ) throws(EngineError) -> [UInt8] {
    let file = try directory.open(number.packName, access: .readOnly)
    let found = try PackReading(place, file: file, mayBlock: true).content(in: range)
    demand(found.count == range.count, "\(found.count) bytes for \(range)")
    return found
  }

  // MARK: - Parts

  /// Mostly small contents, and sometimes one of several frames.
  private static func content(_ input: inout FuzzInput) -> [UInt8] {
    switch input.below(8) {
    case 0: [UInt8](repeating: input.byte(), count: 65_400 + input.below(70_000))
    case 1: [UInt8](repeating: input.byte(), count: input.below(3_000))
    default: input.take(input.below(120))
    }
  }

  /// Returns a range of `count` bytes, at least one long.
  private static func range(_ input: inout FuzzInput, in count: Int) -> Range<Int> {
    let start = Int(input.edge() % UInt64(count))
    let length = 1 + Int(input.edge() % UInt64(count - start))
    return input.flag() ? 0..<count : start..<(start + length)
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    let locations: [ContentLocation] = [
      .inline([1, 2, 3]),
      .pack(PackPlace(pack: number, salt: salt, offset: 64, length: 100, entryLength: 170)),
      .file(ContentFilePlace(file: number, salt: salt, length: 70_000, checksums: [1, 2])),
    ]
    var chance = Chance(12)
    return locations.map { [0] + $0.bytes } + [
      [1] + chance.bytes(60), [1, 0, 3] + chance.bytes(40),
    ]
      + [40, 90, 200, 400].map { [2] + chance.bytes($0) }
  }
}
