// A result that is kept up to date for all its listeners. Commits put their changes into the inbox,
// merged by document. The first listener that asks for news applies the inbox to the view, once for
// all, on its own thread. So a writer never waits for a listener, and a listener that never asks
// costs one bounded inbox: when that is full, the view is evaluated again at the next request.
//
// No commit is missed and none is applied twice. Commits find a watch before the snapshot is taken
// on which its view is evaluated. Changes that arrive meanwhile are queued, and their version shows
// which of them the snapshot has already.

internal import OndolEngine

/// What a watch observes. Equal keys share a watch.
enum WatchKey: Hashable, Sendable {
  case document(DocumentPath)
  case query(QueryShape)
  /// The same, for listeners who want to know when only the metadata changes.
  case documentMetadata(DocumentPath)
  case queryMetadata(QueryShape)
  case aggregate(QueryShape, [AggregateField])
  case groups(QueryShape, [AggregateField], [FieldPath], TextComparison?)
  case lookup(QueryShape, [LookupStep])
  case search(SearchWatchKey)
  case pipeline([PipelineStage])
  /// Not shared: see ListeningSession.
  case session(ObjectIdentifier)
}

/// A result to which changes can be applied.
protocol LiveView: Sendable {
  /// Applies changes, at most one for each document; returns whether the result has changed.
  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool

  /// Whether it must be evaluated again, because the changes do not determine the result.
  var isStale: Bool { get }

  /// Whether the two results look the same to every listener.
  func isSame(as other: Self) -> Bool

  /// Whether the server cannot be reached; ignored by views that do not report it.
  var isAway: Bool { get set }

  /// Whether a follow has not had all its documents; ignored by views that do not report it.
  var isLoading: Bool { get set }

  /// Whether the listeners want to know when only the metadata changes.
  var includesMetadata: Bool { get }
}

extension LiveView {
  var isAway: Bool {
    get { false }
    set {}
  }

  var isLoading: Bool {
    get { false }
    set {}
  }

  var includesMetadata: Bool { false }
}

/// A view, and the commit that it is as of.
struct Evaluation<View: LiveView>: Sendable {
  var view: View
  var point: CommitPoint

  var version: Version { Version(rawValue: point.sequence.rawValue) }
}

/// A view that is kept up to date.
final class Watch<View: LiveView>: CommitListener {
  /// The most documents in the inbox, and the most bytes of memory that they take. With more, the
  /// view is evaluated again.
  fileprivate static var inboxLimit: Int { 2_000 }
  fileprivate static var inboxBytes: Int { 4 << 20 }

  fileprivate struct State: Sendable {
    var view: View?
    /// Counts the results so far.
    var generation = 0
    var version = Version.missing
    /// More has happened than the view and the inbox contain.
    var isStale = true
    /// A listener is evaluating the view; `isStale` concerns what happens meanwhile.
    var isEvaluating = false
    var inbox: [DocumentPath: ObservedChange] = [:]
    /// Approximate memory of the inbox in bytes.
    var inboxBytes = 0
    /// Changes that arrived during the evaluation, in order.
    var line: [(version: Version, changes: [ObservedChange])] = []
    var lineCount = 0
    var lineBytes = 0
    var waiters = WaitingListeners()
    var failure: DatabaseError?
    var isFinished = false
    /// Whether the server cannot be reached, for a view that reports it.
    var isAway = false
    /// Whether a follow has not had all its documents, for a view that reports it.
    var isLoading = false

    /// The result as listeners see it.
    var shown: View? {
      guard var view else { return nil }
      view.isAway = isAway
      view.isLoading = isLoading
      return view
    }
  }

  private let state = Guarded(State())
  private let outages: Outages
  /// Evaluates the view as of a moment, or as of now.
  typealias Evaluate =
    @Sendable (DatedSnapshot?) async throws(DatabaseError) -> Evaluation<View>

  let evaluate: Evaluate

  /// - Parameters:
  ///   - outages: whether the server cannot be reached.
  ///   - isLoading: whether a follow has not had all its documents.
  init(_ outages: Outages, isLoading: Bool = false, _ evaluate: @escaping Evaluate) {
    self.outages = outages
    self.evaluate = evaluate
    let isAway = outages.isAway
    state.withLock { ($0.isAway, $0.isLoading) = (isAway, isLoading) }
  }

