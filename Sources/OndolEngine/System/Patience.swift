// Limits how long a caller waits for a server. A call always runs to its end: a commit that was
// sent cannot be recalled, and its consequences must be processed. Only the waiting caller stops,
// when its time has expired or its task is cancelled.
//
// Time is counted in ticks during which this process was running, not by a clock. A process that
// was stopped for a minute has not waited for a minute, and gives the server its time when it
// continues.

internal import Synchronization

/// The result of waiting.
package enum Waited<Result: Sendable>: Sendable {
  case done(Result)
  /// The time expired first.
  case late
  /// The task was cancelled first.
  case cancelled
}

/// When a caller has waited long enough.
package struct PatienceEnd: Sendable {
  fileprivate var tick: Int
}

/// Runs calls separately from the callers that wait for them.
package final class Patience: Sendable {
  private struct State: Sendable {
    /// The number of ticks so far. They are counted only while a caller waits.
    var tick = 0
    var last: UInt64 = 0
    var waiting: [UInt64: Waiter] = [:]
    var isCounting = false
  }

  private struct Waiter: Sendable {
    var end: Int
    var leave: @Sendable () -> Void
  }

  /// How long a caller waits, in microseconds.
  package let limit: Int64
  private let environment: Environment
  private let tasks: BackgroundTasks
  private let state = Guarded(State())

  /// The number of ticks in the time limit of one call. The limit expires with the last tick or up
  /// to one tick earlier.
  private static let ticks = 8

  init(limit: Int64, environment: Environment) {
    self.limit = limit
    self.environment = environment
    tasks = BackgroundTasks(executor: environment.executor)
  }

  /// The end for a caller that begins to wait now.
  package func begin() -> PatienceEnd { PatienceEnd(tick: state.withLock { $0.tick } + Self.ticks) }

  /// Runs `body` to its end and waits for it.
  ///
  /// - Parameters:
  ///   - end: the end of the wait; nil for the whole time limit.
  ///   - endsWithCaller: whether `body` is cancelled once no caller waits for it.
  package func wait<R: Sendable>(
    until end: PatienceEnd? = nil, cancelling endsWithCaller: Bool = false,
    for body: @escaping @Sendable () async -> R
  ) async -> Waited<R> {
    let race = Race<R>()
    guard let task = tasks.start({ race.end(.done(await body())) }) else {
      // Everything has ended, and nothing is awaited any more.
      return .done(await body())
    }
    let number = enter((end ?? begin()).tick) { race.end(.late) }
    let waited = await withTaskCancellationHandler {
      await withCheckedContinuation { race.wait($0) }
    } onCancel: {
      race.end(.cancelled)
    }
    state.withLock { _ = $0.waiting.removeValue(forKey: number) }
    if case .done = waited { return waited }
    if endsWithCaller { task.cancel() }
    return waited
  }

  private func enter(_ end: Int, _ leave: @escaping @Sendable () -> Void) -> UInt64 {
    let (number, counts) = state.withLock { state in
      state.last += 1
      state.waiting[state.last] = Waiter(end: end, leave: leave)
      defer { state.isCounting = true }
      return (state.last, !state.isCounting)
    }
    if counts { tasks.start { [self] in await count() } }
    return number
  }

  /// Counts ticks as long as a caller waits.
  private func count() async {
    while !Task.isCancelled {
      await environment.timeOut(max(1, limit / Int64(Self.ticks)))
      if Task.isCancelled { break }
      let (late, isOver) = state.withLock { state in
        state.tick += 1
        let tick = state.tick
        let late = state.waiting.filter { $0.value.end <= tick }.sorted { $0.key < $1.key }
        for (number, _) in late { state.waiting[number] = nil }
        state.isCounting = !state.waiting.isEmpty
        return (late.map(\.value), !state.isCounting)
      }
      for waiter in late { waiter.leave() }
      if isOver { return }
    }
    state.withLock { $0.isCounting = false }
  }

  /// The error message about a server.
  package func words(for store: String) -> String {
    "\(store) has not answered within \(Duration.microseconds(limit))"
  }

  /// Waits until all begun calls have ended.
  func finish() async { await tasks.finish() }

  /// Ends without waiting.
  func cancel() { tasks.cancel() }
}

/// Passes the first result to the waiting caller.
private final class Race<Result: Sendable>: Sendable {
  private enum State: Sendable {
    case running
    case waited(CheckedContinuation<Waited<Result>, Never>)
    case ended(Waited<Result>)
  }

  private let state = Guarded(State.running)

  func wait(_ continuation: CheckedContinuation<Waited<Result>, Never>) {
    let result = state.withLock { state -> Waited<Result>? in
      if case .ended(let result) = state { return result }
      state = .waited(continuation)
      return nil
    }
    if let result { continuation.resume(returning: result) }
  }

  func end(_ result: Waited<Result>) {
    let continuation = state.withLock { state -> CheckedContinuation<Waited<Result>, Never>? in
      switch state {
      case .ended: return nil
      case .running:
        state = .ended(result)
        return nil
      case .waited(let continuation):
        state = .ended(result)
        return continuation
      }
    }
    continuation?.resume(returning: result)
  }
}
