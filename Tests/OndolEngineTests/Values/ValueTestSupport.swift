// Value files to write and to read back.

@testable import OndolEngine

/// A value file in memory, and what is in it.
struct WrittenValues {
  var metadata: ValueFileMetadata
  var values: [[UInt8]]
  var pointers: [ValuePointer]
}

/// A writer to value file `number` of `directory`.
func makeValueWriter(
  _ number: UInt64, to directory: MemoryDirectory, salt: UInt64 = 0x0102_0304_0506_0708,
  compress: Bool = true
) throws(EngineError) -> ValueFileWriter {
  let number = FileNumber(rawValue: number)
  return ValueFileWriter(
    file: try directory.create(number.valueFileName), number: number, salt: salt,
    identity: testIdentity, shard: 1, compress: compress)
}

/// Writes `values` into a file of `directory`.
func writeValues(
  _ values: [[UInt8]], number: UInt64 = 5, to directory: MemoryDirectory, compress: Bool = true
) throws(EngineError) -> WrittenValues {
  let writer = try makeValueWriter(number, to: directory, compress: compress)
  var pointers: [ValuePointer] = []
  for value in values { pointers.append(try writer.add(value.bytes)) }
  return WrittenValues(metadata: try writer.finish(), values: values, pointers: pointers)
}

func openValues(
  _ metadata: ValueFileMetadata, in directory: MemoryDirectory, cache: BlockCache
) -> ValueFile {
  ValueFile(metadata, identity: testIdentity, shard: 1, directory: directory, cache: cache)
}

extension ValueFile {
  /// The value that `pointer` points to, copied.
  func value(_ pointer: ValuePointer, keep: Bool = true) throws(EngineError) -> [UInt8] {
    let pin = try load(pointer, keep: keep)
    let block = pin.block
    return block.value(0).array
  }
}

/// Values of all sizes, half of which can be compressed.
func randomValues(
  _ count: Int, upTo size: Int, _ random: inout SeededRandom
) -> [[UInt8]] {
  (0..<count).map { index in
    let length = index == 0 ? 0 : Int.random(in: 0...size, using: &random)
    return Bool.random(using: &random)
      ? random.bytes(length) : [UInt8](repeating: UInt8(index & 255), count: length)
  }
}