  var isLoading: Bool { state.withLock(\.isLoading) }

  var pendingCount: Int { state.withLock { $0.inbox.count + $0.lineCount } }

  var hasFailed: Bool { state.withLock { $0.failure != nil } }

  // MARK: - Commits

  func take(_ changes: [ObservedChange], _ version: Version, _ wakeups: inout [Wakeup]) {
    let woken: [Wakeup] = state.withLock { state in
      guard !state.isFinished, !state.isStale, version > state.version else { return [] }
      if state.isEvaluating {
        state.lineUp(changes, version)
        return []
      }
      state.post(changes)
      state.limitInbox()
      return state.waiters.takeAll()
    }
    wakeups += woken
  }

  func invalidate(_ version: Version, _ wakeups: inout [Wakeup]) {
    let woken: [Wakeup] = state.withLock { state in
      guard !state.isFinished, version > state.version else { return [] }
      state.overflow()
      return state.isEvaluating ? [] : state.waiters.takeAll()
    }
    wakeups += woken
  }

  func note(isAway: Bool) {
    let woken: [Wakeup] = state.withLock { state in
      guard !state.isFinished, state.isAway != isAway else { return [] }
      state.isAway = isAway
      guard state.shown?.isAway == isAway else { return [] }
      state.generation += 1
      return state.isEvaluating ? [] : state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  func note(isLoading: Bool) {
    let woken: [Wakeup] = state.withLock { state in
      guard !state.isFinished, state.isLoading != isLoading else { return [] }
      state.isLoading = isLoading
      guard let view = state.shown, view.includesMetadata else { return [] }
      state.generation += 1
      return state.isEvaluating ? [] : state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  func finish() {
    let woken = state.withLock { state in
      state.isFinished = true
      state.overflow()
      return state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  func fail(with error: DatabaseError) {
    let woken = state.withLock { state in
      state.failure = state.failure ?? error
      return state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  // MARK: - Listeners

  /// What a listener has seen.
  struct Seen: Sendable {
    var generation: Int
    var view: View
  }

  private enum Step {
    case show(Seen)
    case evaluate
    case wait
    case end
    case fail(DatabaseError)
  }

  /// The most changes that a listener applies on its own thread, which is faster than switching
  /// threads.
  private static var fewChanges: Int { 8 }

  /// The next result after the seen one, if it is ready or a few changes lead to it.
  func nextAtOnce(after seen: Seen?) -> Seen? {
    let next = state.withLock { state -> Seen? in
      guard !state.isFinished, state.failure == nil, !state.isEvaluating, !state.isStale,
        state.inbox.count <= Self.fewChanges
      else { return nil }
      state.empty()
      guard !state.isStale, let view = state.shown, state.generation != seen?.generation else {
        return nil
      }
      return Seen(generation: state.generation, view: view)
    }
    return next.flatMap { Self.isRepeated($0, after: seen) ? nil : $0 }
  }

  /// Whether changes that other listeners saw in between have been undone, so that this listener,
  /// which missed them, would receive the same result again.
  private static func isRepeated(_ next: Seen, after seen: Seen?) -> Bool {
    guard let seen, next.generation > seen.generation + 1 else { return false }
    let isLoadingSeen = next.view.includesMetadata && next.view.isLoading != seen.view.isLoading
    return next.view.isAway == seen.view.isAway && !isLoadingSeen
      && next.view.isSame(as: seen.view)
  }

  /// The next result after the seen one; nil when there will be none.
  ///
  /// - Parameter waits: whether it waits for commits; otherwise it returns nil when there are none.
  @concurrent
  func next(
    after seen: Seen?, for listener: Listening, waits: Bool = true
  ) async throws(DatabaseError) -> Seen? {
    // Under a flood of commits, a view is out of date as soon as it is evaluated, and is shown
    // anyway.
    var hasEvaluated = false
    var seen = seen
    while !listener.isCancelled {
      switch state.withLock({ Self.step(&$0, seen, takesStale: hasEvaluated) }) {
      case .show(let next):
        guard Self.isRepeated(next, after: seen) else { return next }
        seen?.generation = next.generation
      case .evaluate:
        if await evaluateNow() {
          hasEvaluated = true
        } else {
          // Another listener continues with it, or this one does.
          if Task.isCancelled { return nil }
          await outages.rest()
        }
      case .wait:
        guard waits || state.withLock({ $0.isEvaluating }) else { return nil }
        await wait(after: seen, listener)
      case .end: return nil
      case .fail(let error): throw error
      }
    }
    return nil
  }

  /// Applies the inbox, and returns what the listener must do next.
  private static func step(_ state: inout State, _ seen: Seen?, takesStale: Bool) -> Step {
    if state.isFinished { return .end }
    if let failure = state.failure { return .fail(failure) }
    if state.isEvaluating { return .wait }
    state.empty()
    if let view = state.shown, state.generation != seen?.generation, takesStale || !state.isStale {
      return .show(Seen(generation: state.generation, view: view))
    }
    guard state.isStale else { return .wait }
    state.isEvaluating = true
    state.isStale = false
    return .evaluate
  }

  /// Returns whether it was evaluated, or never can be. Returns false while the server cannot be
  /// reached.
  private func evaluateNow() async -> Bool {
    let woken: [Wakeup]
    var isOver = true
    do throws(DatabaseError) {
      let evaluation = try await evaluate(nil)
      woken = state.withLock { state in
        state.install(evaluation)
        return state.waiters.takeAll()
      }
    } catch {
      isOver = !outages.outlast(error)
      woken = state.withLock { [isOver] state in
        state.isEvaluating = false
        if isOver { state.failure = error } else { state.overflow() }
        return state.waiters.takeAll()
      }
    }
    for wakeup in woken { wakeup.resume() }
    return isOver
  }

  private func wait(after seen: Seen?, _ listener: Listening) async {
    await listener.wait { wakeup in
      state.withLock { state in
        guard !listener.isCancelled, state.mustWait(after: seen?.generation) else { return false }
        state.waiters.add(listener, wakeup)
        return true
      }
    } leave: { [state] in
      state.withLock { $0.waiters.remove(listener) }
    }
  }
}

extension Watch.State {
  /// Queues changes until the evaluation under way is done.
  fileprivate mutating func lineUp(_ changes: [ObservedChange], _ version: Version) {
    line.append((version, changes))
    lineCount += changes.count
    lineBytes += changes.reduce(0) { $0 + $1.memoryBytes }
    if lineCount > Watch.inboxLimit || lineBytes > Watch.inboxBytes { overflow() }
  }

  /// Puts changes into the inbox, one for each document.
  fileprivate mutating func post(_ changes: [ObservedChange]) {
    for change in changes {
      let earlier = inbox[change.path]
      let merged = earlier?.followed(by: change) ?? change
      inbox[change.path] = merged
      inboxBytes += merged.memoryBytes - (earlier?.memoryBytes ?? 0)
    }
  }

  /// Drops the inbox when it has become too large.
  fileprivate mutating func limitInbox() {
    if inbox.count > Watch.inboxLimit || inboxBytes > Watch.inboxBytes { overflow() }
  }

  /// Drops the changes; the view must be evaluated again.
  fileprivate mutating func overflow() {
    clearInbox()
    clearLine()
    isStale = true
  }

  private mutating func clearInbox() {
    inbox = [:]
    inboxBytes = 0
  }

  private mutating func clearLine() {
    line = []
    lineCount = 0
    lineBytes = 0
  }

  /// Applies the inbox to the view. A view that becomes stale has only some of the changes in it.
  /// It is not kept, because the next evaluation is compared with the last delivered result.
  fileprivate mutating func empty() {
    guard !isStale, !inbox.isEmpty, var changed = view else { return }
    let isAnother = changed.apply(inbox.values)
    clearInbox()
    if changed.isStale {
      isStale = true
      return
    }
    view = changed
    if isAnother { generation += 1 }
  }

  /// Installs a new view, and applies the changes that arrived during its evaluation.
  fileprivate mutating func install(_ evaluation: Evaluation<View>) {
    isEvaluating = false
    if view.map({ !$0.isSame(as: evaluation.view) }) ?? true { generation += 1 }
    view = evaluation.view
    version = evaluation.version
    for later in line where later.version > version { post(later.changes) }
    clearLine()
  }

  /// Whether there is nothing new for a listener that has seen a result, and nothing to do.
  fileprivate func mustWait(after seen: Int?) -> Bool {
    if isFinished || failure != nil { return false }
    return isEvaluating || !isStale && inbox.isEmpty && generation == seen
  }

}
