// Memtables compared with a model: rows in ascending runs, in random order and mixed, in several
// keyspaces, one by one and many at a time; and memory that one memtable leaves to the next.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct MemtableModelTests {
  /// A row in its expected form.
  private struct Row: Equatable {
    var key: [UInt8]
    var sequence: UInt64
    var value: [UInt8]?
  }

  /// Makes keys in runs: some ascend from where the last one of their keyspace ended, some descend,
  /// some are anywhere. A few are shorter than the prefix that nodes keep.
  private struct Keys {
    private var random: OndolTestKit.SeededRandom
    private var next = [UInt64](repeating: 1 << 32, count: 3)
    private var rest = 0
    private var keyspace = 0
    private var way = 0

    init(seed: UInt64) {
      random = OndolTestKit.SeededRandom(seed: seed)
    }

    mutating func key() -> [UInt8] {
      if rest == 0 {
        rest = 1 + random.below(random.pick([2, 20, 100]))
        keyspace = random.below(3)
        way = random.below(4)
      }
      rest -= 1
      var key: [UInt8] = [0, 0, 0x10, UInt8(keyspace)]
      switch way {
      case 0, 1:
        next[keyspace] += UInt64(1 + random.below(3))
        key.appendBigEndian(next[keyspace])
        if way == 1 { key += random.bytes(random.below(6)) }
      case 2:
        key.appendBigEndian(next[keyspace] - UInt64(rest))
      default:
        key += random.bytes(random.below(12))
      }
      return key
    }
  }

  /// Fills a memtable, and returns its expected contents, in order.
  private func fill(
    _ memtable: Memtable, from first: UInt64, commits: Int, _ keys: inout Keys,
    _ random: inout OndolTestKit.SeededRandom
  ) -> [Row] {
    var rows: [Row] = []
    for sequence in first..<(first + UInt64(commits)) {
      let number = SequenceNumber(rawValue: sequence)
      memtable.begin(number, log: FileNumber(rawValue: 1))
      for _ in 0..<(1 + random.below(random.pick([1, 5, 60]))) {
        let key = keys.key()
        let isDeleted = random.below(8) == 0
        let value = isDeleted ? [] : random.bytes(random.below(40))
        memtable.add(key.bytes, number, isDeleted ? .delete : .put, value.bytes)
        // The last one of a commit wins, and precedes those that it hides.
        rows.insert(
          Row(key: key, sequence: sequence, value: isDeleted ? nil : value), at: 0)
      }
      memtable.link()
    }
    let places = rows.indices.sorted { left, right in
      let (one, other) = (rows[left], rows[right])
      if one.key != other.key { return one.key.lexicographicallyPrecedes(other.key) }
      return one.sequence != other.sequence ? one.sequence > other.sequence : left < right
    }
    return places.map { rows[$0] }
  }

  private func contents(of memtable: Memtable) -> [Row] {
    var rows: [Row] = []
    var node = memtable.node(after: 0)
    while node != 0 {
      rows.append(
        Row(
          key: memtable.key(of: node).array, sequence: memtable.sequence(of: node).rawValue,
          value: memtable.kind(of: node) == .put ? memtable.value(of: node).array : nil))
      node = memtable.node(after: node)
    }
    return rows
  }

  /// Returns the result of a lookup; an inner nil for a deleted row.
  private func value(
    of key: [UInt8], upTo sequence: UInt64, in memtable: Memtable
  ) -> [UInt8]?? {
    var found: [UInt8]??
    _ = memtable.find(key.bytes, upTo: SequenceNumber(rawValue: sequence)) { kind, value in
      found = .some(kind == .put ? value.array : nil)
    }
    return found
  }

  @Test(arguments: Seeds.first(30))
  func `Rows stand in order however their keys come, and every version is found`(seed: UInt64) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var keys = Keys(seed: seed ^ 1)
    let memtable = Memtable(capacity: 1 << 20)
    let rows = fill(memtable, from: 1, commits: 250, &keys, &random)
    #expect(contents(of: memtable) == rows, "SEED=\(seed)")
    #expect(memtable.rows == rows.count, "SEED=\(seed)")
    for _ in 0..<500 {
      let key = random.below(3) == 0 ? keys.key() : rows[random.below(rows.count)].key
      let sequence = UInt64(random.below(260))
      let expected = rows.first { $0.key == key && $0.sequence <= sequence }
      #expect(
        value(of: key, upTo: sequence, in: memtable) == expected.map(\.value),
        "SEED=\(seed), \(key) up to \(sequence)")
      let node = memtable.lastNode(before: key.bytes)
      let before = rows.last { $0.key.lexicographicallyPrecedes(key) }
      #expect(
        (node == 0 ? nil : memtable.key(of: node).array) == before?.key, "SEED=\(seed), \(key)")
    }
  }

  @Test(arguments: Seeds.first(6))
  func `Readers beside a writer see rows in order, whole, and none of a later commit`(
    seed: UInt64
  ) async {
    let memtable = Memtable(capacity: 4 << 20)
    let placed = Guarded<UInt64>(0)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<2 {
        group.addTask {
          var seen = 0
          while true {
            let upTo = placed.withLock { $0 }
            let cursor = MemtableCursor(memtable, upTo: SequenceNumber(rawValue: upTo))
            cursor.seekToFirst()
            var count = 0
            var last: [UInt8] = []
            while cursor.isValid {
              let key = cursor.key.array
              #expect(last.lexicographicallyPrecedes(key), "SEED=\(seed)")
              // The value equals its key.
              #expect(cursor.value.array == key, "SEED=\(seed)")
              #expect(cursor.commit.rawValue <= upTo, "SEED=\(seed)")
              last = key
              count += 1
              cursor.next()
            }
            #expect(count >= seen, "SEED=\(seed)")
            seen = count
            if upTo == 400 { return }
            await Task.yield()
          }
        }
      }
      group.addTask {
        var random = OndolTestKit.SeededRandom(seed: seed)
        var keys = Keys(seed: seed ^ 2)
        for sequence: UInt64 in 1...400 {
          let number = SequenceNumber(rawValue: sequence)
          memtable.begin(number, log: FileNumber(rawValue: 1))
          for _ in 0..<(1 + random.below(30)) {
            let key = keys.key()
            memtable.add(key.bytes, number, .put, key.bytes)
          }
          memtable.link()
          placed.withLock { $0 = sequence }
          if sequence % 16 == 0 { await Task.yield() }
        }
      }
    }
  }

  // Views keep memtables alive long after others have replaced them. Their memory may be used again
  // only when the last view is gone.
  @Test(arguments: Seeds.first(10))
  func `Reused memory has none of its earlier rows, and takes none that are being read`(
    seed: UInt64
  ) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var keys = Keys(seed: seed ^ 3)
    let size = 256 << 10
    let cache = BlockCache(budgetBytes: 8 << 20)
    let memory = MemtableMemory(
      sizes: Memtable.size(forCapacity: size / 2)...Memtable.size(forCapacity: size),
      limit: 1 << 20, budget: cache)
    var held: [(memtable: Memtable, rows: [Row])] = []
    var sequence: UInt64 = 1
    for turn in 0..<40 {
      let capacity = random.pick([size, size, size, size / 2, 1 << 10])
      let memtable = Memtable(capacity: capacity, from: memory)
      memtable.charge(to: cache)
      let commits = capacity < size / 2 ? 0 : 1 + random.below(30)
      let rows = fill(memtable, from: sequence, commits: commits, &keys, &random)
      sequence += UInt64(commits)
      held.append((memtable, rows))
      if random.below(3) > 0 { held.remove(at: random.below(held.count)) }
      if random.below(10) == 0 { memory.clear() }
      for (memtable, rows) in held {
        #expect(contents(of: memtable) == rows, "SEED=\(seed), turn \(turn)")
      }
    }
    held = []
    memory.clear()
    #expect(cache.usedBytes == 0, "SEED=\(seed)")
  }
}
