// The pending work for a database on a store, under one lock: commits to send, news of other
// commits, and callers that wait until all news has been fetched. One task takes work from it. It
// also stores the state that the task reports.

/// A commit that waits to be sent.
struct RemoteRequest: Sendable {
  var batch: Batch
  var durability: Durability
  let waiter: CheckedContinuation<Result<CommitReceipt, EngineError>, Never>

  func answer(_ result: Result<CommitReceipt, EngineError>) { waiter.resume(returning: result) }
}

/// A caller that waits until all existing commits are visible.
typealias CatchUp = CheckedContinuation<EngineError?, Never>

/// The next unit of work.
enum RemoteWork: Sendable {
  case commits([RemoteRequest])
  /// Moves the base of reads to the newest commit.
  case rebase(for: [CheckedContinuation<Void, Never>])
  /// This process has been notified of the commit, or of none that was not visible by then.
  case news(for: [CatchUp], of: SequenceNumber)
}

/// The pending work.
final class RemoteLine: Sendable {
  private struct State: Sendable {
    var requests: [RemoteRequest] = []
    /// The total size of their batches.
    var bytes = 0
    var catchUps: [CatchUp] = []
    var rebases: [CheckedContinuation<Void, Never>] = []
    /// The newest commit that was announced since the store was last asked; zero for none. It may
    /// never arrive, because a server without it may have taken over.
    var heard = SequenceNumber.zero
    var isAsking = false
    var idle: Idle?
    /// The listening task, until the store was asked about the announced commits.
    var listener: CheckedContinuation<Void, Never>?
    var isClosing = false
    /// The error for every caller from now on.
    var failure: EngineError?

    /// Discards the announcements up to a visible commit, and returns the listener if nothing else
    /// is pending.
    mutating func forgetHeard(through shown: SequenceNumber) -> CheckedContinuation<Void, Never>? {
      if heard <= shown { heard = .zero }
      return heard == .zero ? listener.take() : nil
    }

    /// Removes the cancelled commits.
    mutating func takeWithdrawn() -> [RemoteRequest] {
      let gone = requests.filter { $0.batch.ticket?.isWithdrawn ?? false }
      guard !gone.isEmpty else { return [] }
      requests.removeAll { $0.batch.ticket?.isWithdrawn ?? false }
      bytes = requests.reduce(0) { $0 + $1.batch.payloadLength }
      return gone
    }

    /// The next work; nil if none is pending.
    mutating func takeWork() -> RemoteWork? {
      guard failure == nil else { return nil }
      if !rebases.isEmpty {
        defer { rebases = [] }
        return .rebase(for: rebases)
      }
      if !catchUps.isEmpty || heard > .zero {
        defer { (catchUps, heard, isAsking) = ([], .zero, true) }
        return .news(for: catchUps, of: heard)
      }
      guard !requests.isEmpty else { return nil }
      let some = Array(requests.prefix(RemoteLine.mostAtOnce))
      requests.removeFirst(some.count)
      bytes -= some.reduce(0) { $0 + $1.batch.payloadLength }
      return .commits(some)
    }
  }

  /// The working task, when it has nothing to do.
  fileprivate typealias Idle = CheckedContinuation<Void, Never>

  private let state = Guarded(State())

  /// The most commits that go to the store together.
  private static let mostAtOnce = 512

  /// The most waiting commits, and their bytes, which the last one may exceed.
  private let mostWaiting: Int
  private let mostBytes: Int

  init(mostWaiting: Int, mostBytes: Int) {
    self.mostWaiting = mostWaiting
    self.mostBytes = mostBytes
  }

  /// The error that ended everything, if there was one.
  var failure: EngineError? { state.withLock { $0.failure } }

  var isClosing: Bool { state.withLock { $0.isClosing } }

  // MARK: - Waiting callers

  func commit(
    _ batch: consuming Batch, _ durability: Durability
  ) async throws(EngineError) -> CommitReceipt {
    let batch = batch
    let result: Result<CommitReceipt, EngineError> = await withCheckedContinuation { waiter in
      let request = RemoteRequest(batch: batch, durability: durability, waiter: waiter)
      let (refusal, gone, idle) = state.withLock {
        state -> (EngineError?, [RemoteRequest], Idle?) in
        if let failure = state.failure { return (failure, [], nil) }
        if state.isClosing { return (.closed, [], nil) }
        let gone = isFull(state) ? state.takeWithdrawn() : []
        if isFull(state) { return (crowd, gone, nil) }
        state.requests.append(request)
        state.bytes += request.batch.payloadLength
        return (nil, gone, state.idle.take())
      }
      for request in gone { request.answer(.failure(.cancelled)) }
      if let refusal { request.answer(.failure(refusal)) }
      idle?.resume()
    }
    return try result.get()
  }

