// The rest of every store's duties: foreign histories, outcomes, forgotten versions, and waiting.

import OndolEngine
import Testing

extension StoreConformance {
  /// Commits one row, and returns the commit.
  private func put(
    _ key: [UInt8], _ value: [UInt8]?, behind known: CommitPoint, in store: any RemoteStore,
    origin: Int64 = 1, part: Int64 = 1
  ) async throws -> CommitPoint {
    var group = RemoteGroup(origin: origin, part: part, known: known)
    group.commits = [[RemoteWrite(key: key, value: value)]]
    guard case .done(let first) = try await store.append(group) else {
      Issue.record("refused")
      return known
    }
    return first
  }

  private static let key: [UInt8] = [0, 0, 16, 0, 5]

  // MARK: - Histories

  /// The store distinguishes foreign commits from its own.
  func otherHistories() async throws {
    let store = try makeDatabase()()
    _ = try await store.open(1)
    let first = try await put(Self.key, [1], behind: StoreModel.start, in: store)
    let second = try await put(Self.key, [2], behind: first, in: store)
    let foreign = [
      CommitPoint(sequence: first.sequence, time: first.time + 1),
      CommitPoint(sequence: second.sequence, time: second.time - 1),
      CommitPoint(sequence: second.sequence.next, time: second.time + 1),
      CommitPoint(sequence: .zero, time: 1),
      CommitPoint(sequence: SequenceNumber(rawValue: .max), time: 0),
    ]
    for point in foreign {
      var group = RemoteGroup(origin: 1, part: 9, known: point)
      group.commits = [[RemoteWrite(key: Self.key, value: [3])]]
      #expect(try await store.append(group) == .otherHistory)
      await #expect("\(point)") {
        try await store.commits(behind: point, atMost: 1)
      } throws: { error in
        if case .notInHistory = error as? EngineError { true } else { false }
      }
      let reads: [() throws -> [RemoteRow]] = [
        { try store.rows(at: [Self.key], asOf: point) },
        { try store.rows(from: [], to: [], reversed: false, atMost: 1, asOf: point) },
      ]
      for read in reads {
        #expect("\(point)") {
          try read()
        } throws: { error in
          if case .outOfStep = error as? EngineError { true } else { false }
        }
      }
    }
    #expect(try await store.commits(behind: second, atMost: 1).commits == [])
    await store.close(1)
  }

  // MARK: - Outcomes

  /// The store reports the outcome of a group, and then commits nothing more of its origin.
  func outcomes() async throws {
    let session = try makeDatabase()
    let (store, other) = (try session(), try session())
    _ = try await store.open(1)
    _ = try await other.open(2)
    let first = try await put(
      Self.key, [1], behind: StoreModel.start, in: store, origin: 5, part: 7)
    let second = try await put(Self.key, [2], behind: first, in: other, origin: 6, part: 7)
    #expect(try await store.outcome(of: 7, from: 5) == first)
    #expect(try await store.outcome(of: 8, from: 5) == nil)
    #expect(try await store.outcome(of: 7, from: 9) == nil)
    for origin: Int64 in [5, 9] {
      var group = RemoteGroup(origin: origin, part: 10, known: second)
      group.commits = [[RemoteWrite(key: Self.key, value: [3])]]
      #expect(try await store.append(group) == .otherHistory)
    }
    _ = try await put(Self.key, [4], behind: second, in: other, origin: 6, part: 8)
    await store.close(1)
    await other.close(2)
  }

  /// A request for the outcome of a group under way gets the group's outcome.
  func outcomeRace(rounds: Int) async throws {
    let session = try makeDatabase()
    let (store, other) = (try session(), try session())
    var known = try await store.open(1).point
    _ = try await other.open(2)
    for round in 1...rounds {
      var group = RemoteGroup(origin: Int64(round), part: 1, known: known)
      group.isDurable = round % 2 == 0
      group.commits = [[RemoteWrite(key: Self.key, value: [UInt8(round % 256)])]]
      async let appended = store.append(group)
      async let told = other.outcome(of: 1, from: Int64(round))
      let (append, outcome) = (try await appended, try await told)
      if let outcome {
        #expect(append == .done(outcome), "round \(round)")
        known = outcome
      } else {
        #expect(append == .otherHistory, "round \(round)")
      }
    }
    await store.close(1)
    await other.close(2)
  }

  // MARK: - Versions

  /// Pinned versions stay. Older ones are forgotten, and the store refuses to read them.
  func forgetting(seed: UInt64) async throws {
    var chance = Chance(seed: seed)
    let session = try makeDatabase()
    let (store, other) = (try session(), try session())
    _ = try await store.open(1)
    var model = StoreModel()
    func write(_ count: Int) async throws {
      for _ in 0..<count {
        var group = RemoteGroup(origin: 1, part: 1, known: model.head)
        group.isDurable = false
        group.commits = (0...chance.below(3)).map { _ in chance.commit() }
        guard case .done(let first) = try await store.append(group) else { continue }
        model.add(group, from: first)
      }
    }
    func check(floor: CommitPoint) async throws {
      for point in model.points {
        let keys = Array(Set(model.rows(asOf: model.head).map(\.key) + [chance.key()]))
        if point.sequence < floor.sequence {
          #expect(throws: EngineError.superseded(file: store.name), "seed \(seed)") {
            try store.rows(at: keys, asOf: point)
          }
          #expect(throws: EngineError.superseded(file: store.name), "seed \(seed)") {
            try store.rows(at: [keys[0]], asOf: point)
          }
          // A caller that may not wait gets nothing instead.
          #expect((try? store.rowsAtOnce(at: [keys[0]], asOf: point)) == nil)
          await #expect(throws: EngineError.superseded(file: store.name)) {
            try await store.pin(point, for: 3, microseconds: 1_000_000_000)
          }
          await #expect(throws: EngineError.self) {
            try await store.commits(behind: point, atMost: 1)
          }
          var group = RemoteGroup(origin: 1, part: 1, known: point)
          group.commits = [[RemoteWrite(key: Self.key, value: [3])]]
          #expect(try await store.append(group) == .otherHistory)
        } else {
          for reversed in [false, true] {
            #expect(
              try store.rows(from: [], to: [], reversed: reversed, atMost: 1000, asOf: point)
                == model.rows(asOf: point), "seed \(seed)")
          }
          let news = try await store.commits(behind: point, atMost: 1000)
          #expect(news.commits.map(\.point) == model.commits(behind: point).map(\.point))
        }
      }
    }

    try await write(20)
    let pinned = try await other.open(2).point
    #expect(pinned == model.head)
    try await write(20)
    // The first session still reads the original state.
    #expect(try await store.forget() == 0)
    try await check(floor: StoreModel.start)
    _ = try await store.pin(model.head, for: 1, microseconds: 1_000_000_000)
    while try await other.forget() > 0 {}
    try await check(floor: pinned)
    try await write(10)
    await other.close(2)
    _ = try await store.pin(model.head, for: 1, microseconds: 1_000_000_000)
    var gone = 0
    while case let count = try await store.forget(), count > 0 { gone += count }
    #expect(gone > 0)
    let floor = model.head
    try await check(floor: floor)
    try await write(5)
    try await check(floor: floor)
    await store.close(1)
  }

  /// Rows of dropped keyspaces stay for those who can see them, and then go.
  func dropping() async throws {
    let session = try makeDatabase()
    let (store, other) = (try session(), try session())
    _ = try await store.open(1)
    var known = StoreModel.start
    let long = [UInt8](repeating: 3, count: 5000)
    for keyspace: UInt8 in [6, 7, 8] {
      for tail in [[1], long] {
        known = try await put([0, 0, 0, keyspace] + tail, [keyspace], behind: known, in: store)
      }
    }
    known = try await put([255, 255, 255, 255, 1], [9], behind: known, in: store)
    let before = try await other.open(2).point
    // The commit from which on they are invisible comes first.
    known = try await put([0, 0, 0, 6, 2], [6], behind: known, in: store)
    try await store.drop([7, .max])
    _ = try await store.pin(known, for: 1, microseconds: 1_000_000_000)
    while try await store.forget() > 0 {}
    let all = { (point: CommitPoint) in
      try store.rows(from: [], to: [], reversed: false, atMost: 100, asOf: point)
        .map { $0.key[0] == 255 ? 255 : $0.key[3] }
    }
    #expect(try all(before) == [6, 6, 7, 7, 8, 8, 255])
    await other.close(2)
    while try await store.forget() > 0 {}
    #expect(try all(known) == [6, 6, 6, 8, 8])
    await store.close(1)
  }

  // MARK: - Waiting

  /// A waiting call ends after another session's commit, and after its cancellation.
  func waiting(rounds: Int) async throws {
    let session = try makeDatabase()
    let (store, other) = (try session(), try session())
    var known = try await store.open(1).point
    _ = try await other.open(2)
    for _ in 0..<rounds {
      let shown = known
      async let heard = other.waitForCommits(behind: shown, atMost: 600_000_000)
      known = try await put(Self.key, [1], behind: known, in: store)
      #expect(try await heard == known.sequence)
    }
    // There is nothing to wait for.
    let start = StoreModel.start
    #expect(
      try await other.waitForCommits(behind: start, atMost: 600_000_000) == known.sequence)
    let shown = known
    await withTaskGroup(of: Void.self) { tasks in
      tasks.addTask { _ = try? await other.waitForCommits(behind: shown, atMost: 600_000_000) }
      tasks.cancelAll()
    }
    #expect(try await other.waitForCommits(behind: shown, atMost: 1000) == shown.sequence)
    try await store.synchronize()
    await store.close(1)
    await other.close(2)
  }

  /// The store reports a commit that it does not have, or has with another time, to callers that
  /// wait after it or pin it.
  func lostCommits() async throws {
    let store = try makeDatabase()()
    let start = try await store.open(1).point
    let known = try await put(Self.key, [1], behind: start, in: store)
    let others = [
      CommitPoint(sequence: known.sequence, time: known.time + 1),
      CommitPoint(sequence: known.sequence.next, time: known.time + 1),
    ]
    for other in others {
      await #expect {
        try await store.waitForCommits(behind: other, atMost: 600_000_000)
      } throws: {
        Self.isNotInHistory($0)
      }
      await #expect {
        try await store.pin(other, for: 1, microseconds: 600_000_000)
      } throws: {
        Self.isNotInHistory($0)
      }
    }
    for point in [start, known] {
      #expect(try await store.pin(point, for: 1, microseconds: 600_000_000) == point.sequence)
    }
    await store.close(1)
  }

  private static func isNotInHistory(_ error: any Error) -> Bool {
    if case .notInHistory = error as? EngineError { true } else { false }
  }

  /// A closed store says so.
  func closing() async throws {
    let store = try makeDatabase()()
    let point = try await store.open(1).point
    await store.close(1)
    await #expect(throws: EngineError.closed) { try await store.synchronize() }
    await #expect(throws: EngineError.closed) { try await store.commits(behind: point, atMost: 1) }
    #expect(throws: EngineError.closed) { try store.rows(at: [Self.key], asOf: point) }
    _ = try await store.waitForCommits(behind: StoreModel.start, atMost: 600_000_000)
    await store.close(1)
  }
}
