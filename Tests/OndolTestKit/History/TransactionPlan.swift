// The transactions of a history test: short random programs on few keys, so that they conflict, and
// the recorder of their results.

internal import OndolEngine

/// One step of a transaction.
package enum TransactionStep: Sendable, Hashable {
  /// Reads one key's list.
  case read(String)
  /// Reads the lists of all keys with a query.
  case scan
  /// Appends the transaction's number to a key's list.
  case append(String)
}

/// The steps of one transaction.
package struct TransactionPlan: Sendable, Hashable {
  package var steps: [TransactionStep]

  /// The keys that it appends to.
  var appendedKeys: [String] {
    steps.compactMap { if case .append(let key) = $0 { key } else { nil } }
  }

  /// A random program of one to five steps. No key is appended to twice.
  package init(keys: [String], using random: inout SeededRandom) {
    steps = []
    var appended: Set<String> = []
    for _ in 0...random.below(5) {
      let key = keys[random.below(keys.count)]
      switch random.below(8) {
      case 0: steps.append(.scan)
      case 1..<5: steps.append(.read(key))
      default: if appended.insert(key).inserted { steps.append(.append(key)) }
      }
    }
  }
}

/// Records committed transactions from many tasks.
package final class TransactionRecorder: Sendable {
  private struct State {
    var clock = 0
    var records: [TransactionRecord] = []
    var count = 0
  }

  private let state = Guarded(State())

  package init() {}

  /// The next moment of the common clock.
  package func tick() -> Int {
    state.withLock { state in
      state.clock += 1
      return state.clock
    }
  }

  package func add(_ record: TransactionRecord) {
    state.withLock { $0.records.append(record) }
  }

  /// Records an increment beside the lists.
  func countUp() {
    state.withLock { $0.count += 1 }
  }

  var countedUp: Int { state.withLock { $0.count } }

  package func history(finalLists: [String: [Int]]) -> TransactionHistory {
    TransactionHistory(transactions: state.withLock { $0.records }, finalLists: finalLists)
  }
}
