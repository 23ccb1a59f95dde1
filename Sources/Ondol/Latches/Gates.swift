// How a transaction that others keep overtaking comes to its end. Transactions are optimistic: they
// read, and hope that nobody writes what they have read before they commit. One that has lost some
// races closes the gates of the root collections it works on. Writers that come to a closed gate
// step aside, other transactions that have lost queue behind it, and it commits in peace.
//
// How long writers step aside is measured by the transaction: twice its longest attempt so far, so
// that one that asks a server in its body wins, too. Nobody waits at a gate for ever, because the
// body is the app's code, and may itself wait for a write that stands there: five seconds are the
// most, for a writer and for a transaction that queues, and one whose gates were closed for half a
// minute in all gives up. Around the write path, before its latches.

internal import OndolEngine
internal import Synchronization

/// The gates that are closed.
final class Gates: Sendable {
  /// Microseconds that anybody waits at a gate at most.
  static let longestWait: Int64 = 5_000_000
  /// Microseconds for which writers wait at least.
  static let shortestWait: Int64 = 100_000
  /// Microseconds for which one transaction may keep gates closed in all.
  static let longestClosure: Int64 = 30_000_000

  private struct State: Sendable {
    /// For how long writers wait, in microseconds.
    var waits: [ExactText: Int64] = [:]
    var isClosed = false
  }

  private let state = Guarded(State())
  /// Gates that are closed.
  private let count = Atomic(0)

  /// Whether any gate is closed; one load.
  var isAny: Bool { count.load(ordering: .relaxed) > 0 }

  /// For how many microseconds a writer to these root collections has to wait in all; nil when none
  /// of their gates is closed.
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

  /// Opens all gates for good.
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
  /// What the gate is called that stops writers to all root collections. None has such a name.
  static let everyGate = ExactText("/")
  private static let firstPause: Int64 = 100
  private static let longestPause: Int64 = 10_000

  /// Waits while the gate of a root collection written to is closed, but not for long.
  func passGates(of roots: @autoclosure () -> Set<ExactText>) async {
    guard gates.isAny else { return }
    let roots = roots() + [Self.everyGate]
    await restInSteps { waited in gates.wait(of: roots).map { waited < $0 } ?? false }
  }

  /// Rests in ever longer steps, as long as there is a reason to: `goesOn` is told for how many
  /// microseconds that was so far. Ends early when the task is cancelled.
  private func restInSteps(while goesOn: (Int64) -> Bool) async {
    var waited: Int64 = 0
    var pause = Self.firstPause
    while goesOn(waited), !Task.isCancelled {
      await rest(pause)
      waited += pause
      pause = min(2 * pause, Self.longestPause)
    }
  }

  /// Closes the gates of `roots`, each once nobody else keeps it closed or the time for waiting is
  /// over; those that others still keep closed are left out. Always in the same order, so that no
  /// two wait for each other.
  ///
  /// - Parameter wait: microseconds that writers are to step aside.
  func closeGates(
    _ roots: Set<ExactText>, wait: Int64
  ) async throws(DatabaseError) -> ClosedGates {
    var closed = ClosedGates()
    // In the body of something else others may wait for what this task holds, so it does not wait.
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

  /// Takes a gate's latch, waiting for it no longer than for anything at a gate; answers whether it
  /// was to be had.
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

  /// Opens gates that were closed.
  func openGates(_ closed: ClosedGates) {
    for (root, latch) in closed.keys {
      gates.open(root)
      latches.release(latch)
    }
  }
}
