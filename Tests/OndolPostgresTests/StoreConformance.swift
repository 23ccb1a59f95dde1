// The duties of every `RemoteStore`, as checks against a model: for any store that can be created.
// A check with randomness takes a seed, and states it when it fails.

import OndolEngine
import Testing

/// Random numbers from a seed.
struct Chance {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
    return word ^ word >> 31
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(1, bound))) }

  mutating func isOne(in count: Int) -> Bool { below(count) == 0 }
}

/// The expected state of a store.
struct StoreModel {
  private(set) var commits: [RemoteCommit] = []

  static let start = CommitPoint(sequence: .zero, time: 0)

  var head: CommitPoint { commits.last?.point ?? Self.start }

  /// Every commit, and the state before the first.
  var points: [CommitPoint] { [Self.start] + commits.map(\.point) }

  mutating func add(_ group: RemoteGroup, from first: CommitPoint) {
    for (offset, writes) in group.commits.enumerated() {
      let point = CommitPoint(
        sequence: SequenceNumber(rawValue: first.sequence.rawValue + UInt64(offset)),
        time: first.time + Int64(offset))
      var commit = RemoteCommit(point: point, origin: group.origin, rows: [])
      for write in writes {
        var key = write.key
        for stamp in write.keyStamps { _ = key.stamp(stamp, with: point) }
        commit.rows.append((key, write.value.map { RemoteValue.time(point.time) + $0 }))
      }
      commits.append(commit)
    }
  }

  func commits(behind point: CommitPoint) -> [RemoteCommit] {
    commits.filter { $0.point.sequence > point.sequence }
  }

  /// The rows as of a commit, in key order.
  func rows(asOf point: CommitPoint) -> [RemoteRow] {
    var rows: [[UInt8]: RemoteRow] = [:]
    for commit in commits where commit.point.sequence <= point.sequence {
      for row in commit.rows {
        rows[row.key] = row.value.map {
          RemoteRow(key: row.key, sequence: commit.point.sequence, value: $0)
        }
      }
    }
    return rows.values.sorted { $0.key.lexicographicallyPrecedes($1.key) }
  }

  func rows(
    from lower: [UInt8], to upper: [UInt8], reversed: Bool, atMost count: Int,
    asOf point: CommitPoint
  ) -> [RemoteRow] {
    let rows = rows(asOf: point).filter { Self.contains(lower, upper, $0.key) }
    return reversed ? rows.suffix(count) : Array(rows.prefix(count))
  }

  /// Whether anything that a group guards was changed after its sender's state.
  func refuses(_ group: RemoteGroup) -> Bool {
    commits(behind: group.known).contains { commit in
      commit.rows.contains { row in
        group.guardedKeys.contains(row.key)
          || group.guardedRanges.contains { Self.contains($0.lower, $0.upper, row.key) }
      }
    }
  }

  private static func contains(_ lower: [UInt8], _ upper: [UInt8], _ key: [UInt8]) -> Bool {
    !key.lexicographicallyPrecedes(lower) && (upper.isEmpty || key.lexicographicallyPrecedes(upper))
  }
}

extension Chance {
  /// Returns one of few keys, so that they collide: short and long, with bytes at both ends, some
  /// prefixes of others, some equal for as many bytes as an index takes.
  mutating func key() -> [UInt8] {
    let lengths = [0, 1, 2, 3, 40, 2395, 2396, 2397, 2400, 2500, 9000]
    let head: [UInt8] = [0, 0, 16, UInt8(below(2))]
    let fill: UInt8 = [0, 0x61, 0xFF][below(3)]
    var key = head + [UInt8](repeating: fill, count: lengths[below(lengths.count)])
    if isOne(in: 3) { key += [UInt8(below(3))] }
    return key
  }

  /// Returns a key with places for stamps, which no other call returns within a commit.
  private mutating func stampedKey(_ number: Int) -> (key: [UInt8], stamps: [RemoteStamp]) {
    let forms: [StampForm] = [.sequence, .time, .orderedTime, .descendingTime]
    let front: [UInt8] = [0, 0, 16, 2, UInt8(number)]
    let key = front + [UInt8](repeating: 7, count: 16 + [0, 3, 2400, 20_000][below(4)])
    return (
      key,
      [
        RemoteStamp(offset: front.count, form: forms[below(4)]),
        RemoteStamp(offset: key.count - 8, form: forms[below(4)]),
      ]
    )
  }

