// Cases others published for the system whose events these are: what listeners are told at each
// step. Each case runs at the root of the tree and somewhere inside it, with listeners that listen
// from their step on, through the public interface; a clock that knows when nothing is left to do
// says when all have been told. Cases about writes that a server has yet to confirm, or take back,
// have no meaning here, because a commit is final.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct SyncPointTests {
  @Test(
    .enabled(if: SyncCase.arePresent, "the conformance data is not beside the project"),
    arguments: ["", "foo/bar/baz"])
  func `Published cases give the events they expect`(base: String) async throws {
    let cases = try SyncCase.all()
    let meant = cases.filter { !$0.isAboutTheProtocol }
    var passed = 0
    for one in meant {
      guard let recording = try await SyncRun(one, base: base).record() else {
        Issue.record("\(one.name) takes a write back")
        continue
      }
      let problem = SyncJudge.problem(recording)
      passed += problem == nil ? 1 : 0
      if let problem { Issue.record("\(one.name), at /\(base): \(problem)") }
    }
    var others = 0
    for one in cases where one.isAboutTheProtocol {
      guard let recording = try await SyncRun(one, base: base).record() else { continue }
      if SyncJudge.problem(recording) == nil { others += 1 }
    }
    print(
      "Conformance, sync points at /\(base): \(passed) of \(meant.count), and \(others) of"
        + " \(cases.count - meant.count) about writes to be confirmed")
    #expect(passed == meant.count)
    // Three of five have a meaning here; fewer would mean that cases were set aside.
    #expect(!cases.isEmpty && meant.count * 5 >= cases.count * 3)
  }

  @Test(.enabled(if: SyncCase.arePresent, "the conformance data is not beside the project"))
  func `The judge finds every event that is missing, told twice, out of order or another`()
    async throws
  {
    var counts: [String: (planted: Int, passedOver: Int)] = [:]
    var passedOver = 0
    for one in try SyncCase.all() where !one.isAboutTheProtocol {
      guard let recording = try await SyncRun(one, base: "").record() else { continue }
      passedOver += SyncJudge.verdict(recording).passedOver
      for fault in SyncFault.all(in: recording) {
        let isFound = SyncJudge.problem(fault.recording) != nil
        counts[fault.name, default: (0, 0)].planted += 1
        if isFound { continue }
        counts[fault.name, default: (0, 0)].passedOver += 1
        #expect(fault.isAboutValue, "\(one.name): \(fault)")
      }
    }
    print("Sync points, planted faults and those passed over: \(counts), of values \(passedOver)")
    #expect(counts.count == SyncFault.names.count)
    // Only values that are passed over in any case may be as they like, or be missing.
    for (name, count) in counts { #expect(count.passedOver <= passedOver, "\(name)") }
    #expect(counts["all values left out"]?.passedOver == 0)
  }
}

/// One run of one case.
private struct SyncRun {
  private let test: SyncCase
  private let base: String

  init(_ test: SyncCase, base: String) {
    self.test = test
    self.base = base
  }

  /// What was told; nil when the case takes a write back.
  func record() async throws -> SyncRecording? {
    if test.steps.contains(where: { $0.type == "ackUserWrite" && $0.revert == true }) { return nil }
    let clock = ManualClock()
    let device = SimulatedDevice(clock: clock)
    return try await clock.watch {
      let database = try await Database.open(at: "sync.ondol", on: device)
      return try await withThrowingTaskGroup(of: Void.self) { group in
        var recording = SyncRecording()
        var listeners = Listeners(base: base)
        let root = database.tree.child(base)
        for step in test.steps {
          try await perform(step, root, &listeners, &group)
          await clock.advance(by: .zero)
          var recorded = listeners.take()
          recorded.expected = (step.events ?? []).map { ToldEvent($0) }
          recording.steps.append(recorded)
          if step.type == "listen" || step.type == "unlisten" {
            listeners.listenTogether(in: &group)
            await clock.advance(by: .zero)
            listeners.forgetTogether()
          }
        }
        try await database.close()
        group.cancelAll()
        return recording
      }
    }
  }

  private func perform(
    _ step: SyncStep, _ root: TreeReference, _ listeners: inout Listeners,
    _ group: inout ThrowingTaskGroup<Void, any Error>
  ) async throws {
    switch step.type {
    case "listen": listeners.listen(to: step.query(below: root), in: &group)
    case "unlisten": listeners.unlisten(from: step.query(below: root))
    case "set", "serverUpdate", "update", "serverMerge": try await write(step, below: root)
    default: break
    }
  }

  private func write(_ step: SyncStep, below root: TreeReference) async throws {
    let place = root.child((step.path ?? "").replacing(".priority", with: ""))
    let value = step.data ?? .null
    if step.path?.hasSuffix(".priority") == true {
      try await place.setPriority(value)
    } else if step.type == "set" || step.type == "serverUpdate" {
      try await place.setValue(value)
    } else {
      try await place.updateChildValues(value.map ?? [:])
    }
  }
}

