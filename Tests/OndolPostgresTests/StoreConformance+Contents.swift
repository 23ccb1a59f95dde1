// Contents in parts: any range of a stored content, nothing of a removed one, and no part after the
// upload's row is gone.

import OndolEngine
import Testing

extension StoreConformance {
  private static func row(_ id: [UInt8]) -> [UInt8] { [0, 0, 0, 6] + id }

  private static func id(_ number: Int) -> [UInt8] {
    var id = [UInt8](repeating: 0, count: ContentPart.idLength - 8)
    id.appendBigEndian(UInt64(number))
    return id
  }

  /// Commits a change of a row, and returns the commit.
  private func commit(
    _ store: any RemoteStore, _ part: inout Int64, behind known: CommitPoint, _ id: [UInt8],
    _ value: [UInt8]?
  ) async throws -> CommitPoint {
    part += 1
    var group = RemoteGroup(origin: 1, part: part, known: known)
    group.commits = [[RemoteWrite(key: Self.row(id), value: value)]]
    guard case .done(let first) = try await store.append(group) else {
      throw EngineError.invalid(reason: "refused")
    }
    return first
  }

  /// Contents come out as they went in.
  func contents(seed: UInt64) async throws {
    var chance = Chance(seed: seed)
    let session = try makeDatabase()
    let (store, other) = (try session(), try session())
    var known = try await store.open(1).point
    _ = try await other.open(2)
    var (part, model): (Int64, [[UInt8]: [UInt8]]) = (0, [:])
    for number in 0..<4 {
      let id = Self.id(number + chance.below(256) * 4)
      let row = Self.row(id)
      #expect(try await !store.putContent(id, part: 0, [1], whileThereIs: row))
      known = try await commit(store, &part, behind: known, id, [1])
      let length = 1 + chance.below(3 * ContentPart.length)
      let bytes = (0..<length).map { _ in UInt8(truncatingIfNeeded: chance.next()) }
      for (part, start) in stride(from: 0, to: length, by: ContentPart.length).enumerated() {
        let piece = Array(bytes[start..<min(length, start + ContentPart.length)])
        #expect(try await store.putContent(id, part: part, piece, whileThereIs: row))
        // After a lost answer it comes twice.
        #expect(try await other.putContent(id, part: part, piece, whileThereIs: row))
      }
      model[id] = bytes
    }
    for (id, bytes) in model {
      let parts = (bytes.count + ContentPart.length - 1) / ContentPart.length
      #expect(try await other.countContent(id) == parts, "seed \(seed)")
      for _ in 0..<20 {
        let start = chance.below(bytes.count)
        let end = start + 1 + chance.below(bytes.count + 10 - start)
        let found = try other.content(id, in: start..<end)
        let isSame = found == Array(bytes[start..<min(end, bytes.count)])
        #expect(isSame, "\(start)..<\(end) of \(bytes.count), seed \(seed)")
      }
    }
    let gone = try #require(model.keys.min { $0.lexicographicallyPrecedes($1) })
    known = try await commit(store, &part, behind: known, gone, nil)
    #expect(try await !store.putContent(gone, part: 9, [1], whileThereIs: Self.row(gone)))
    try await store.removeContent(gone)
    #expect(try store.content(gone, in: 0..<10) == [])
    for (id, bytes) in model {
      let parts = (bytes.count + ContentPart.length - 1) / ContentPart.length
      #expect(try await store.countContent(id) == (id == gone ? 0 : parts), "seed \(seed)")
    }
    let clock = try await store.clock()
    let newest = try await commit(store, &part, behind: known, gone, [1])
    #expect(newest.time >= clock && clock >= known.time, "one clock, seed \(seed)")
    await store.close(1)
    await other.close(2)
  }

  /// Parts have cuts of 1,024. Reads include the ends of a cut, and no other content's bytes.
  func contentCuts() async throws {
    let session = try makeDatabase()
    let store = try session()
    var known = try await store.open(1).point
    var part: Int64 = 0
    let other = Self.id(1_000)
    known = try await commit(store, &part, behind: known, other, [1])
    #expect(try await store.putContent(other, part: 1_023, [1], whileThereIs: Self.row(other)))
    let cuts = [
      [0], [1_023], [0, 1_023], [0, 1_024], [0, 1_023, 1_024], [1, 1_024, 1_025],
      [0, 1_023, 1_024, 2_047, 2_048],
    ]
    for (number, parts) in cuts.enumerated() {
      let id = Self.id(number)
      known = try await commit(store, &part, behind: known, id, [1])
      for part in parts {
        #expect(try await store.putContent(id, part: part, [1], whileThereIs: Self.row(id)))
      }
      #expect(try await store.countContent(id) == parts.count)
      known = try await commit(store, &part, behind: known, id, nil)
      try await store.removeContent(id)
      #expect(try await store.countContent(id) == 0, "\(parts)")
    }
    #expect(try await store.countContent(other) == 1)
    await store.close(1)
  }

  /// Putting parts during their removal leaves none.
  func contentRace(rounds: Int) async throws {
    let session = try makeDatabase()
    let (store, other) = (try session(), try session())
    var known = try await store.open(1).point
    _ = try await other.open(2)
    var part: Int64 = 0
    for round in 0..<rounds {
      let id = Self.id(round)
      known = try await commit(store, &part, behind: known, id, [1])
      async let uploaded = Self.upload(id, to: other)
      known = try await commit(store, &part, behind: known, id, nil)
      try await store.removeContent(id)
      let count = try await uploaded
      #expect(try await store.countContent(id) == 0, "round \(round), \(count) parts")
    }
    await store.close(1)
    await other.close(2)
  }

  /// Puts parts until none is accepted, and returns their number.
  private static func upload(_ id: [UInt8], to store: any RemoteStore) async throws -> Int {
    var count = 0
    while try await store.putContent(id, part: count, [1], whileThereIs: row(id)) {
      count += 1
      await Task.yield()
    }
    return count
  }
}