  private func isFull(_ state: State) -> Bool {
    state.requests.count >= mostWaiting || state.bytes >= mostBytes
  }

  private var crowd: EngineError {
    .crowded(
      reason: "\(mostWaiting) commits wait for the server, or \(mostBytes) bytes of them; nothing"
        + " was written")
  }

  /// Returns once all commits are visible that the store had at the time of the call.
  func catchUp() async throws(EngineError) {
    let failure: EngineError? = await withCheckedContinuation { waiter in
      let (refusal, idle) = state.withLock { state -> (EngineError?, Idle?) in
        if let failure = state.failure { return (failure, nil) }
        if state.isClosing { return (.closed, nil) }
        state.catchUps.append(waiter)
        return (nil, state.idle.take())
      }
      if let refusal { waiter.resume(returning: refusal) }
      idle?.resume()
    }
    if let failure { throw failure }
  }

  /// Returns once new reads see nothing older than what was newest at the time of the call.
  func rebase() async {
    await withCheckedContinuation { waiter in
      let (isOver, idle) = state.withLock { state -> (Bool, Idle?) in
        if state.failure != nil || state.isClosing { return (true, nil) }
        state.rebases.append(waiter)
        return (false, state.idle.take())
      }
      if isOver { waiter.resume() }
      idle?.resume()
    }
  }

  /// Records that a commit with this number exists.
  func hear(of sequence: SequenceNumber) {
    let idle = state.withLock { state in
      state.heard = max(state.heard, sequence)
      return state.idle.take()
    }
    idle?.resume()
  }

  /// Returns once the store was asked about all announced commits, everything has ended, or the
  /// task is cancelled. It serves one caller at a time.
  func waitUntilAsked() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { listener in
        let isOver = state.withLock { state in
          let waits = state.isAsking || state.heard > .zero
          guard waits, state.failure == nil, !Task.isCancelled else { return true }
          state.listener = listener
          return false
        }
        if isOver { listener.resume() }
      }
    } onCancel: {
      state.withLock { $0.listener.take() }?.resume()
    }
  }

  // MARK: - The working task

  /// The next work after the visible commit; nil at the end.
  func next(behind shown: () -> SequenceNumber) async -> RemoteWork? {
    while true {
      let (listener, work, isOver) = state.withLock { state in
        state.isAsking = false
        let listener = state.forgetHeard(through: shown())
        let work = state.takeWork()
        return (listener, work, state.failure != nil || state.isClosing)
      }
      listener?.resume()
      if work != nil || isOver { return work }
      await withCheckedContinuation { waiter in
        let goesOn = state.withLock { state in
          guard state.failure == nil, !state.isClosing, state.requests.isEmpty,
            state.rebases.isEmpty, state.catchUps.isEmpty, state.heard <= shown()
          else { return true }
          state.idle = waiter
          return false
        }
        if goesOn { waiter.resume() }
      }
    }
  }

  /// Accepts no more work. Pending work is still done.
  func finish() {
    let idle = state.withLock { state in
      state.isClosing = true
      return state.idle.take()
    }
    idle?.resume()
  }

  /// Ends everything: all waiting and future callers receive the error.
  ///
  /// - Returns: whether nothing had ended everything before.
  @discardableResult
  func fail(_ error: EngineError) -> Bool {
    let (isFirst, requests, catchUps, rebases, idle, listener) = state.withLock { state in
      let isFirst = state.failure == nil
      if isFirst { state.failure = error }
      defer { (state.requests, state.bytes, state.catchUps, state.rebases) = ([], 0, [], []) }
      return (
        isFirst, state.requests, state.catchUps, state.rebases, state.idle.take(),
        state.listener.take()
      )
    }
    listener?.resume()
    for rebase in rebases { rebase.resume() }
    for request in requests { request.answer(.failure(error)) }
    for catchUp in catchUps { catchUp.resume(returning: error) }
    idle?.resume()
    return isFirst
  }
}