  mutating func value() -> [UInt8] {
    let count = [0, 1, 30, 300, 3000][below(5)]
    let byte = UInt8(below(256))
    return (0..<count).map { byte &+ UInt8(truncatingIfNeeded: $0) }
  }

  mutating func commit() -> [RemoteWrite] {
    var writes: [RemoteWrite] = []
    for number in 0..<below(6) {
      if isOne(in: 4) {
        let (key, stamps) = stampedKey(number)
        writes.append(RemoteWrite(key: key, keyStamps: stamps, value: value()))
        continue
      }
      let key = key()
      if writes.contains(where: { $0.key == key }) { continue }
      writes.append(RemoteWrite(key: key, value: isOne(in: 4) ? nil : value()))
    }
    return writes
  }
}

/// Checks of stores.
struct StoreConformance {
  /// A new database, as a function that returns a new, unopened session on it.
  typealias NewSession = @Sendable () throws -> any RemoteStore
  let makeDatabase: () throws -> NewSession

  // MARK: - Reading and writing

  /// Random histories of two sessions, read at random commits.
  func histories(seed: UInt64, steps: Int) async throws {
    var chance = Chance(seed: seed)
    let session = try makeDatabase()
    let stores = [try session(), try session()]
    var model = StoreModel()
    for (number, store) in stores.enumerated() {
      let head = try await store.open(Int64(number) + 1)
      #expect(head.point == StoreModel.start)
    }
    for step in 0..<steps {
      let store = stores[chance.below(2)]
      var group = RemoteGroup(
        origin: Int64(chance.below(2) + 1), part: Int64(step), known: model.head)
      group.isDurable = chance.isOne(in: 2)
      group.commits = (0...chance.below(4)).map { _ in chance.commit() }
      guard case .done(let first) = try await store.append(group) else {
        Issue.record("step \(step) of seed \(seed) is refused")
        return
      }
      #expect(first.sequence == model.head.sequence.next)
      #expect(first.time > model.head.time)
      model.add(group, from: first)
      try await read(stores[chance.below(2)], model, &chance, "step \(step) of seed \(seed)")
    }
    for (number, store) in stores.enumerated() { await store.close(Int64(number) + 1) }
  }

  private func read(
    _ store: any RemoteStore, _ model: StoreModel, _ chance: inout Chance, _ place: Comment
  ) async throws {
    let point = model.points[chance.below(model.points.count)]
    let news = try await store.commits(behind: point, atMost: 1 + chance.below(20))
    let told = news.commits
    let expected = model.commits(behind: point)
    #expect(Self.sorted(told) == Self.sorted(Array(expected.prefix(told.count))), place)
    #expect(!told.isEmpty || expected.isEmpty, place)
    #expect(news.newest == model.points.last?.sequence, place)

    let (lower, upper) = (chance.key(), chance.isOne(in: 3) ? [] : chance.key())
    let (reversed, count) = (chance.isOne(in: 2), 1 + chance.below(8))
    let rows = try store.rows(
      from: lower, to: upper, reversed: reversed, atMost: count, asOf: point)
    #expect(
      rows
        == model.rows(from: lower, to: upper, reversed: reversed, atMost: count, asOf: point),
      place)