/// Who listens in a case, each to its own sequence, and all of them to one together.
private struct Listeners {
  private static let allKinds = Set(TreeEvent.Kind.allCases)

  /// What one sequence has told and nobody has taken.
  private final class Ear: Sendable {
    private let events = Guarded<[TreeEvent]>([])
    private let (ends, end) = AsyncStream.makeStream(of: Never.self)

    /// Listens until it is to stop.
    func listen(to updates: Updates<TreeEvent>) async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for try await event in updates { self.events.withLock { $0.append(event) } }
        }
        group.addTask { for await _ in self.ends {} }
        try await group.next()
        group.cancelAll()
      }
    }

    func stop() { end.finish() }

    func take() -> [TreeEvent] {
      events.withLock { events in
        defer { events = [] }
        return events
      }
    }
  }

  private let base: String
  private var members: [(number: Int, query: TreeQuery, ear: Ear, isLasting: Bool)] = []
  private var together: Ear?
  private var next = 0

  init(base: String) {
    self.base = base
  }

  /// Begins to listen. Who listens to the same again is told of the beginning, and no more.
  mutating func listen(
    to query: TreeQuery, in group: inout ThrowingTaskGroup<Void, any Error>
  ) {
    endTogether()
    let ear = Ear()
    let isLasting = !members.contains { $0.query == query }
    members.append((next, query, ear, isLasting))
    next += 1
    group.addTask { try await ear.listen(to: query.observe(Self.allKinds)) }
  }

  mutating func unlisten(from query: TreeQuery) {
    endTogether()
    for member in members where member.query == query { member.ear.stop() }
    members.removeAll { $0.query == query }
  }

  /// Has one sequence tell of all places.
  mutating func listenTogether(in group: inout ThrowingTaskGroup<Void, any Error>) {
    guard let database = members.first?.query.reference.database else { return }
    let ear = Ear()
    let queries = members.map { (query: $0.query as any TreeQuerySource, kinds: Self.allKinds) }
    together = ear
    group.addTask { try await ear.listen(to: database.observeTree(queries)) }
  }

  /// Passes over what has been told of the beginning.
  func forgetTogether() { _ = together?.take() }

  private mutating func endTogether() {
    together?.stop()
    together = nil
  }

  /// What was told since the last time.
  mutating func take() -> SyncRecording.Step {
    var step = SyncRecording.Step(expected: [])
    for (number, query, ear, isLasting) in members {
      let path = ToldEvent.path(query.reference, below: base)
      let events = ear.take().map { ToldEvent($0, below: base) }
      step.told.append(.init(listener: number, path: path, events: events))
      if !isLasting { ear.stop() }
    }
    members.removeAll { !$0.isLasting }
    step.together = together?.take().map { ToldEvent($0, below: base) }
    return step
  }
}

/// A recording with something wrong in it.
private struct SyncFault: CustomStringConvertible {
  static let names = [
    "all values left out", "left out", "told twice", "exchanged", "another sibling", "other data",
  ]

  var name: String
  var recording: SyncRecording
  var isAboutValue = false
  private var place = ""

  var description: String { "\(name) \(place)" }

  /// Every fault at every place.
  static func all(in recording: SyncRecording) -> [SyncFault] {
    var faults: [SyncFault] = []
    for (step, recorded) in recording.steps.enumerated() {
      for (hearing, heard) in recorded.told.enumerated() {
        for (place, event) in heard.events.enumerated() {
          func plant(_ name: String, _ change: (inout [ToldEvent]) -> Void) {
            var copy = recording
            // The sequence of all places would tell.
            copy.steps[step].together = nil
            change(&copy.steps[step].told[hearing].events)
            faults.append(
              SyncFault(
                name: name, recording: copy, isAboutValue: event.kind == .value,
                place: "\(event), step \(step)"))
          }
          plant("left out") { $0.remove(at: place) }
          plant("told twice") { $0.insert(event, at: place) }
          plant("other data") { $0[place].data = .string("of no case") }
          if event.kind != .value { plant("another sibling") { $0[place].previous = "of no case" } }
          if place > 0, heard.events[place - 1].kind != event.kind {
            plant("exchanged") { $0.swapAt(place, place - 1) }
          }
        }
      }
    }
    return faults + withoutValues(recording)
  }

  /// The case without any value, when it expects one that a listener is told.
  private static func withoutValues(_ recording: SyncRecording) -> [SyncFault] {
    guard recording.steps.contains(where: { $0.expected.contains { $0.kind == .value } }) else {
      return []
    }
    var copy = recording
    for step in copy.steps.indices {
      copy.steps[step].together = nil
      for hearing in copy.steps[step].told.indices {
        copy.steps[step].told[hearing].events.removeAll { $0.kind == .value }
      }
    }
    return [SyncFault(name: "all values left out", recording: copy)]
  }
}
