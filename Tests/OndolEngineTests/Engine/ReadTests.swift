// All ways to read, side by side, in a small random world: single gets, many at once, cursors that
// may wait for the disk and cursors that may not, all compared with a sorted array, with caches
// from nearly nothing to plenty and rows in memtables, young runs and old ones.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct ReadTests {
  struct Setup: CustomStringConvertible {
    var seed: UInt64
    var cacheSize: Int
    var isCompacted: Bool
    var description: String { "seed \(seed), cache \(cacheSize), isCompacted \(isCompacted)" }
  }

  static let setups = [
    Setup(seed: 1, cacheSize: 0, isCompacted: true),
    Setup(seed: 2, cacheSize: 0, isCompacted: false),
    Setup(seed: 3, cacheSize: 40_000, isCompacted: false),
    Setup(seed: 4, cacheSize: 40_000, isCompacted: true),
    Setup(seed: 5, cacheSize: 1 << 20, isCompacted: false),
    Setup(seed: 6, cacheSize: 1 << 20, isCompacted: true),
  ]

  /// An engine with rows in many places, and those rows in order.
  static func make(
    _ setup: Setup, _ random: inout SeededRandom
  ) async throws -> (Engine, [(key: [UInt8], value: [UInt8])]) {
    var options = EngineOptions()
    options.shardCount = 1
    options.cacheSize = setup.cacheSize
    options.blockSize = 512
    options.memtableSize = 16 << 10
    let world = SimulatedWorld(seed: setup.seed)
    let engine = try await Engine.open(
      at: "db", options: options, environment: world.environment)
    var model: [[UInt8]: [UInt8]] = [:]
    for round in 0..<6 {
      for _ in 0..<20 {
        var rows: [[UInt8]: [UInt8]?] = [:]
        for _ in 0..<10 {
          let key = rowKey("\(Int.random(in: 0..<900, using: &random))")
          let isDeleted = Int.random(in: 0..<4, using: &random) == 0
          rows[key] = .some(
            isDeleted ? nil : random.bytes(Int.random(in: 0...60, using: &random)))
        }
        for (key, value) in rows { model[key] = value }
        try await engine.put(rows)
      }
      if round < 5 { try await engine.flush() }
    }
    if setup.isCompacted { try await engine.compact() }
    return (engine, model.map { (key: $0.key, value: $0.value) }.sorted { $0.key < $1.key })
  }

  @Test(arguments: setups)
  func `Batched gets return what single gets return`(_ setup: Setup) async throws {
    var random = SeededRandom(seed: setup.seed)
    let (engine, rows) = try await Self.make(setup, &random)
    let model = Dictionary(uniqueKeysWithValues: rows.map { ($0.key, $0.value) })
    let snapshot = try engine.snapshot()
    for count in [0, 1, 2, 15, 16, 17, 100] {
      let keys = (0..<count).map { _ in
        rowKey("\(Int.random(in: 0..<1_000, using: &random))")
      }
      let wanted = keys.map { model[$0] }
      for mayBlock in [true, false] {
        var found = [[UInt8]?](repeating: nil, count: count)
        var places: [Int] = []
        let isComplete = try snapshot.withValues(of: keys, at: 0..<count, mayBlock: mayBlock) {
          found[$0] = $1.array
          places.append($0)
        }
        #expect(isComplete || !mayBlock)
        #expect(places == places.sorted())
        // The row where it gave up, and all later ones, are absent.
        let end = isComplete ? count : (places.last ?? -1) + 1
        #expect(found[..<end] == wanted[..<end])
      }
      for key in keys { #expect(try snapshot.getBlocking(key) == model[key]) }
    }
    try await engine.close()
  }

  @Test(arguments: setups)
  func `Cursors agree with a sorted array, whether they may block or not`(
    _ setup: Setup
  ) async throws {
    var random = SeededRandom(seed: setup.seed)
    let (engine, all) = try await Self.make(setup, &random)
    for _ in 0..<20 {
      let bounds = [rowKey("\(Int.random(in: 0..<500, using: &random))"), rowKey("7"), rowKey("")]
      let lower = bounds.randomElement(using: &random) ?? []
      let upper = Bool.random(using: &random) ? rowKey("8") : rowKey("", group: 2)
      let rows = all.filter { !($0.key < lower) && $0.key < upper }
      for mayBlock in [true, false] {
        var cursor = try engine.snapshot().cursor(from: lower, to: upper, mayBlock: mayBlock)
        var place = -1
        for _ in 0..<60 {
          let key = rowKey("\(Int.random(in: 0..<900, using: &random))")
          let isInside = rows.indices.contains(place)
          do throws(EngineError) {
            switch Int.random(in: 0..<(isInside ? 16 : 4), using: &random) {
            case 0:
              try cursor.seekToFirst()
              place = rows.isEmpty ? -1 : 0
            case 1:
              try cursor.seekToLast()
              place = rows.count - 1
            case 2:
              try cursor.seek(atOrAfter: key.bytes)
              place = rows.firstIndex { !($0.key < key) } ?? -1
            case 3:
              try cursor.seek(atOrBefore: key.bytes)
              place = rows.lastIndex { !(key < $0.key) } ?? -1
            case 4...6:
              try cursor.previous()
              place -= 1
            default:
              try cursor.next()
              place += 1
            }
          } catch {
            #expect(error == .wouldBlock && !mayBlock)
            place = -1
          }
          let isValid = cursor.isValid
          #expect(isValid == rows.indices.contains(place))
          guard isValid, rows.indices.contains(place) else { continue }
          let (foundKey, foundValue) = (cursor.key.array, try cursor.value.array)
          #expect(foundKey == rows[place].key && foundValue == rows[place].value)
        }
      }
    }
    try await engine.close()
  }

  @Test func `A cursor that may not block refuses a block that is not in memory`() async throws {
    var random = SeededRandom(seed: 9)
    let setup = Setup(seed: 9, cacheSize: 0, isCompacted: true)
    let (engine, _) = try await Self.make(setup, &random)
    var cursor = try engine.snapshot().cursor(
      from: rowKey(""), to: rowKey("", group: 2), mayBlock: false)
    var refusals = 0
    do throws(EngineError) {
      try cursor.seekToFirst()
    } catch {
      #expect(error == .wouldBlock)
      refusals += 1
    }
    let isValid = cursor.isValid
    #expect(refusals == 1 && !isValid)
    try await engine.close()
  }

  @Test func `A memtable's bytes count against the budget until it is flushed`() async throws {
    var options = EngineOptions()
    options.shardCount = 1
    options.cacheSize = 4 << 20
    options.memtableSize = 1 << 20
    let engine = try await Engine.open(
      at: "db", options: options, environment: SimulatedWorld(seed: 8).environment)
    for number in 0..<40 {
      try await engine.put([rowKey("\(number)"): [UInt8](repeating: 7, count: 10_000)])
    }
    let memtableBytes = engine.metrics.shards.map(\.memtableBytes).reduce(0, +)
    #expect(memtableBytes > 400_000)
    #expect(engine.metrics.cachedBytes >= memtableBytes)
    try await engine.flush()
    #expect(engine.metrics.shards.map(\.memtableBytes).reduce(0, +) == 0)
    // Its memory is kept for the next one, and counts until the database is quiet.
    #expect(engine.metrics.cachedBytes <= options.memtableSize + 100_000)
    try await engine.close()
  }
}
