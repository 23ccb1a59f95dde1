// The model side of a crash test: all states of a store, and its promises at each time. A recovered
// store must be in exactly one of those states, not older than the last promise that survives this
// kind of crash, and not newer than the last commit that began.

internal import OndolEngine

/// How a process ends without closing.
package enum CrashKind: String, Sendable {
  /// Memory is lost, and everything unsynced may be.
  case powerCut
  /// Only memory is lost.
  case kill
}

/// The events in one life of a store, from an open to a crash, in order.
final class History: Sendable {
  enum Event: Sendable {
    /// The store opened in the state after this commit.
    case opened(Int)
    case began
    case acknowledged(Int, Durability)
    /// All commits up to this one are safe.
    case saved(Int)
  }

  struct Record: Sendable {
    var events: [Event] = []
    var commits: [Int: (changes: [Change], time: Int64)] = [:]
    /// Commits that began and were not acknowledged.
    var unfinished: [[Change]] = []
    /// The place of the newest acknowledged commit in this life; 0 for none.
    var newestAcknowledged = 0
    /// Whether places go up by one from commit to commit.
    var isWithoutGaps = true
  }

  private let record = Guarded(Record())
  private let fileSystem: SimulatedFileSystem

  /// Stamps the pictures of `fileSystem` with the number of events before them.
  init(for fileSystem: SimulatedFileSystem) {
    self.fileSystem = fileSystem
  }

  func note(_ event: Event) {
    let count = record.withLock { record in
      record.events.append(event)
      return record.events.count
    }
    fileSystem.note(count)
  }

  func began(_ changes: [Change]) {
    record.withLock { $0.unfinished.append(changes) }
    note(.began)
  }

  func acknowledged(_ place: CommitPlace, _ changes: [Change], _ durability: Durability) {
    let number = Int(clamping: place.sequence)
    record.withLock { record in
      record.commits[number] = (changes, place.time)
      record.newestAcknowledged = max(record.newestAcknowledged, number)
      if let index = record.unfinished.firstIndex(of: changes) {
        record.unfinished.remove(at: index)
      }
    }
    note(.acknowledged(number, durability))
  }

  /// Expects gaps between the places of commits.
  func allowGaps() {
    record.withLock { $0.isWithoutGaps = false }
  }

  var newestAcknowledged: Int { record.withLock { $0.newestAcknowledged } }

  var value: Record { record.withLock { $0 } }
}

extension History.Event {
  /// Returns the event with the number of a state instead of a commit's place.
  fileprivate func numbered(by states: [Int: Int]) -> History.Event {
    switch self {
    case .opened, .began: self
    case .acknowledged(let place, let durability):
      .acknowledged(states[place] ?? place, durability)
    case .saved(let place): .saved(states[place] ?? place)
    }
  }
}

/// The possible states of a store.
struct Timeline: Sendable {
  /// The rows after each commit. The first entry is the store before any commit.
  var states: [Rows]
  /// The time of the newest commit with a known time.
  var lastTime = Int64.min
  /// The oldest possible state after a crash before this life's first event.
  var floors: [CrashKind: Int]
  /// The number of commits when this life began.
  var firstCommit: Int
  var events: [History.Event] = []
  /// Failed commits: each may have happened after all, in any order, after all others.
  var unfinished: [[Change]] = []

  /// A store that does not exist yet.
  static var empty: Timeline {
    Timeline(states: [[:]], floors: [.powerCut: 0, .kill: 0], firstCommit: 0)
  }

  /// This timeline up to `state`, as the past of a store recovered in that state.
  func past(upTo state: Int, floors: [CrashKind: Int]) -> Timeline {
    // Times of commits that may have been lost may be used again.
    Timeline(
      states: Array(states[...state]), lastTime: state == newest ? lastTime : .min,
      floors: floors, firstCommit: state)
  }

