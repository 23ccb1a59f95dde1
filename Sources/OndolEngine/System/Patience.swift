// How long somebody waits for a server. A call goes on to its end whatever happens: a commit that
// is on its way cannot be called back, and what follows from it has to be done. Who waits for
// it goes when the time is over, or when its task is cancelled.
//
// Time is counted in ticks that this process has lived through, not by a clock: a process that was
// stopped for a minute has not waited for a minute, and gives the server its time when it goes on.

internal import Synchronization

/// What came of waiting.
package enum Waited<Result: Sendable>: Sendable {
  case done(Result)
  /// The time was over first.
  case late
  /// The task was cancelled first.
  case cancelled
}

/// When somebody has waited long enough.
package struct PatienceEnd: Sendable {
  fileprivate var tick: Int
}

/// Runs calls beside those who wait for them.
package final class Patience: Sendable {
  private struct State: Sendable {
    /// Ticks so far; none while nobody waits.
    var tick = 0
    var last: UInt64 = 0
    var waiting: [UInt64: Waiter] = [:]
    var isCounting = false
  }

  private struct Waiter: Sendable {
    var end: Int
    var leave: @Sendable () -> Void
  }

  /// For how long somebody waits, in microseconds.
  package let limit: Int64
  private let environment: Environment
  private let tasks: BackgroundTasks
  private let state = Guarded(State())

  /// Ticks in the time of one call, which ends with the last one or up to one sooner.
  private static let ticks = 8

  init(limit: Int64, environment: Environment) {
    self.limit = limit
    self.environment = environment
    tasks = BackgroundTasks(executor: environment.executor)
  }

  /// The end for somebody who begins to wait now.
  package func begin() -> PatienceEnd { PatienceEnd(tick: state.withLock { $0.tick } + Self.ticks) }

  /// Runs `body` to its end, and waits for it.
  ///
  /// - Parameters:
  ///   - end: until when; for the whole time when nil.
  ///   - endsWithCaller: whether `body` is cancelled once nobody waits for it.
  package func wait<R: Sendable>(
    until end: PatienceEnd? = nil, cancelling endsWithCaller: Bool = false,
    for body: @escaping @Sendable () async -> R
  ) async -> Waited<R> {
    let race = Race<R>()
    guard let task = tasks.start({ race.end(.done(await body())) }) else {
      // All is over, and nothing is waited for any more.
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

  /// Counts ticks for as long as somebody waits.
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

  /// What the error says of a server.
  package func words(for store: String) -> String {
    "\(store) has not answered within \(Duration.microseconds(limit))"
  }

  /// Waits until all that was begun has ended.
  func finish() async { await tasks.finish() }

  /// Waits for nothing.
  func cancel() { tasks.cancel() }
}

/// Gives the one who waits what comes first.
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