    let keys = Set((0..<6).map { _ in chance.key() })
    let found = try store.rows(at: Array(keys), asOf: point)
    #expect(
      found.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        == model.rows(asOf: point).filter { keys.contains($0.key) }, place)
    for key in keys {
      let expected = model.rows(asOf: point).filter { $0.key == key }
      #expect(try store.rows(at: [key], asOf: point) == expected, place)
      if let soon = try store.rowsAtOnce(at: [key], asOf: point) {
        #expect(soon == expected, place)
      }
    }
  }

  /// Rows of a commit may come in any order.
  private static func sorted(_ commits: [RemoteCommit]) -> [RemoteCommit] {
    commits.map { commit in
      var commit = commit
      commit.rows.sort { $0.key.lexicographicallyPrecedes($1.key) }
      return commit
    }
  }

  /// Keys of up to a number of bytes, all equal for as long as an index could see.
  func longKeys(_ length: Int) async throws {
    let store = try makeDatabase()()
    _ = try await store.open(1)
    var model = StoreModel()
    var group = RemoteGroup(origin: 1, part: 1, known: StoreModel.start)
    group.commits = [
      (0..<(length > 10_000 ? 8 : 40)).map { number in
        RemoteWrite(
          key: [0, 0, 16, 0] + [UInt8](repeating: 0xAB, count: length - 6)
            + [UInt8(number / 7), UInt8(number % 7)], value: [UInt8(number)])
      }
    ]
    let last = try #require(group.commits.first?.last).key
    guard case .done(let first) = try await store.append(group) else {
      Issue.record("refused")
      return
    }
    model.add(group, from: first)
    for reversed in [false, true] {
      for count in [1, 7, 40, 100] {
        for upper in [[], last] {
          #expect(
            try store.rows(from: [], to: upper, reversed: reversed, atMost: count, asOf: first)
              == model.rows(from: [], to: upper, reversed: reversed, atMost: count, asOf: first))
        }
      }
    }
    var second = RemoteGroup(origin: 2, part: 1, known: StoreModel.start)
    second.guardedKeys = [last]
    second.commits = [[RemoteWrite(key: last, value: nil)]]
    #expect(try await store.append(second) == .conflict)
    second.known = first
    guard case .done(let next) = try await store.append(second) else {
      Issue.record("refused")
      return
    }
    model.add(second, from: next)
    #expect(try store.rows(at: [last], asOf: next) == [])
    #expect(try store.rows(at: [last], asOf: first).count == 1)
    let news = try await store.commits(behind: first, atMost: 9)
    #expect(news.commits == model.commits(behind: first) && news.newest == next.sequence)
    await store.close(1)
  }

  // MARK: - Guards

  /// Random groups with guards, from sessions that know a part of the state.
  func guards(seed: UInt64, steps: Int) async throws {
    var chance = Chance(seed: seed)
    let store = try makeDatabase()()
    _ = try await store.open(1)
    var model = StoreModel()
    var (refused, done) = (0, 0)
    for step in 0..<steps {
      let points = model.points.suffix(6)
      let known = points[points.startIndex + chance.below(points.count)]
      var group = RemoteGroup(origin: 1, part: Int64(step), known: known)
      group.isDurable = false
      group.guardedKeys = (0..<chance.below(3)).map { _ in chance.key() }
      for _ in 0..<chance.below(2) {
        group.guardedRanges.append((chance.key(), chance.isOne(in: 3) ? [] : chance.key()))
      }
      group.commits = (0...chance.below(2)).map { _ in chance.commit() }
      let answer = try await store.append(group)
      if model.refuses(group) {
        refused += 1
        #expect(answer == .conflict, "step \(step) of seed \(seed)")
      } else if case .done(let first) = answer {
        done += 1
        model.add(group, from: first)
      } else {
        Issue.record("step \(step) of seed \(seed): \(answer)")
      }
    }
    // Otherwise nothing was tried.
    #expect(refused > 0 && done > 0)
    await store.close(1)
  }

  /// Writers that add to one row after reading it: the sum has every addition.
  func race(writers: Int, additions: Int, byRange: Bool) async throws {
    let session = try makeDatabase()
    let key: [UInt8] = [0, 0, 16, 0, 1]
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      for writer in 1...writers {
        let store = try session()
        tasks.addTask {
          var known = try await store.open(Int64(writer)).point
          var part: Int64 = 0
          var left = additions
          while left > 0 {
            let value = try store.rows(at: [key], asOf: known).first?.value
            let count = value.map { Int($0.last ?? 0) + Int($0.dropLast().last ?? 0) * 256 } ?? 0
            part += 1
            var group = RemoteGroup(origin: Int64(writer), part: part, known: known)
            group.isDurable = part % 2 == 0
            if byRange {
              group.guardedRanges = [([0, 0, 16, 0], [0, 0, 16, 1])]
            } else {
              group.guardedKeys = [key]
            }
            let next = [UInt8((count + 1) / 256), UInt8((count + 1) % 256)]
            group.commits = [[RemoteWrite(key: key, value: next)]]
            switch try await store.append(group) {
            case .done(let first):
              known = first
              left -= 1
            case .conflict:
              let news = try await store.commits(behind: known, atMost: 1000)
              known = news.commits.last?.point ?? known
            case .otherHistory: Issue.record("its own history is another")
            }
          }
          await store.close(Int64(writer))
        }
      }
      try await tasks.waitForAll()
    }
    let store = try session()
    let head = try await store.open(99)
    #expect(head.point.sequence.rawValue == UInt64(writers * additions))
    let value = try #require(try store.rows(at: [key], asOf: head.point).first?.value)
    #expect(
      Array(value.suffix(2))
        == [UInt8(writers * additions / 256), UInt8(writers * additions % 256)])
    await store.close(99)
  }
}
