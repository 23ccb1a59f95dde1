// Reads that wait for files: a database's access to the threads for them. Databases that share
// their threads also share the queue of reads; see `ReadingLine`.
//
// A read whose task is cancelled ends at its next step, or before it begins.

internal import Synchronization

/// Runs a database's blocking reads.
package final class ReadingThreads: Sendable {
  /// The number of threads of a database that shares none, and of concurrent long reads there.
  package static let count = 8
  package static let mostLong = 6

  private let line: ReadingLine
  private let database: DatabaseTurn
  /// Whether the queue is not shared.
  private let isAlone: Bool
  /// The time limit for reads that wait for a server. It is set before the first read.
  let patience = Guarded<Patience?>(nil)

  /// - Parameter mayWaitForever: whether reads wait for an external party that may never answer,
  ///   such as a server. Then they have their own threads, because other databases' reads would
  ///   wait with them.
  package init(_ threads: any ThreadSource, mayWaitForever: Bool = false) {
    let shared = mayWaitForever ? nil : threads.readingLine
    line = shared ?? ReadingLine(threads)
    isAlone = shared == nil
    database = DatabaseTurn.next()
  }

  /// As below, for a read that may wait for a server. A caller that waits longer than the time
  /// limit, or is cancelled, receives `failure`.
  package func perform<R: Sendable, E: Error>(
    failingWith failure: @escaping @Sendable (EngineError) -> E,
    _ body: @escaping @Sendable (ReadingTurn) throws(E) -> R
  ) async throws(E) -> R {
    guard let patience = patience.withLock({ $0 }) else { return try await perform(body) }
    let waited = await patience.wait(cancelling: true) { [self] () async -> Result<R, E> in
      do throws(E) {
        return .success(try await perform(body))
      } catch {
        return .failure(error)
      }
    }
    switch waited {
    case .done(let result): return try result.get()
    case .late: throw failure(.late(reason: patience.words(for: "the server")))
    case .cancelled: throw failure(.cancelled)
    }
  }

  /// Runs `body` on one of the threads and returns its result. The read may be stopped at a step of
  /// its turn and started again. Cancelling the task also cancels the turn; `body` decides what
  /// that means.
  package func perform<R: Sendable, E: Error>(
    _ body: @escaping @Sendable (ReadingTurn) throws(E) -> R
  ) async throws(E) -> R {
    let turn = ReadingTurn(on: line, of: database)
    let result: Result<R, E> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        line.add(
          ReadingLine.Job(turn: turn) { [self] in
            let result: Result<R, E>
            do throws(E) {
              result = .success(try body(turn))
            } catch {
              result = .failure(error)
            }
            if turn.takeGivenUp() { return false }
            showHandover()
            continuation.resume(returning: result)
            return true
          })
      }
    } onCancel: {
      turn.cancel()
    }
    showHandover()
    return try result.get()
  }

  /// Waits until all of the database's reads have ended. Ends the threads if they are its own.
  package func stop() async {
    await line.waitForReads(of: database)
    if isAlone { await line.endThreads() }
  }

  /// Shows ThreadSanitizer that everything before the resumption of a continuation happens before
  /// what its task does. ThreadSanitizer misses this if the continuation is resumed before its task
  /// has suspended.
  private func showHandover() {
    #if THREAD_SANITIZER
      patience.withLock { _ in }
    #endif
  }
}

/// One read's use of the threads.
package final class ReadingTurn: Sendable {
  /// The number of steps after which a read counts as long.
  private static let shortAllowance = 16

  private let line: ReadingLine
  let database: DatabaseTurn
  private let isCancelled = Atomic(false)
  private let isGivenUp = Atomic(false)
  private let isLongRead = Atomic(false)
  private let allowance = Atomic(ReadingTurn.shortAllowance)
  private let steps = Atomic(0)

  fileprivate init(on line: ReadingLine, of database: DatabaseTurn) {
    self.line = line
    self.database = database
  }

  /// A read must call it once every few dozen rows.
  ///
  /// - Throws: `.wouldBlock` if other reads come first: the read ends and is started again.
  ///   `.cancelled` if its task was cancelled and it `canBeCancelled`.
  package func step(canBeCancelled: Bool) throws(EngineError) {
    if canBeCancelled, isCancelled.load(ordering: .relaxed) { throw .cancelled }
    let taken = steps.load(ordering: .relaxed) + 1
    steps.store(taken, ordering: .relaxed)
    guard taken >= allowance.load(ordering: .relaxed) else { return }
    steps.store(0, ordering: .relaxed)
    if line.mayGoOn(self) { return }
    isGivenUp.store(true, ordering: .relaxed)
    throw .wouldBlock
  }

  fileprivate func cancel() { isCancelled.store(true, ordering: .relaxed) }

  /// Whether it was stopped since the last call, regardless of how the read reacted.
  fileprivate func takeGivenUp() -> Bool {
    isGivenUp.exchange(false, ordering: .relaxed)
  }

  var isLong: Bool { isLongRead.load(ordering: .relaxed) }

  func becomeLong() { isLongRead.store(true, ordering: .relaxed) }

  /// Returns to the initial state, with twice the allowance.
  func beginAgain() {
    isLongRead.store(false, ordering: .relaxed)
    steps.store(0, ordering: .relaxed)
    let (doubled, overflows) = allowance.load(ordering: .relaxed).addingReportingOverflow(
      allowance.load(ordering: .relaxed))
    allowance.store(overflows ? .max : doubled, ordering: .relaxed)
  }
}
