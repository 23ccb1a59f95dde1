// How a transaction that others keep overtaking comes to its end. Transactions are optimistic: they
// read, and hope that nobody writes what they have read before they commit. One that has lost some
// races closes the gates of the root collections it works on. Writers that come to a closed gate
// step aside for a while, other transactions that have lost queue behind it, and it commits in
// peace.
//
// Nobody waits at a gate for ever: the body of the transaction is the app's code, and may itself
// wait for a write that stands at the gate. Around the write path, before its latches.

internal import OndolEngine
internal import Synchronization

extension Database {
  /// Microseconds that a writer stays at a closed gate at most.
  private static let longestWait: Int64 = 100_000
  private static let firstPause: Int64 = 100

  /// Waits while the gate of a root collection written to is closed, but not for long.
  func passGates(of names: @autoclosure () -> Set<String>) async {
    guard gateCount.load(ordering: .relaxed) > 0 else { return }
    let roots = names().map { ExactText($0) }
    var waited: Int64 = 0
    var pause = Self.firstPause
    while waited < Self.longestWait, roots.contains(where: { latches.isHeld(.gate($0)) }) {
      await rest(pause)
      waited += pause
      pause *= 2
    }
  }

  /// Closes the gates of `roots`, each once nobody else holds it shut. Always in the same order, so
  /// that no two wait for each other.
  func closeGates(_ roots: Set<ExactText>) async -> [LatchKey] {
    let sorted = roots.sorted { ValueOrder.compare($0.text, $1.text) < 0 }
    let keys = sorted.map { LatchKey.gate($0) }
    for key in keys {
      gateCount.add(1, ordering: .relaxed)
      await latches.acquire(key)
    }
    return keys
  }

  /// Opens gates that were closed.
  func openGates(_ keys: [LatchKey]) {
    for key in keys {
      latches.release(key)
      gateCount.subtract(1, ordering: .relaxed)
    }
  }
}
