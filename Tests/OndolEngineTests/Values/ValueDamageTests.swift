// The permitted results of a damaged value file, or of a pointer from a hostile segment: a refusal
// with its place, or the correct value. Never a wrong one, and never a trap.

import Testing

@testable import OndolEngine

@Suite struct ValueDamageTests {
  private func write(_ compress: Bool) throws -> (WrittenValues, [UInt8]) {
    let directory = MemoryDirectory()
    var random = SeededRandom(seed: 8)
    let written = try writeValues(
      randomValues(12, upTo: 60, &random), to: directory, compress: compress)
    return (written, try #require(directory.file("5.val")).bytes)
  }

  /// Reads every value of `bytes`, and returns the first error.
  private func read(_ bytes: [UInt8], _ written: WrittenValues) -> EngineError? {
    let directory = MemoryDirectory()
    directory.put(bytes, as: "5.val")
    let file = openValues(
      written.metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))
    var failure: EngineError?
    for (pointer, value) in zip(written.pointers, written.values) {
      do throws(EngineError) {
        let found = try file.value(pointer)
        #expect(found == value)
      } catch {
        failure = failure ?? error
      }
    }
    return failure
  }

  private func isTyped(_ error: EngineError?) -> Bool {
    if case .corrupt(file: "5.val", _, _) = error { true } else { false }
  }

  @Test(arguments: [true, false])
  func `a flipped bit anywhere is an error`(_ compress: Bool) throws {
    let (written, bytes) = try write(compress)
    #expect(read(bytes, written) == nil)
    for bit in 0..<(bytes.count * 8) {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(isTyped(read(damaged, written)), "bit \(bit)")
    }
  }

  @Test(arguments: [true, false])
  func `a file cut anywhere, or longer than it was, is an error`(_ compress: Bool) throws {
    let (written, bytes) = try write(compress)
    for length in 0..<bytes.count {
      #expect(isTyped(read(Array(bytes.prefix(length)), written)), "cut at \(length)")
    }
    #expect(isTyped(read(bytes + [0], written)))
  }

  @Test func `verifying finds what reading would`() throws {
    let (written, bytes) = try write(true)
    func verify(_ bytes: [UInt8]) throws(EngineError) {
      let directory = MemoryDirectory()
      directory.put(bytes, as: "5.val")
      let cache = BlockCache(budgetBytes: 1 << 20)
      try openValues(written.metadata, in: directory, cache: cache).verify()
    }
    try verify(bytes)
    for bit in 0..<(bytes.count * 8) {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: EngineError.self, "bit \(bit)") { try verify(damaged) }
    }
  }

  /// An older incarnation of the file has sound records other than the ones pointed to.
  @Test func `records of another file or place are recognised`() throws {
    let (written, bytes) = try write(false)
    var damaged = bytes
    let first = written.pointers[1]
    for pointer in written.pointers where pointer.storedLength == first.storedLength {
      let length = Int(first.recordLength)
      damaged.replaceSubrange(
        Int(pointer.offset)..<(Int(pointer.offset) + length),
        with: bytes[Int(first.offset)..<(Int(first.offset) + length)])
    }
    if damaged != bytes { #expect(isTyped(read(damaged, written))) }

    let directory = MemoryDirectory()
    let writer = try makeValueWriter(5, to: directory, salt: 77)
    for value in written.values { _ = try writer.add(value.bytes) }
    _ = try writer.finish()
    #expect(isTyped(read(try #require(directory.file("5.val")).bytes, written)))
  }

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func `a pointer to anywhere is an error or leads to its value`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let directory = MemoryDirectory()
    let written = try writeValues(randomValues(40, upTo: 300, &random), to: directory)
    let file = openValues(
      written.metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))
    for _ in 0..<4_000 {
      let index = Int.random(in: 0..<40, using: &random)
      var bytes = written.pointers[index].encode()
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        // The number of the file selects the file, and is not checked again. A hostile ordinal
        // alone may find another value in the cache, which is the business of the segment's
        // checksum.
        let place = Int.random(in: 8..<28, using: &random)
        bytes[place] = UInt8.random(in: 0...255, using: &random)
      }
      let hostile = try ValuePointer(bytes.bytes)
      do throws(EngineError) {
        let value = try file.value(hostile)
        #expect(value == written.values[index], "seed \(seed)")
      } catch {
        #expect(isTyped(error), "seed \(seed): \(error)")
      }
    }
  }

  @Test func `a pointer beyond the last value is refused`() throws {
    let directory = MemoryDirectory()
    let written = try writeValues([[1], [2]], to: directory)
    let file = openValues(
      written.metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))
    var pointer = written.pointers[1]
    pointer.ordinal = 2
    #expect(throws: EngineError.self) { _ = try file.value(pointer) }
    pointer.ordinal = .max
    #expect(throws: EngineError.self) { _ = try file.value(pointer) }
  }
}
