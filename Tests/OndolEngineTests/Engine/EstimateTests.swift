// Estimated numbers of rows, compared with the true ones.

import Testing

@testable import OndolEngine

@Suite struct EstimateTests {
  private static let rows = 20_000

  private func key(_ number: Int) -> [UInt8] {
    var key: [UInt8] = [0, 0, 0x10, 0]
    key.appendBigEndian(UInt32(number))
    return key
  }

  /// Rows in memory, in one file, or in both.
  @Test(arguments: ["memory", "files", "both"])
  func `A range's estimate is near its number of rows`(place: String) async throws {
    var options = EngineOptions()
    options.blockSize = 1 << 10
    options.segmentSize = 64 << 10
    let engine = try await Engine.open(at: "/db", options: options, environment: .memory())
    var random = SeededRandom(seed: 7)
    for (part, numbers) in [0..<Self.rows / 2, Self.rows / 2..<Self.rows].enumerated() {
      var batch = Batch()
      for number in numbers {
        // Both parts are spread over all keys.
        let key = key(number % (Self.rows / 2) * 2 + part)
        let value = random.bytes(Int.random(in: 0..<60, using: &random))
        batch.put(key.bytes, value.bytes)
      }
      _ = try await engine.commit(batch, durability: .memory)
      if place == "files" || place == "both" && part == 0 { try await engine.flush() }
    }
    if place == "files" { try await engine.compact() }
    let snapshot = try engine.snapshot()
    for _ in 0..<200 {
      let bounds = (0..<2).map { _ in Int.random(in: 0...Self.rows, using: &random) }.sorted()
      let (lower, upper) = (key(bounds[0]), key(bounds[1]))
      let count = try snapshot.approximateRowCount(from: lower, to: upper, mayBlock: true)
      let exact = bounds[1] - bounds[0]
      // In memory each counted node represents many rows; in files the error is about a block.
      let tolerance = place == "files" ? 200 : 200 + exact / 3
      #expect(abs(count - exact) <= tolerance, "\(bounds): \(count)")
    }
    #expect(
      try snapshot.approximateRowCount(from: [0, 0, 0x10, 1], to: [0, 0, 0x10, 2], mayBlock: true)
        == 0)
    try await engine.close()
  }

  @Test func `An estimate that may not block says when it would`() async throws {
    let environment = Environment.memory()
    var engine = try await Engine.open(at: "/db", environment: environment)
    var batch = Batch()
    for number in 0..<Self.rows {
      let key = key(number)
      batch.put(key.bytes, key.bytes)
    }
    _ = try await engine.commit(batch, durability: .memory)
    try await engine.close()
    engine = try await Engine.open(at: "/db", environment: environment)
    let snapshot = try engine.snapshot()
    let (lower, upper) = (key(5), key(Self.rows - 5))
    #expect(throws: EngineError.wouldBlock) {
      try snapshot.approximateRowCount(from: lower, to: upper, mayBlock: false)
    }
    let count = try snapshot.approximateRowCount(from: lower, to: upper, mayBlock: true)
    #expect(
      try snapshot.approximateRowCount(from: lower, to: upper, mayBlock: false) == count)
    #expect(abs(count - Self.rows) < Self.rows / 10)
    try await engine.close()
  }
}
