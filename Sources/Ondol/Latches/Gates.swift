// How a transaction that keeps losing commits finally commits. Transactions are optimistic: they
// read, and assume that no other commit changes what they have read before they commit. One that
// has lost several times closes the gates of the root collections it uses. Writers wait at a closed
// gate, other transactions that have lost queue behind it, and it commits undisturbed.
//
// The transaction determines how long writers wait: twice its longest attempt so far, so that one
// that queries a server in its body also succeeds. A gate never holds a writer for ever, because
// the body is the app's code, and may itself wait for that write. Writers and queued transactions
// wait at most five seconds, and a transaction whose gates were closed for half a minute in total
// fails. Gates surround the write path, before its latches.

internal import OndolEngine
internal import Synchronization

/// The closed gates.
final class Gates: Sendable {
  /// The most microseconds that a caller waits at a gate.
  static let longestWait: Int64 = 5_000_000
  /// The least microseconds that writers wait.
  static let shortestWait: Int64 = 100_000
  /// The most microseconds for which one transaction may keep gates closed in total.
  static let longestClosure: Int64 = 30_000_000

  private struct State: Sendable {
    /// How long writers wait, in microseconds.
    var waits: [ExactText: Int64] = [:]
    var isClosed = false
  }

  private let state = Guarded(State())
  /// The number of closed gates.
  private let count = Atomic(0)

  /// Whether any gate is closed; one load.
  var isAny: Bool { count.load(ordering: .relaxed) > 0 }

  /// How many microseconds a writer to these root collections must wait in total; nil when none of
  /// their gates is closed.
  func wait(of roots: [ExactText]) -> Int64? {
    state.withLock { state in roots.compactMap { state.waits[$0] }.max() }
  }

  func close(_ root: ExactText, wait: Int64) {
    state.withLock { state in
      guard !state.isClosed, state.waits.updateValue(wait, forKey: root) == nil else { return }
      count.add(1, ordering: .relaxed)
    }
  }

  func open(_ root: ExactText) {
    state.withLock { state in
      guard state.waits.removeValue(forKey: root) != nil else { return }
      count.subtract(1, ordering: .relaxed)
    }
  }

  /// Opens all gates permanently.
  func openAll() {
    state.withLock { state in
      state.isClosed = true
      count.subtract(state.waits.count, ordering: .relaxed)
      state.waits = [:]
    }
  }
}

/// The gates that a transaction keeps closed.
struct ClosedGates {
  fileprivate var keys: [(root: ExactText, latch: LatchKey)] = []

  /// Whether there are any.
  var isAny: Bool { !keys.isEmpty }
}

extension Database {
  /// The name of the gate that stops writers to all root collections. No collection can have it.
  static let everyGate = ExactText("/")
  private static let firstPause: Int64 = 100
  private static let longestPause: Int64 = 10_000

  /// Waits, for a limited time, while the gate of a written root collection is closed.
  func passGates(of roots: @autoclosure () -> Set<ExactText>) async {
    guard gates.isAny else { return }
    let roots = roots() + [Self.everyGate]
    await restInSteps { waited in gates.wait(of: roots).map { waited < $0 } ?? false }
  }

  /// Waits in steps of increasing length, as long as `goesOn` returns true; it receives the
  /// microseconds so far. Ends early when the task is cancelled.
  private func restInSteps(while goesOn: (Int64) -> Bool) async {
    var waited: Int64 = 0
    var pause = Self.firstPause
    while goesOn(waited), !Task.isCancelled {
      await rest(pause)
      waited += pause
      pause = min(2 * pause, Self.longestPause)
    }
  }

  /// Closes the gates of `roots`, each once no other transaction keeps it closed or the time for
  /// waiting is over; gates that are still closed by others then are left out. Always in the same
  /// order, so that no two transactions wait for each other.
  ///
  /// - Parameter wait: how many microseconds writers wait.
  func closeGates(
    _ roots: Set<ExactText>, wait: Int64
  ) async throws(DatabaseError) -> ClosedGates {
    var closed = ClosedGates()
    // In another body, others may wait for what this task holds, so it must not wait.
    let mayWait = RunningBody.innermost == nil
    do throws(DatabaseError) {
      for root in roots.sorted(by: { ValueOrder.compare($0.text, $1.text) < 0 }) {
        let key = LatchKey.gate(root)
        guard try await acquire(key, mayWait: mayWait) else { continue }
        closed.keys.append((root, key))
        gates.close(root, wait: wait)
      }
    } catch {
      openGates(closed)
      throw error
    }
    return closed
  }

  /// Acquires a gate's latch, with the limits for waiting at a gate; returns whether it succeeded.
  private func acquire(_ key: LatchKey, mayWait: Bool) async throws(DatabaseError) -> Bool {
    if latches.acquireAtOnce([key]) != nil { return true }
    guard mayWait else { return false }
    let isAcquired = await withTaskGroup(of: Bool.self) { group in
      group.addTask { [latches] in
        do throws(DatabaseError) {
          try await latches.acquire(key)
          return true
        } catch {
          return false
        }
      }
      group.addTask {
        await self.restInSteps { $0 < Gates.longestWait }
        return false
      }
      var isAcquired = await group.next() ?? false
      group.cancelAll()
      // The latch may have come at the last moment.
      for await isLate in group { isAcquired = isAcquired || isLate }
      return isAcquired
    }
    do throws(DatabaseError) {
      try refuseWhenCancelled("nothing was written")
    } catch {
      if isAcquired { latches.release(key) }
      throw error
    }
    return isAcquired
  }

  /// Opens closed gates.
  func openGates(_ closed: ClosedGates) {
    for (root, latch) in closed.keys {
      gates.open(root)
      latches.release(latch)
    }
  }
}
