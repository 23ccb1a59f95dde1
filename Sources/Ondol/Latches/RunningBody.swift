// The app's code that a call of the database runs while it holds something: the body of a
// transaction, and code that derives one content from another. Such code may call the database
// again, and two things must not happen. A write that was meant for the transaction must not bypass
// it: it would be in a commit of its own, make the transaction run again, and happen once for each
// attempt. And no caller may wait for what it holds itself, or for a caller that waits for it.
//
// Both are detected by the bodies that a task is in, innermost first, which child tasks inherit. A
// body that has ended no longer counts, so a task that outlives it is free. Around the write path.

internal import OndolEngine
internal import Synchronization

/// A body that is running, or has run.
final class RunningBody: Sendable {
  /// The call whose body it is.
  enum Work: Sendable {
    case transaction(of: ObjectIdentifier)
    case derivation
  }

  /// What code in the body waits for.
  private struct Wait: Sendable {
    let latches: Latches
    let key: LatchKey
  }

  /// The body that the current task is in.
  @TaskLocal static var innermost: RunningBody?

  let work: Work
  private let outer: RunningBody?
  private let isOver = Atomic(false)
  private let waits = Guarded<[Wait]>([])

  /// A body that is about to run in the current task.
  init(_ work: Work) {
    self.work = work
    outer = Self.innermost
  }

  /// Records that it has ended.
  func end() {
    isOver.store(true, ordering: .releasing)
  }

  /// The bodies that the current task is in, innermost first.
  static var all: [RunningBody] {
    var bodies: [RunningBody] = []
    var next = innermost
    while let body = next {
      if !body.isOver.load(ordering: .acquiring) { bodies.append(body) }
      next = body.outer
    }
    return bodies
  }

  // MARK: - Waiting

  /// Runs `body`, which waits for a latch, on behalf of these bodies. Returns nil, and runs
  /// nothing, when the wait could not end: the latch's holder waits for one of these, directly or
  /// through others. When several would close a cycle at the same time, at least one of them gets
  /// nil.
  static func wait<R>(
    for key: LatchKey, of latches: Latches, in bodies: [RunningBody],
    _ body: () async throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R? {
    // Recorded first and checked then, so that of two callers that close a cycle at least one sees
    // the other.
    for one in bodies { one.waits.withLock { $0.append(Wait(latches: latches, key: key)) } }
    defer {
      for one in bodies {
        one.waits.withLock { waits in
          let index = waits.firstIndex { $0.latches === latches && $0.key == key }
          if let index { waits.remove(at: index) }
        }
      }
    }
    if let holder = latches.holder(of: key), holder.isHeldUp(by: bodies) { return nil }
    return try await body()
  }

  /// Whether this is one of the bodies, or waits for one of them.
  private func isHeldUp(by bodies: [RunningBody]) -> Bool {
    var seen: Set<ObjectIdentifier> = []
    var open = [self]
    while let body = open.popLast() {
      if bodies.contains(where: { $0 === body }) { return true }
      guard seen.insert(ObjectIdentifier(body)).inserted else { continue }
      for wait in body.waits.withLock({ $0 }) {
        if let holder = wait.latches.holder(of: wait.key) { open.append(holder) }
      }
    }
    return false
  }
}

// MARK: - Transactions

/// The number of running transaction bodies of a database. It is usually zero, and then other calls
/// need not look at the task's bodies.
final class RunningTransactions: Sendable {
  private let count = Atomic(0)

  var isNone: Bool { count.load(ordering: .relaxed) == 0 }

  func enter() { count.add(1, ordering: .relaxed) }

  func leave() { count.subtract(1, ordering: .relaxed) }
}

extension Database {
  /// Runs the body of a transaction, so that calls that bypass the transaction are detected.
  func runBody<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    let running = RunningBody(.transaction(of: ObjectIdentifier(self)))
    runningTransactions.enter()
    defer {
      running.end()
      runningTransactions.leave()
    }
    return try await RunningBody.$innermost.withValue(running, operation: body)
  }

  /// Whether the current task is in the body of a transaction of this database.
  private var isInTransaction: Bool {
    if runningTransactions.isNone { return false }
    return RunningBody.all.contains { body in
      guard case .transaction(let database) = body.work else { return false }
      return database == ObjectIdentifier(self)
    }
  }

  /// Refuses a transaction within the body of another.
  func refuseTransactionInTransaction() throws(DatabaseError) {
    guard isInTransaction else { return }
    throw DatabaseError(
      .failedPrecondition,
      "a transaction was begun in the body of another one of the same database, and the two would"
        + " wait for each other",
      suggestion: "hand the Transaction on and use it, or run one after the other")
  }

  /// Refuses, in the body of a transaction, a call that cannot be part of one.
  ///
  /// - Parameter call: the name of the call.
  func refuseInTransaction(
    _ call: String, _ path: @autoclosure () -> String? = nil
  ) throws(DatabaseError) {
    try refuseInTransaction(
      "\(call) was called in the body of a transaction, which cannot have it as a part: it would be"
        + " done at once, and again with every attempt, or wait for the transaction",
      suggesting: "call it before the transaction or after it", path)
  }

  /// Refuses a write that bypasses the transaction in whose body it is made.
  func refuseWriteInTransaction(
    _ path: @autoclosure () -> String? = nil
  ) throws(DatabaseError) {
    try refuseInTransaction(
      "a write in the body of a transaction was made through the database, and would be done at"
        + " once, and again with every attempt",
      suggesting: "call the same of the Transaction, or make the write after it or in a"
        + " Task.detached when it is not to be part of it", path)
  }

  /// Refuses a read that bypasses the transaction in whose body it is made.
  func refuseReadInTransaction(
    _ path: @autoclosure () -> String? = nil
  ) throws(DatabaseError) {
    try refuseInTransaction(
      "a read in the body of a transaction was made through the database, so that the commit would"
        + " not notice when others change what it saw",
      suggesting: "call the same of the Transaction, or read from database.snapshot() what need not"
        + " be the newest", path)
  }

  private func refuseInTransaction(
    _ problem: @autoclosure () -> String, suggesting suggestion: @autoclosure () -> String,
    _ path: () -> String?
  ) throws(DatabaseError) {
    guard isInTransaction else { return }
    throw DatabaseError(
      .failedPrecondition, problem(), suggestion: suggestion(), path: path())
  }
}
