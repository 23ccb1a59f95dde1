// Says whether what listeners were told in a case is what the case expects. It judges a recording,
// so that it can be tried itself: with events left out, doubled, exchanged or falsified.
//
// At each step every event that is expected must be told, and no other. Two liberties, because the
// cases are about a client that may not know all its data, and a database always does: values that
// a listener is told before the case tells of its first are passed over; and that first one may
// have been told earlier, if it was this very value.

package import Ondol

/// An event as far as the cases tell it.
package struct ToldEvent: Equatable, CustomStringConvertible {
  package var kind: TreeEvent.Kind
  package var path: String
  package var key: String?
  package var previous: String?
  package var data: Value

  package init(
    kind: TreeEvent.Kind, path: String, key: String? = nil, previous: String? = nil, data: Value
  ) {
    self.kind = kind
    self.path = path
    self.key = key
    self.previous = previous
    self.data = data
  }

  package init(_ event: TreeEvent, below base: String) {
    kind = event.kind
    path = Self.path(event.query.reference, below: base)
    key = kind == .value ? nil : event.snapshot.key
    previous = event.previousSiblingKey
    data = event.snapshot.exportedValue
  }

  package init(_ event: SyncEvent) {
    kind = event.kind
    path = event.path.split(separator: "/").joined(separator: "/")
    key = kind == .value ? nil : event.name
    previous = kind == .value || kind == .childRemoved ? nil : event.prevName
    data = event.data ?? .null
  }

  package static func path(_ reference: TreeReference, below base: String) -> String {
    let path = reference.path.dropFirst(base.count)
    return path.split(separator: "/").joined(separator: "/")
  }

  package var depth: Int { path.split(separator: "/").count }

  package var description: String {
    "\(kind) at /\(path) \(key ?? "") after \(previous ?? "none"): \(data)"
  }
}

/// What was told at the steps of a case.
package struct SyncRecording {
  /// What one listener was told by itself.
  package struct Hearing {
    package var listener: Int
    package var path: String
    package var events: [ToldEvent]

    package init(listener: Int, path: String, events: [ToldEvent]) {
      self.listener = listener
      self.path = path
      self.events = events
    }
  }

  package struct Step {
    package var expected: [ToldEvent]
    /// Of all who listen, also of those who were told nothing.
    package var told: [Hearing] = []
    /// What one sequence over all who listened before was told; nil when there was none.
    package var together: [ToldEvent]?

    package init(expected: [ToldEvent]) {
      self.expected = expected
    }
  }

  package var steps: [Step] = []

  package init() {}
}

/// Judges recordings.
package struct SyncJudge {
  private struct ListenerState {
    /// Whether the case has told of its value.
    var hasValue = false
    /// The value it was told last.
    var value: Value?
  }

  private var listeners: [Int: ListenerState] = [:]
  /// Values that were told before the case told of any.
  private var passedOver = 0

  /// What is wrong, or nil.
  package static func problem(_ recording: SyncRecording) -> String? {
    verdict(recording).problem
  }

  /// What is wrong, or nil, and how many values were passed over.
  package static func verdict(_ recording: SyncRecording) -> (problem: String?, passedOver: Int) {
    var judge = SyncJudge()
    for (number, step) in recording.steps.enumerated() {
      if let problem = judge.problem(step) {
        return ("step \(number): \(problem)", judge.passedOver)
      }
    }
    return (nil, judge.passedOver)
  }

  /// An event that was told, and by whom it was.
  private typealias Told = (listener: Int, event: ToldEvent)

  private mutating func problem(_ step: SyncRecording.Step) -> String? {
    for hearing in step.told {
      if let problem = Self.disorder(of: hearing.events) { return problem }
    }
    let told = step.told.flatMap { hearing in hearing.events.map { Told(hearing.listener, $0) } }
    if let together = step.together, let problem = Self.problem(together, told.map(\.event)) {
      return problem
    }
    for (listener, event) in told where event.kind == .value {
      listeners[listener, default: ListenerState()].value = event.data
    }
    return difference(step, told)
  }

  private mutating func difference(_ step: SyncRecording.Step, _ told: [Told]) -> String? {
    var ours = told
    var missing: [ToldEvent] = []
    for event in step.expected {
      guard let index = ours.firstIndex(where: { $0.event == event }) else {
        if !isFirstValue(event, step) { missing.append(event) }
        continue
      }
      let (listener, _) = ours.remove(at: index)
      if event.kind == .value { listeners[listener]?.hasValue = true }
    }
    let count = ours.count
    ours.removeAll { $0.event.kind == .value && listeners[$0.listener]?.hasValue != true }
    passedOver += count - ours.count
    guard missing.isEmpty, ours.isEmpty else {
      return "expected and not told: \(missing); told and not expected: \(ours.map(\.event))"
    }
    return nil
  }

  /// Whether the case tells late what a listener was told before.
  private mutating func isFirstValue(_ event: ToldEvent, _ step: SyncRecording.Step) -> Bool {
    guard event.kind == .value else { return false }
    let hearing = step.told.first { hearing in
      guard let state = listeners[hearing.listener] else { return false }
      return !state.hasValue && state.value == event.data && hearing.path == event.path
    }
    guard let hearing else { return false }
    listeners[hearing.listener]?.hasValue = true
    return true
  }

  /// What is wrong with the order in which one listener was told.
  private static func disorder(of events: [ToldEvent]) -> String? {
    for (first, second) in zip(events, events.dropFirst()) where second.kind < first.kind {
      return "\(second.kind) after \(first.kind)"
    }
    return nil
  }

  /// What is wrong with events of several places in one sequence: they are those that each was told
  /// by itself, the deepest place first.
  private static func problem(_ together: [ToldEvent], _ alone: [ToldEvent]) -> String? {
    for (first, second) in zip(together, together.dropFirst()) where first.depth < second.depth {
      return "\(second) after \(first), which is not as deep"
    }
    var rest = alone
    for event in together {
      guard let index = rest.firstIndex(of: event) else { return "only told together: \(event)" }
      rest.remove(at: index)
    }
    return rest.isEmpty ? nil : "only told alone: \(rest)"
  }
}
