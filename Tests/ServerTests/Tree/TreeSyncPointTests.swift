// The published cases of what listeners are told, a second time: through sessions of the WebSocket
// protocol. A client keeps its views from the messages alone, and the events are the differences of
// its views. Writes of the client go through its own session, those of others through another one.

#if Server
  import Foundation
  import Ondol
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct `Sync points over the WebSocket protocol` {
    @Test(
      .enabled(if: SyncCase.arePresent, "the conformance data is not beside the project"),
      arguments: ["", "foo/bar/baz"])
    func `Published cases give the events they expect`(base: String) async throws {
      let meant = try SyncCase.all().filter { !$0.isAboutTheProtocol }
      var passed = 0
      for one in meant {
        let recording = try await SyncSession.record(one, base: base)
        let problem = SyncJudge.problem(recording)
        passed += problem == nil ? 1 : 0
        if let problem { Issue.record("\(one.name), at /\(base): \(problem)") }
      }
      print("Conformance, sync points over sessions at /\(base): \(passed) of \(meant.count)")
      #expect(passed == meant.count && passed >= 30)
    }
  }

  /// One run of one case.
  private struct SyncSession {
    /// A listen of the client, and the result that its events were made from.
    private struct Member {
      var number: Int
      var path: String
      var tag: Int64?
      var query: ModelTreeQuery
      var isLasting: Bool
      var key: String
      var seen = ModelTreeResult(children: [], value: .null)
      var hasValue = false
    }

    private let base: String
    private let mine: (session: TreeSession, client: TreeClient)
    private let other: (session: TreeSession, client: TreeClient)
    private var members: [Member] = []
    private var next = 0

    static func record(_ test: SyncCase, base: String) async throws -> SyncRecording {
      let stage = try await TreeStage.inMemory()
      var run = SyncSession(stage, base: base)
      var recording = SyncRecording()
      for step in test.steps {
        await run.perform(step)
        try await stage.poll(run.mine.session)
        var recorded = run.take()
        recorded.expected = (step.events ?? []).map { ToldEvent($0) }
        recording.steps.append(recorded)
      }
      try await stage.database.close()
      return recording
    }

    private init(_ stage: TreeStage, base: String) {
      self.base = base
      mine = stage.session(1)
      other = stage.session(2)
    }

    private func path(_ step: SyncStep) -> String {
      [base, step.path ?? ""].joined(separator: "/").split(separator: "/").joined(separator: "/")
    }

    // MARK: - Steps

    private mutating func perform(_ step: SyncStep) async {
      switch step.type {
      case "listen": await listen(step)
      case "unlisten": await unlisten(step)
      case "set", "update": await write(step, mine)
      case "serverUpdate", "serverMerge": await write(step, other)
      default: break
      }
    }

    private func write(
      _ step: SyncStep, _ way: (session: TreeSession, client: TreeClient)
    ) async {
      let action = step.type == "set" || step.type == "serverUpdate" ? "p" : "m"
      let body = "{\"p\":\(TreeText.json(path(step))),\"d\":\(TreeText.json(step.data ?? .null))}"
      let answer = await way.client.ask(way.session, action, body)
      #expect(answer?.status == "ok")
    }

    private mutating func listen(_ step: SyncStep) async {
      let query = SyncQuery(step.params)
      let key = path(step) + " " + query.json
      let number = next
      next += 1
      // Like a client, it listens to the same query once, and makes both listeners' events of it.
      let known = members.first { $0.key == key }
      let tag = known == nil ? (query.isDefault ? nil : Int64(number + 1)) : known?.tag
      var member = Member(
        number: number, path: path(step), tag: tag, query: query.model, isLasting: known == nil,
        key: key)
      member.query.path = []
      members.append(member)
      if known == nil {
        _ = await mine.client.listen(
          mine.session, path(step), query: tag == nil ? nil : query.json, tag: tag)
      }
    }

    private mutating func unlisten(_ step: SyncStep) async {
      let query = SyncQuery(step.params)
      let key = path(step) + " " + query.json
      guard let member = members.first(where: { $0.key == key }) else { return }
      let rest = member.tag.map { ",\"q\":\(query.json),\"t\":\($0)" } ?? ""
      _ = await mine.client.ask(
        mine.session, "n", "{\"p\":\(TreeText.json(path(step)))\(rest)}")
      members.removeAll { $0.key == key }
    }

    // MARK: - Events

    private mutating func take() -> SyncRecording.Step {
      var step = SyncRecording.Step(expected: [])
      for index in members.indices {
        let member = members[index]
        let view = mine.client.listening(member.path, tag: member.tag)?.view ?? ModelTree()
        let now = member.query.result(in: view)
        let path = member.path.dropFirst(base.count).split(separator: "/").joined(separator: "/")
        var events = member.seen.toldEvents(to: now, at: path)
        if !events.isEmpty || !member.hasValue || !member.seen.isSame(as: now) {
          events.append(ToldEvent(kind: .value, path: path, data: now.value))
        }
        members[index].seen = now
        members[index].hasValue = true
        step.told.append(.init(listener: member.number, path: path, events: events))
      }
      members.removeAll { !$0.isLasting }
      return step
    }
  }

  /// A case's query, as the protocol has it and as the model has it.
  private struct SyncQuery {
    var model = ModelTreeQuery(path: [])
    private var fields: [String: Value] = [:]

    var isDefault: Bool { fields.isEmpty }
    var json: String { TreeText.json(.map(fields)) }

    init(_ params: SyncStep.Params?) {
      guard let params else { return }
      if let child = params.orderBy {
        fields["i"] = .string(child)
        model.order = .child(child.split(separator: "/").map(String.init))
      }
      if params.orderByKey == true {
        fields["i"] = .string(".key")
        model.order = .key
      }
      if let start = params.startAt ?? params.equalTo {
        (fields["sp"], fields["sn"]) = (start.index?.value ?? .null, start.name.map { .string($0) })
        model.start = .init(value: start.index?.value ?? .null, key: start.name, isIncluded: true)
      }
      if let end = params.endAt ?? params.equalTo {
        (fields["ep"], fields["en"]) = (end.index?.value ?? .null, end.name.map { .string($0) })
        model.end = .init(value: end.index?.value ?? .null, key: end.name, isIncluded: true)
      }
      if let limit = params.limitToFirst ?? params.limitToLast {
        model.limit = limit
        model.isFromEnd = params.limitToFirst == nil
        fields["l"] = .integer(Int64(limit))
        fields["vf"] = .string(model.isFromEnd ? "r" : "l")
      }
    }
  }

  extension ModelTreeResult {
    /// The events about children that lead to a later result.
    fileprivate func toldEvents(to later: ModelTreeResult, at path: String) -> [ToldEvent] {
      func event(_ kind: TreeEvent.Kind, _ child: Child, _ previous: String?) -> ToldEvent {
        ToldEvent(
          kind: kind, path: path, key: child.key, previous: previous, data: child.node.exported)
      }
      let old = Dictionary(uniqueKeysWithValues: children.map { ($0.key, $0) })
      let new = Set(later.children.map(\.key))
      let removed = children.filter { !new.contains($0.key) }.map { event(.childRemoved, $0, nil) }
      var (added, moved, changed): ([ToldEvent], [ToldEvent], [ToldEvent]) = ([], [], [])
      var previous: String?
      for child in later.children {
        defer { previous = child.key }
        guard let before = old[child.key] else {
          added.append(event(.childAdded, child, previous))
          continue
        }
        guard before.node != child.node else { continue }
        if "\(before.order ?? .map([:]))" != "\(child.order ?? .map([:]))" {
          moved.append(event(.childMoved, child, previous))
        }
        changed.append(event(.childChanged, child, previous))
      }
      return removed + added + moved + changed
    }
  }
#endif