  /// This timeline with a store's contents, if that is a state of unfinished commits.
  func admitting(_ found: Recovered) -> Timeline {
    var timeline = self
    while timeline.newest < Int(clamping: found.sequence) { timeline.states.append(found.rows) }
    return timeline
  }

  /// Adds a life's records. Returns what is wrong with them, if anything is.
  mutating func append(_ record: History.Record) -> String? {
    unfinished = record.unfinished
    var states = [0: firstCommit]
    defer { events = record.events.map { $0.numbered(by: states) } }
    for sequence in record.commits.keys.sorted() {
      let next = self.states.count
      guard !record.isWithoutGaps || sequence == next, let commit = record.commits[sequence] else {
        return "commit \(sequence) came where \(next) should"
      }
      states[sequence] = next
      guard commit.time > lastTime else {
        return "commit \(sequence) has the time \(commit.time), and the one before \(lastTime)"
      }
      lastTime = commit.time
      var rows = self.states[next - 1]
      rows.apply(commit.changes)
      self.states.append(rows)
    }
    return nil
  }

  /// The possible states after a crash that follows `count` events.
  func possibleStates(after count: Int, crash: CrashKind) -> ClosedRange<Int> {
    var floor = floors[crash] ?? 0
    var newest = firstCommit
    for event in events.prefix(count) {
      switch event {
      case .opened:
        break
      case .began:
        newest += 1
      case .acknowledged(let sequence, let durability):
        let survives =
          switch durability {
          case .memory: false
          case .process, .periodic: crash == .kill
          case .power: true
          }
        if survives { floor = max(floor, sequence) }
      case .saved(let sequence):
        floor = max(floor, sequence)
      }
    }
    return floor...max(floor, newest)
  }

  /// The state after all commits.
  var newest: Int { states.count - 1 }

  /// Returns what is wrong with a recovered store; nil if nothing is.
  func fault(in found: Recovered, allowing possible: ClosedRange<Int>) -> String? {
    let sequence = found.sequence
    let rows = found.rows
    let state = Int(clamping: sequence)
    if states.indices.contains(state), states[state] == rows {
      if possible.contains(state) { return nil }
      return "it is in the state after commit \(state); only \(possible) were possible"
    }
    if state > newest, possible.contains(state), couldBe(rows, behind: state - newest) {
      return nil
    }
    if let other = states.lastIndex(of: rows) {
      return "it calls itself \(sequence) and is in the state after commit \(other)"
    }
    guard states.indices.contains(state) else {
      return "it calls itself \(sequence); only \(possible) were possible"
    }
    return "it has a state that never was; against the one after commit \(sequence) "
      + difference(between: states[state], and: rows)
  }

  /// Whether `rows` can result from `count` of the unfinished commits after the newest state.
  private func couldBe(_ rows: Rows, behind count: Int) -> Bool {
    func search(_ state: Rows, _ rest: [[Change]], _ count: Int) -> Bool {
      if count == 0 { return state == rows }
      return rest.indices.contains { index in
        var next = state
        next.apply(rest[index])
        var others = rest
        others.remove(at: index)
        return search(next, others, count - 1)
      }
    }
    return search(states[newest], unfinished, count)
  }

  private func difference(between model: Rows, and rows: Rows) -> String {
    let keys = Set(model.keys).union(rows.keys).filter { model[$0] != rows[$0] }
    let shown = keys.sorted { $0.lexicographicallyPrecedes($1) }.prefix(4).map { key in
      let name = key.map { String($0, radix: 16) }.joined(separator: ".")
      return "\(name) is \(describe(rows[key])) instead of \(describe(model[key]))"
    }
    return "\(keys.count) of \(model.count) rows differ: " + shown.joined(separator: ", ")
  }

  private func describe(_ value: [UInt8]?) -> String {
    guard let value else { return "missing" }
    let origin = states.lastIndex { $0.values.contains(value) }
    return "<\(value.count)>" + (origin.map { " (last seen after \($0))" } ?? " (never written)")
  }
}
