// What every store must do with the annotations of commits: keep them under their numbers, return
// them in order, and delete the oldest.

import OndolEngine
import Testing

extension StoreConformance {
  /// Commits groups with and without annotations, and returns the annotations.
  private func say(
    _ groups: Int, _ chance: inout Chance, _ model: inout StoreModel, in store: any RemoteStore
  ) async throws -> [RemoteAnnotation] {
    var said: [RemoteAnnotation] = []
    for _ in 0..<groups {
      var group = RemoteGroup(origin: 1, part: Int64(model.commits.count), known: model.head)
      group.isDurable = false
      group.commits = (0...chance.below(4)).map { _ in chance.commit() }
      if !chance.isOne(in: 5) { group.annotations = group.commits.map { _ in chance.value() } }
      guard case .done(let first) = try await store.append(group) else {
        Issue.record("refused")
        return said
      }
      model.add(group, from: first)
      for (point, bytes) in zip(model.commits.suffix(group.commits.count), group.annotations) {
        said.append(RemoteAnnotation(point: point.point, bytes: bytes))
      }
    }
    return said
  }

  /// The store returns the annotations from every commit on, in pieces of any size.
  private func check(
    _ store: any RemoteStore, _ said: [RemoteAnnotation], _ model: StoreModel, _ seed: UInt64,
    _ chance: inout Chance
  ) async throws {
    for (before, point) in zip([nil] + model.points, model.points) {
      let history = try await store.history(
        behind: point.sequence, atMost: 1 + chance.below(9))
      let behind = said.filter { $0.point.sequence > point.sequence }
      #expect(history.head == model.head, "seed \(seed)")
      #expect(history.annotations == Array(behind.prefix(history.annotations.count)))
      #expect(!history.annotations.isEmpty || behind.isEmpty, "seed \(seed)")
      let isTold =
        point == model.head || said.contains { $0.point == point }
        || behind.first?.point.sequence == point.sequence.next
      #expect(history.time == (isTold ? point.time : nil), "seed \(seed), \(point)")
      // Numbers that a later commit may have.
      if before == nil {
        let later = SequenceNumber(rawValue: model.head.sequence.rawValue + 5)
        let nothing = try await store.history(behind: later, atMost: 9)
        #expect(nothing == RemoteHistory(head: model.head, time: nil, annotations: []))
        let none = try await store.history(behind: SequenceNumber(rawValue: .max), atMost: 9)
        #expect(none == RemoteHistory(head: model.head, time: nil, annotations: []))
      }
    }
  }

  func history(seed: UInt64) async throws {
    var chance = Chance(seed: seed)
    let session = try makeDatabase()
    let (store, other) = (try session(), try session())
    _ = try await store.open(1)
    _ = try await other.open(2)
    var model = StoreModel()
    var said = try await say(20, &chance, &model, in: store)
    // The newest commit has an annotation, which keeps the rest.
    while said.last?.point != model.head { said += try await say(1, &chance, &model, in: store) }
    try await check(other, said, model, seed, &chance)
    let everything = HistoryRetention(microseconds: .max, bytes: .max)
    let start = said[0].point.sequence.rawValue - 1
    for retention in [everything, nil] {
      #expect(try await other.trimHistory(to: retention).rawValue == start, "seed \(seed)")
    }
    try await check(store, said, model, seed, &chance)

    // About half of the bytes. Another request at the same time does not do it twice.
    let bytes = said.reduce(0) { $0 + $1.bytes.count + 64 } / 2
    let half = HistoryRetention(microseconds: .max, bytes: UInt64(bytes))
    async let one = store.trimHistory(to: half)
    async let two = other.trimHistory(to: half)
    _ = try await (one, two)
    let kept = try await store.trimHistory(to: half)
    said.removeAll { $0.point.sequence <= kept }
    #expect(said.reduce(0) { $0 + $1.bytes.count } <= bytes, "seed \(seed)")
    #expect(!said.isEmpty)
    try await check(other, said, model, seed, &chance)

    // Rows and annotations are independent.
    _ = try await store.pin(model.head, for: 1, microseconds: 1_000_000_000)
    _ = try await other.pin(model.head, for: 2, microseconds: 1_000_000_000)
    while try await store.forget() > 0 {}
    try await check(store, said, model, seed, &chance)

    // All except the newest are older than nothing.
    let shortest = HistoryRetention(microseconds: 0, bytes: .max)
    #expect(try await other.trimHistory(to: shortest).next == model.head.sequence)
    said.removeAll { $0.point != model.head }
    try await check(store, said, model, seed, &chance)

    // A commit without an annotation ends it.
    var group = RemoteGroup(origin: 1, part: 1, known: model.head)
    group.commits = [[RemoteWrite(key: [0, 0, 16, 0], value: [1])]]
    guard case .done(let last) = try await store.append(group) else {
      Issue.record("refused")
      return
    }
    model.add(group, from: last)
    #expect(try await store.trimHistory(to: nil) == last.sequence)
    try await check(other, [], model, seed, &chance)

    group.known = last
    group.annotations = [[1], [2]]
    await #expect(throws: EngineError.self) { try await store.append(group) }
    await store.close(1)
    await other.close(2)
  }
}
