// Value files. The target writes values, damages the file and corrects its records' checksums. Then
// it reads values by the returned pointers or by pointers from the input. They are refused or, if
// undamaged, correct.

@testable import OndolEngine

enum ValueFileTarget: FuzzTarget {
  static let name = "valuefile"

  private static let identity = DatabaseIdentity(low: 1, high: 2)
  private static let number = FileNumber(rawValue: 5)
  private static let salt: UInt64 = 9

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    let directory = FuzzDirectory()
    let values = (0...input.below(6)).map { _ in
      input.flag()
        ? input.take(input.below(90)) : [UInt8](repeating: input.byte(), count: input.below(900))
    }
    guard let written = try? write(values, compress: input.flag(), to: directory) else {
      return demand(false, "values cannot be written")
    }
    var (metadata, pointers) = written
    var contents = directory.contents(number.valueFileName)
    let sound = contents
    contents.damage(&input)
    if contents.count == sound.count {
      for index in pointers.indices { seal(&contents, &pointers[index]) }
    }
    metadata.sizeBytes = UInt64(contents.count)
    if input.oneIn(8) { metadata.values = input.edge() }
    read(contents, metadata, pointers, values, isSound: contents == sound, &input)
  }

  private static func read(
    _ contents: [UInt8], _ metadata: ValueFileMetadata, _ pointers: [ValuePointer],
    _ values: [[UInt8]], isSound: Bool, _ input: inout FuzzInput
  ) {
    let file = ValueFile(
      metadata, identity: identity, shard: 1,
      directory: FuzzDirectory([number.valueFileName: contents]),
      cache: BlockCache(budgetBytes: 1 << 20))
    let isCounted = metadata.values == UInt64(values.count)
    for (pointer, expected) in zip(pointers, values) {
      let found = try? value(file, pointer)
      if isSound, isCounted { demand(found == expected, "a value is not what was written") }
    }
    for _ in 0..<input.below(4) {
      var pointer = input.pick(pointers)
      switch input.below(4) {
      case 0: pointer.offset = input.edge()
      case 1: pointer.storedLength = UInt32(truncatingIfNeeded: input.edge())
      case 2: pointer.rawLength = UInt32(truncatingIfNeeded: input.edge())
      default: pointer.ordinal = UInt32(truncatingIfNeeded: input.edge())
      }
      _ = try? value(file, pointer)
    }
    let isVerified = (try? file.verify()) != nil
    if isSound, isCounted { demand(isVerified, "a sound file is refused") }
  }

  private static func value(
    _ file: ValueFile, _ pointer: ValuePointer
  ) throws(EngineError) -> [UInt8] {
    let pin = try file.load(pointer, keep: true)
    let block = pin.block
    return block.value(0).array
  }

  private static func write(
    _ values: [[UInt8]], compress: Bool, to directory: FuzzDirectory
  ) throws(EngineError) -> (ValueFileMetadata, [ValuePointer]) {
    let writer = ValueFileWriter(
      file: try directory.create(number.valueFileName), number: number, salt: salt,
      identity: identity, shard: 1, compress: compress)
    var pointers: [ValuePointer] = []
    for value in values { pointers.append(try writer.add(value.bytes)) }
    return (try writer.finish(), pointers)
  }

  /// Corrects a record's checksum, and makes the pointer fit it.
  private static func seal(_ bytes: inout [UInt8], _ pointer: inout ValuePointer) {
    let start = Int(pointer.offset)
    let stored = (start + ValueFileFormat.recordHeaderLength)..<(start + Int(pointer.recordLength))
    let checksum = seededChecksum(
      contextSeed(salt: salt, offset: pointer.offset),
      bytes.bytes.extracting(start..<(start + ValueFileFormat.checkedLength)),
      bytes.bytes.extracting(stored))
    bytes.overwriteLittleEndian(checksum, at: start + ValueFileFormat.checkedLength)
    pointer.checksum = UInt32(truncatingIfNeeded: checksum)
    guard let header = try? ValueRecord(bytes.bytes.extracting(droppingFirst: start)) else {
      return
    }
    pointer.rawLength = header.rawLength
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var chance = Chance(6)
    return [20, 80, 200, 400].map { chance.bytes($0) }
  }
}
