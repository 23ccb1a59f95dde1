// The listen stream of clients. One task reads the targets that the client adds and removes.
// Another takes steps from the session and sends them. A step is one consistent state of all
// targets, and ends with the message that marks it as such for clients. A client that does not read
// delays only its own sender: the session then merges several commits into one step. For callers to
// whom rules apply, ListenRules sees each step before it is sent.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolMapping
  import OndolWire
  import SwiftProtobuf
  import Synchronization

  extension FirestoreService {
    func listen(
      request: RPCAsyncSequence<WireListenRequest, any Error>,
      response: RPCWriter<WireListenResponse>,
      context: ServerContext
    ) async throws {
      let (begun, begin) = AsyncStream.makeStream(of: ListenTargets.self)
      // It ends when the client has closed its side, or when the stream cannot continue.
      try await drain.run {
        for await targets in begun { try await targets.send(to: response) }
      } beside: { [self] in
        var targets: ListenTargets?
        for try await message in request {
          if targets == nil {
            let new = ListenTargets(try await call(message.database), policy, metrics)
            await new.begin()
            targets = new
            begin.yield(new)
          }
          try await targets?.take(message)
        }
      }
    }
  }

  /// A stream's targets, as the client defines them.
  actor ListenTargets {
    private struct Target: Sendable {
      let endsWhenComplete: Bool
      let expectedCount: Int?
      let mask: FieldMask?
    }

    /// The largest number of targets of one stream.
    private static let most = 1_000

    /// How long a client's token for coming back may stay the same, in microseconds.
    private static let longestPause: Int64 = 300_000_000

    private let session: ListeningSession
    private let call: FirestoreService.Call
    private let policy: AccessPolicy
    private let count: TargetCount
    private let open = OpenCall.current
    private var targets: [Int32: Target] = [:] {
      didSet { count.change(by: targets.count - oldValue.count) }
    }
    /// Nil for callers to whom no rules apply.
    private let rules: ListenRules?
    /// When the client last got a token, in microseconds since 1970.
    private let lastMark: Atomic<Int64>
    private var registrations: [Handlers.Registration] = []

    init(_ call: FirestoreService.Call, _ policy: AccessPolicy, _ metrics: CallMetrics) {
      session = ListeningSession(call.database, readsMoments: call.access.rules != nil)
      self.call = call
      self.policy = policy
      count = TargetCount(metrics)
      rules = call.access.rules.map { _ in ListenRules() }
      lastMark = Atomic(call.database.now())
    }

    /// Follows what may end the stream or its targets while no documents change.
    func begin() {
      registrations.append(
        call.served.heartbeat.add { [weak self] in self?.beat() })
      guard rules != nil else { return }
      registrations.append(call.served.rules.handlers.add { [weak self] in self?.mark() })
    }

    /// Has the stream look at its token and its rules, and name a moment.
    private nonisolated func mark() {
      Task(executorPreference: call.database.environment.executor) { [session] in
        await session.mark()
      }
    }

    /// Gives a client without changes a new token now and then. A later change feed may not reach
    /// back to its old one. Makes the stream notice that its caller's token has ended.
    private nonisolated func beat() {
      let pause = call.database.now() - lastMark.load(ordering: .relaxed)
      if pause > Self.longestPause || call.hasEnded { mark() }
    }

    /// Sends the targets' changes until the task is cancelled.
    nonisolated func send(to response: RPCWriter<WireListenResponse>) async throws {
      try await FirestoreService.mapErrors(in: call.name) {
        let sender = ListenSender(self, call.values, response)
        while let step = try await session.next() {
          var shown: ListenStep? = step
          if let rules { shown = try await examined(step, by: rules) }
          guard let shown else { continue }
          lastMark.store(call.database.now(), ordering: .relaxed)
          try await sender.send(shown)
        }
        try Task.checkCancellation()
        throw DatabaseError(.unavailable, "the database was closed")
      }
    }

    /// The step as far as its reader may see it; nil when nothing is left.
    private func examined(
      _ step: ListenStep, by rules: ListenRules
    ) async throws(DatabaseError) -> ListenStep? {
      if call.hasEnded { throw DatabaseError(.unauthenticated, "the token has expired") }
      let current = try await call.served.rules.current()
      let access = policy.access(for: call.principal, call.name, current)
      let step = try await rules.examined(
        step, call, access, number: current?.number, session)
      for (id, error) in step.failed {
        forget(id)
        if error.code == .permissionDenied { call.audit.note(.denial) }
      }
      return step.isEmpty && !step.isMark ? nil : step
    }

    /// Adds or removes a request's targets.
    ///
    /// Throws `.invalidArgument` for an invalid target, and `.resourceExhausted` for too many.
    func take(_ request: WireListenRequest) async throws {
      switch request.targetChange {
      case .addTarget(let target):
        try await FirestoreService.mapErrors(in: call.name) { try await add(target) }
      case .removeTarget(let id):
        forget(id)
        await rules?.remove(id)
        await session.remove(id)
      case nil: return
      }
    }

    private func add(_ wire: WireTarget) async throws {
      guard wire.targetID >= 0 else {
        throw DatabaseError(.invalidArgument, "a target's number is not negative")
      }
      guard targets.count < Self.most else {
        throw DatabaseError(
          .resourceExhausted, "a stream listens to \(Self.most) targets at most; open another one")
      }
      let (listened, mask) = try listened(wire)
      if let rules { await rules.add(wire.targetID, try ruled(wire)) }
      targets[wire.targetID] = Target(
        endsWhenComplete: wire.once,
        expectedCount: wire.hasExpectedCount ? Int(wire.expectedCount.value) : nil, mask: mask)
      open?.listen("\(wire.targetID)", to: "\(listened)")
      try await session.add(wire.targetID, listened, from: start(of: wire))
    }

    private func listened(
      _ wire: WireTarget
    ) throws(DatabaseError) -> (ListenedTarget, FieldMask?) {
      switch wire.targetType {
      case .query(let target):
        let (_, parent) = try DatabaseName.parent(target.parent)
        let mapped = try QueryMapping(call, parent: parent).query(target.structuredQuery)
        guard !mapped.isOfAllCollections else {
          throw DatabaseError(.unimplemented, "a listener is to one collection, or to a group")
        }
        return (.query(mapped.query), mapped.mask)
      case .documents(let target):
        var paths: [DocumentPath] = []
        for name in target.documents { paths.append(try call.name.path(of: name)) }
        return (.documents(paths), nil)
      case nil: throw DatabaseError(.invalidArgument, "a target is neither query nor documents")
      }
    }

    /// What the rules are asked about.
    private func ruled(_ wire: WireTarget) throws(DatabaseError) -> ListenRules.Listened {
      guard case .query(let target) = wire.targetType else {
        var paths: [DocumentPath] = []
        for name in wire.documents.documents { paths.append(try call.name.path(of: name)) }
        return .documents(paths)
      }
      return .query(
        target.structuredQuery, below: try DatabaseName.parent(target.parent).path)
    }

    private func start(of wire: WireTarget) -> ListeningStart {
      switch wire.resumeType {
      case .resumeToken(let token):
        ChangeToken(String(decoding: token, as: UTF8.self)).map { .result(asOf: $0) } ?? .something
      case .readTime: .something
      case nil: .nothing
      }
    }

    var masks: [Int32: FieldMask] { targets.compactMapValues(\.mask) }

    /// The numbers of documents that the client has from before, as far as it has said so.
    var expectedCounts: [Int32: Int] { targets.compactMapValues(\.expectedCount) }

    private func forget(_ id: Int32) {
      targets[id] = nil
      open?.endListening("\(id)")
    }

    /// Ends one-time targets, and returns which of these they are.
    func end(complete ids: [Int32]) async {
      for id in ids where targets[id]?.endsWhenComplete == true {
        forget(id)
        await session.remove(id)
      }
    }
  }

  /// Makes the metrics count a stream's targets while it is open.
  private final class TargetCount: Sendable {
    private let metrics: CallMetrics
    private let count = Atomic(0)

    init(_ metrics: CallMetrics) {
      self.metrics = metrics
    }

    deinit {
      metrics.countTargets(-count.load(ordering: .relaxed))
    }

    func change(by difference: Int) {
      count.add(difference, ordering: .relaxed)
      metrics.countTargets(difference)
    }
  }

  /// Sends steps to one client.
  struct ListenSender {
    private let targets: ListenTargets
    private let values: ValueMapping
    private let response: RPCWriter<WireListenResponse>

    init(
      _ targets: ListenTargets, _ values: ValueMapping, _ response: RPCWriter<WireListenResponse>
    ) {
      self.targets = targets
      self.values = values
      self.response = response
    }

    func send(_ step: ListenStep) async throws {
      try await response.write(contentsOf: opening(of: step))
      let masks = step.changes.isEmpty ? [:] : await targets.masks
      var rest = step.changes[...]
      while !rest.isEmpty {
        let group = rest.prefix(Self.groupCount)
        try await response.write(contentsOf: messages(of: group, masks, at: step.time))
        rest = rest.dropFirst(group.count)
      }
      let expected = step.counts.isEmpty ? [:] : await targets.expectedCounts
      try await response.write(contentsOf: closing(of: step, expected))
      await targets.end(complete: step.completed)
    }

    /// The number of changes that are written together.
    private static let groupCount = 64

    // A stream that waits keeps the memory of its asynchronous calls, and a message has hundreds of
    // bytes. So what makes messages is neither asynchronous nor inlined into what is.

    /// What comes before the changes of a step.
    @inline(never)
    private func opening(of step: ListenStep) -> [WireListenResponse] {
      var messages: [WireListenResponse] = []
      for (id, isAdded) in step.acknowledged {
        messages.append(change(isAdded ? .add : .remove, [id]))
      }
      for (id, error) in step.failed {
        var message = change(.remove, [id])
        message.targetChange.cause = ErrorMapping.status(error, in: values.database)
        messages.append(message)
      }
      if !step.reset.isEmpty { messages.append(change(.reset, step.reset)) }
      return messages
    }

    @inline(never)
    private func messages(
      of changes: ArraySlice<ListenStep.Change>, _ masks: [Int32: FieldMask], at time: Timestamp
    ) -> [WireListenResponse] {
      changes.map { change in
        var message = WireListenResponse()
        let name = "\(values.database.documents)/\(change.document.reference.path)"
        if let first = change.targets.first {
          message.documentChange.document = values.wire(change.document, mask: masks[first])
          message.documentChange.targetIds = change.targets
          message.documentChange.removedTargetIds = change.left
        } else if change.exists {
          message.documentRemove.document = name
          message.documentRemove.removedTargetIds = change.left
          message.documentRemove.readTime = values.wire(time)
        } else {
          message.documentDelete.document = name
          message.documentDelete.removedTargetIds = change.left
          message.documentDelete.readTime = values.wire(time)
        }
        return message
      }
    }

    /// What comes after the changes of a step.
    ///
    /// - Parameter expected: the number of documents that the client has, for targets that say it.
    @inline(never)
    private func closing(
      of step: ListenStep, _ expected: [Int32: Int]
    ) -> [WireListenResponse] {
      var messages: [WireListenResponse] = []
      for (id, counts) in step.counts {
        guard let expected = expected[id], expected != counts.seen else { continue }
        messages.append(
          .with {
            $0.filter.targetID = id
            $0.filter.count = Int32(clamping: counts.now)
          })
      }
      let (time, token) = (values.wire(step.time), Data(step.token.description.utf8))
      if !step.completed.isEmpty {
        var message = change(.current, step.completed)
        message.targetChange.readTime = time
        message.targetChange.resumeToken = token
        messages.append(message)
      }
      if step.changes.isEmpty, step.completed.isEmpty, step.reset.isEmpty, !step.isMark {
        return messages
      }
      // Without targets, the message applies to all of them: they are consistent as of this moment.
      var message = change(.noChange, [])
      message.targetChange.readTime = time
      message.targetChange.resumeToken = token
      messages.append(message)
      return messages
    }

    private func change(
      _ type: WireTargetChange.TargetChangeType, _ ids: [Int32]
    ) -> WireListenResponse {
      .with {
        $0.targetChange.targetChangeType = type
        $0.targetChange.targetIds = ids
      }
    }
  }
#endif
