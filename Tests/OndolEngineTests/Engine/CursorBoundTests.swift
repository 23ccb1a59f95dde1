// What a cursor looks at: the rows of its range, however many deletions are before and behind it.
// A write to each of many places, all of them deleted before, once passed over all deletions behind
// the place, each time.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct CursorBoundTests {
  @Test func `A cursor does not pass over deletions beyond its range`() async throws {
    let environment = Environment.memory()
    var options = EngineOptions()
    options.shardCount = 1
    options.cacheSize = 0
    options.blockSize = 512
    let engine = try await Engine.open(at: "db", options: options, environment: environment)
    let keys = (0..<4_000).map { rowKey("\(10_000 + $0)") }
    // Above a lower run that has the rows, so that no flush leaves the deletions out.
    let rows: [[UInt8]: [UInt8]?] = Dictionary(
      uniqueKeysWithValues: keys.map { ($0, .some([7])) })
    try await engine.put(rows)
    // So much beside them that the deletions stay where they are.
    let others = (0..<3_000).map { (rowKey("\(20_000 + $0)"), [UInt8](repeating: 1, count: 1_500)) }
    try await engine.put(Dictionary(uniqueKeysWithValues: others).mapValues { .some($0) })
    try await engine.settle()
    try await engine.put(rows.mapValues { _ in nil })
    try await engine.flush()
    try await engine.close()
    let again = try await Engine.open(at: "db", options: options, environment: environment)
    let reads = { again.metrics.blockLoads }

    let snapshot = try again.snapshot()
    let (lower, upper) = (keys[2_000], keys[2_001])
    var before = reads()
    for isForward in [true, false] {
      var cursor = snapshot.cursor(from: lower, to: upper)
      var found: [Bool] = []
      if isForward { try cursor.seekToFirst() } else { try cursor.seekToLast() }
      found.append(cursor.isValid)
      try cursor.seek(atOrAfter: lower.bytes)
      found.append(cursor.isValid)
      try cursor.seek(atOrBefore: lower.bytes)
      found.append(cursor.isValid)
      #expect(found == [false, false, false])
    }
    #expect(reads() - before < 40)
    // All of it is passed over where the range is all of it.
    before = reads()
    var cursor = snapshot.cursor(from: keys[0], to: keys[3_999] + [0])
    try cursor.seekToFirst()
    let isThere = cursor.isValid
    #expect(!isThere)
    #expect(reads() - before > 60)
  }
}
