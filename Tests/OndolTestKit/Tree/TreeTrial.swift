// One history of writes to a tree with listeners beside it, in an order of steps that a seed
// decides, and the same history of a naive tree in memory. After each commit queries must return
// the model's results. Listeners must receive, from one value to the next, exactly the differences
// between the model's results at two moments, in the order of the rules, and finally the last one.
// A list of keys to which the events are applied, as in the guide, must match the result.

internal import Ondol
internal import OndolEngine

/// The counts of trials.
package struct TreeCounts: Sendable {
  package var histories = 0
  package var reads = 0
  package var events = 0
  /// The number of times that a listener received several commits at once.
  package var merged = 0

  package init() {}

  package static func += (left: inout TreeCounts, right: TreeCounts) {
    left.histories += right.histories
    left.reads += right.reads
    left.events += right.events
    left.merged += right.merged
  }
}

package enum TreeTrial {
  private static let listenerCount = 4
  private static let commitCount = 16

  /// Runs the history of `seed`. Throws `TreeFault` if anything differs from the model.
  package static func run(seed: UInt64) throws -> TreeCounts {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let database = try await Database.open(at: "/db", environment: world.environment)
      defer { withExtendedLifetime(world) {} }
      return try await run(seed: seed, database)
    }
  }

  private static func run(seed: UInt64, _ database: Database) async throws -> TreeCounts {
    var draw = TreeDraw(seed: seed, database)
    for _ in 0..<draw.random.below(5) { try await draw.write() }
    let records = (0..<listenerCount).map { _ in TreeRecord(draw.query(), draw) }
    for record in records { record.note(draw.model) }
    var counts = TreeCounts()
    counts.histories = 1
    return try await withThrowingTaskGroup(of: Void.self) { group in
      for record in records { group.addTask { try await record.listen() } }
      // Listening begins at the model's first state, or a later one.
      for number in 0..<commitCount {
        for _ in 0..<draw.random.below(8) { await Task.yield() }
        try await draw.write()
        for record in records { record.note(draw.model) }
        for _ in 0..<3 { try await check(&draw, &counts) }
        if number == commitCount / 2, seed % 4 == 0 { try await database.compact() }
      }
      var patience = 20_000
      while patience > 0, !records.allSatisfy(\.isUpToDate) {
        await Task.yield()
        patience -= 1
      }
      try await database.close()
      try await group.waitForAll()
      for record in records { try record.check(&counts) }
      guard database.observerCount == 0 else {
        throw TreeFault(description: "\(database.observerCount) listeners are left")
      }
      return counts
    }
  }

  /// Compares one query's result with the model's.
  private static func check(_ draw: inout TreeDraw, _ counts: inout TreeCounts) async throws {
    let query = draw.query()
    let expected = query.result(in: draw.model)
    let asked = draw.build(query)
    let found = try await asked.getData()
    let keys = expected.children.map(\.key)
    guard found.exportedValue.description == expected.value.description,
      found.children.compactMap(\.key) == keys
    else {
      throw TreeFault(
        description: "\(query) gives \(found.exportedValue), in the order"
          + " \(found.children.compactMap(\.key)), and not \(expected.value), in the order \(keys)")
    }
    var streamed: [String] = []
    for try await child in asked.children { streamed.append(child.key ?? "") }
    guard streamed == keys else {
      throw TreeFault(description: "\(query) streams \(streamed) and not \(keys)")
    }
    counts.reads += 1
  }
}

/// One listener: the model's results, and its events.
private final class TreeRecord: Sendable {
  private struct State: Sendable {
    var results: [ModelTreeResult] = []
    /// The events, each up to a value.
    var told: [[String]] = []
    var open: [String] = []
    /// The keys of an app's list, and that list at each value.
    var list: [String] = []
    var lists: [[String]] = []
  }

  private let query: ModelTreeQuery
  private let asked: TreeQuery
  private let state = Guarded(State())

  init(_ query: ModelTreeQuery, _ draw: TreeDraw) {
    self.query = query
    asked = draw.build(query)
  }

  func note(_ model: ModelTree) {
    let result = query.result(in: model)
    state.withLock { $0.results.append(result) }
  }

  func listen() async throws {
    for try await event in asked.observe(Set(TreeEvent.Kind.allCases)) {
      let told = event.told
      let isLast = event.kind == .value
      state.withLock { state in
        state.open.append(told)
        guard isLast else { return state.list.apply(event) }
        state.lists.append(state.list)
        state.told.append(state.open)
        state.open = []
      }
    }
  }

  /// Whether its last value is the model's.
  var isUpToDate: Bool {
    state.withLock { state in
      state.told.last?.last == state.results.last.map { "value \($0.value)" }
    }
  }

  /// Throws unless each sequence of events leads from one of the model's results to a later one.
  func check(_ counts: inout TreeCounts) throws {
    let state = state.withLock { $0 }
    guard let last = state.results.last else { return }
    var place = -1
    for (number, told) in state.told.enumerated() {
      let seen = number == 0 ? nil : state.results[place]
      let next = state.results.indices.first { index in
        guard index > place else { return false }
        let result = state.results[index]
        if let seen, seen.isSame(as: result) { return false }
        return (seen?.events(to: result) ?? result.firstEvents) == told
      }
      guard let next else {
        let from = seen?.value.description ?? "the beginning"
        throw TreeFault(
          description: "\(query): told \(told), from \(from), which leads to none of"
            + " \(state.results[(place + 1)...].map { seen?.events(to: $0) ?? $0.firstEvents })")
      }
      let keys = state.results[next].children.map(\.key)
      guard state.lists[number] == keys else {
        throw TreeFault(
          description:
            "\(query): told \(told), which leads a list to \(state.lists[number]) and not"
            + " to \(keys)")
      }
      if number > 0, next > place + 1 { counts.merged += 1 }
      counts.events += told.count
      place = next
    }
    guard state.open.isEmpty, place >= 0, state.results[place].isSame(as: last) else {
      throw TreeFault(
        description: "\(query): told last \(state.told.last ?? []), then \(state.open), and the"
          + " last result is \(last.value)")
    }
  }
}

extension [String] {
  /// Applies an event to a list of keys as in the guide.
  fileprivate mutating func apply(_ event: TreeEvent) {
    guard let key = event.snapshot.key else { return }
    if event.kind != .childAdded { removeAll { $0 == key } }
    if event.kind == .childRemoved { return }
    let previous = firstIndex { $0 == event.previousSiblingKey }
    insert(key, at: previous.map { $0 + 1 } ?? 0)
  }
}
