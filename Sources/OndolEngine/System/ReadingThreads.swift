// Reads that wait for files: a database's door to the threads for them. Where databases share their
// threads, so they share the line in which reads wait, see `ReadingLine`.
//
// A read whose task is cancelled ends at its next step, or before it has begun.

internal import Synchronization

/// Runs a database's reads that block.
package final class ReadingThreads: Sendable {
  /// Threads of a database that shares with nobody, and long reads that run at once there.
  package static let count = 8
  package static let mostLong = 6

  private let line: ReadingLine
  private let database: DatabaseTurn
  /// Whether nobody else uses the line.
  private let isAlone: Bool
  /// How long reads that wait for a server are waited for; set before the first read.
  let patience = Guarded<Patience?>(nil)

  /// - Parameter mayWaitForever: whether reads wait for somebody who need never answer, such as a
  ///   server: they have threads of their own, because others would wait with them.
  package init(_ threads: any ThreadSource, mayWaitForever: Bool = false) {
    let shared = mayWaitForever ? nil : threads.readingLine
    line = shared ?? ReadingLine(threads)
    isAlone = shared == nil
    database = DatabaseTurn.next()
  }

  /// As below, for a read that may wait for a server: whoever waits for it longer than calls are
  /// waited for, or is cancelled, gets `failure`.
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

  /// Runs `body` on one of the threads and gives back what it makes. It may be given up at a step
  /// of its turn and begun again. With the task, the turn is cancelled; what that comes to is up to
  /// `body`.
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

  /// Waits until all of the database's reads are done; ends the threads where they are its own.
  package func stop() async {
    await line.waitForReads(of: database)
    if isAlone { await line.endThreads() }
  }

  /// Shows ThreadSanitizer that what was made before a continuation was resumed comes before what
  /// its task does: it does not see that of a continuation resumed before its task had suspended.
  private func showHandover() {
    #if THREAD_SANITIZER
      patience.withLock { _ in }
    #endif
  }
}

/// One read's use of the threads.
package final class ReadingTurn: Sendable {
  /// Steps after which a read is a long one.
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

  /// To be called by the read every some dozen rows.
  ///
  /// - Throws: `.wouldBlock` when others come first: the read ends, and is begun again.
  ///   `.cancelled` when its task was cancelled and it `canBeCancelled`.
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

  /// Whether it was given up since the last call, whatever the read made of that.
  fileprivate func takeGivenUp() -> Bool {
    isGivenUp.exchange(false, ordering: .relaxed)
  }

  var isLong: Bool { isLongRead.load(ordering: .relaxed) }

  func becomeLong() { isLongRead.store(true, ordering: .relaxed) }

  /// Back to where it was before it began, with twice the allowance.
  func beginAgain() {
    isLongRead.store(false, ordering: .relaxed)
    steps.store(0, ordering: .relaxed)
    let (doubled, overflows) = allowance.load(ordering: .relaxed).addingReportingOverflow(
      allowance.load(ordering: .relaxed))
    allowance.store(overflows ? .max : doubled, ordering: .relaxed)
  }
}
