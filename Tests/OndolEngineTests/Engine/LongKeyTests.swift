// Keys from 1 KiB to several mebibytes: longer than a block, than a chunk of output and than a
// frame of the manifest, which names the first and the last key of each segment. No shortcut that
// avoids copying such keys may change the result.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct LongKeyTests {
  /// Around the lengths that the code treats as long: 64 KiB, 1 MiB, and 4 MiB.
  private static let lengths = [
    1 << 10, 65_500, 65_536, 65_600, (1 << 20) - 40, (1 << 20) + 1, (2 << 20) + 3, (4 << 20) + 100,
  ]

  @Test(arguments: Seeds.first(1), [false, true])
  func `Rows with long keys are read back from memory, files and a new opening`(
    seed: UInt64, isSealed: Bool
  ) async throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let place = KeyedPlace()
    func open() async throws -> Engine {
      var environment = SimulatedWorld(fileSystem: place.fileSystem, seed: seed).environment
      if isSealed { environment.vault = place.oracle }
      return try await Engine.open(at: "/db", options: tinyOptions(), environment: environment)
    }
    var engine = try await open()
    let group = isSealed ? try await engine.makeKeyedGroup() : 1
    var model: [[UInt8]: [UInt8]] = [:]
    for (number, length) in Self.lengths.enumerated() {
      // Half of them share everything except their end with the next, so that separators are long
      // as well.
      let shared = [UInt8](repeating: 0x41, count: length - 20)
      let middle = random.chance(1, in: 2) ? shared : random.bytes(length - 20)
      for _ in 0..<2 {
        let key = rowKey("", group: group) + middle + random.bytes(20)
        let value = random.bytes(number * 3)
        model[key] = value
        try await engine.put([key: value])
      }
      if random.chance(1, in: 2) { try await engine.flush() }
    }
    func check(_ when: String) async throws {
      let rows = try engine.rows(group: group)
      let expected = model.sorted { $0.key.lexicographicallyPrecedes($1.key) }
      let isSame =
        rows.count == expected.count
        && zip(rows, expected).allSatisfy { $0.key == $1.key && $0.value == $1.value }
      #expect(isSame, "SEED=\(seed): \(rows.count) of \(expected.count) rows \(when)")
      for (key, value) in expected {
        let found = try await engine.snapshot().get(key)
        #expect(found == value, "SEED=\(seed): a key of \(key.count) bytes \(when)")
      }
    }
    try await check("in memory and files")
    try await engine.flush()
    try await check("in files")
    try await engine.compact()
    try await check("after a merge")
    try await engine.close()
    engine = try await open()
    try await check("after an opening")
    try await engine.close()
  }
}
