// Chunks of postings, whose keys leave out the prefix that they share with the previous one.
// Seeking one without reconstructing keys finds what sequential reading finds, whatever the bytes.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ChunkTests {
  /// A chunk's key, with nothing after it.
  private struct Entry {
    var shared: UInt8
    var further: [UInt8]

    var bytes: [UInt8] { [shared, UInt8(further.count)] + further + [0, 0] }
  }

  private static func keys(_ chunk: [UInt8]) throws(MalformedBytes) -> [[UInt8]] {
    var reader = ChunkReader(chunk)
    var keys: [[UInt8]] = []
    while try reader.next() { keys.append(reader.key) }
    return keys
  }

  /// The first key at or after the wanted one; nil if there is none.
  private static func seek(_ wanted: [UInt8], _ chunk: [UInt8]) throws(MalformedBytes) -> [UInt8]? {
    var reader = ChunkReader(chunk)
    return try reader.seek(wanted) ? reader.key : nil
  }

  /// It was once taken for one after the wanted key, which then seemed absent.
  @Test func `A key that shares less than it could is refused`() throws {
    let entries = [
      Entry(shared: 0, further: [1, 2, 3]), Entry(shared: 1, further: [2, 3, 4]),
      Entry(shared: 3, further: [5]),
    ]
    let chunk = entries.flatMap(\.bytes)
    #expect(throws: MalformedBytes.self) { try Self.keys(chunk) }
    #expect(throws: MalformedBytes.self) { try Self.seek([1, 2, 3, 5], chunk) }
  }

  @Test(arguments: Seeds.first(2))
  func `Seeking finds every key of a sequential read`(seed: UInt64) throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var (wholes, refusals) = (0, 0)
    for _ in 0..<20_000 {
      var key: [UInt8] = []
      var entries: [Entry] = []
      for _ in 0..<(1 + random.below(4)) {
        let shared = random.below(key.count + 1)
        let further = (0..<random.below(4)).map { _ in UInt8(random.below(3)) }
        key = key[..<shared] + further
        entries.append(Entry(shared: UInt8(shared), further: further))
      }
      let chunk = entries.flatMap(\.bytes)
      guard let keys = try? Self.keys(chunk) else {
        refusals += 1
        continue
      }
      wholes += 1
      #expect(
        !zip(keys, keys.dropFirst()).contains { $1.lexicographicallyPrecedes($0) }, "seed \(seed)")
      let wanted = (0..<random.below(5)).map { _ in UInt8(random.below(3)) }
      for wanted in keys + [wanted] {
        let expected = keys.first { !$0.lexicographicallyPrecedes(wanted) }
        #expect(try Self.seek(wanted, chunk) == expected, "seed \(seed): \(wanted) in \(keys)")
      }
    }
    #expect(wholes > 2_000 && refusals > 2_000, "\(wholes) and \(refusals)")
  }
}
