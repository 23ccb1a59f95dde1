// Were these transactions serializable? Every transaction appends its number to the lists of some
// keys and reads the lists of others. The final lists show who wrote after whom, and each list that
// was read shows after whom and before whom it was read. So every dependency is visible, and the
// history is serializable exactly when these dependencies have no cycle. With the times at which
// transactions began and ended it is strictly serializable if those add no cycle either.
//
// Lost updates, dirty and unrepeatable reads, write skew and, because a scan reads every possible
// key, phantoms are all cycles, or lists that do not fit.

/// The reads and writes of one committed transaction.
package struct TransactionRecord: Sendable, Hashable, Codable {
  /// A unique number, which it appends.
  package var number: Int
  /// The lists that it read before it appended to them. An absent key is an empty list.
  package var reads: [String: [Int]]
  /// The keys it appended to.
  package var appends: Set<String>
  /// Times of a common clock, around the call.
  package var began: Int
  package var ended: Int

  package init(
    number: Int, reads: [String: [Int]] = [:], appends: Set<String> = [], began: Int = 0,
    ended: Int = .max
  ) {
    self.number = number
    self.reads = reads
    self.appends = appends
    self.began = began
    self.ended = ended
  }
}

/// Committed transactions, and the final lists.
package struct TransactionHistory: Sendable {
  package var transactions: [TransactionRecord]
  package var finalLists: [String: [Int]]

  package init(transactions: [TransactionRecord], finalLists: [String: [Int]]) {
    self.transactions = transactions
    self.finalLists = finalLists
  }

  /// Returns why the history is not strictly serializable; nil if it is.
  package func violation() -> String? {
    missingAppend() ?? impossibleRead() ?? cycle()
  }

  // MARK: - Lists

  /// An append that is not in its list once, or in a list to which it does not belong.
  private func missingAppend() -> String? {
    for transaction in transactions {
      for key in transaction.appends.sorted() {
        let count = finalLists[key, default: []].count { $0 == transaction.number }
        if count != 1 { return "transaction \(transaction.number) is \(count) times in \(key)" }
      }
    }
    let known = Dictionary(uniqueKeysWithValues: transactions.map { ($0.number, $0) })
    for (key, list) in finalLists {
      for number in list where known[number]?.appends.contains(key) != true {
        return "\(number) in \(key) is of no transaction that committed"
      }
    }
    return nil
  }

  /// A read of a list that never existed.
  private func impossibleRead() -> String? {
    for transaction in transactions {
      for (key, list) in transaction.reads
      where !finalLists[key, default: []].starts(with: list) {
        return "transaction \(transaction.number) read \(list) from \(key), which became "
          + "\(finalLists[key, default: []])"
      }
    }
    return nil
  }

  // MARK: - Dependencies

  private struct Edge {
    var to: Int
    var reason: String
  }

  /// For every transaction the ones that must come after it.
  private func edges() -> [Int: [Edge]] {
    var edges: [Int: [Edge]] = [:]
    func add(_ from: Int, _ to: Int, _ reason: @autoclosure () -> String) {
      if from != to { edges[from, default: []].append(Edge(to: to, reason: reason())) }
    }
    for (key, list) in finalLists {
      for (earlier, later) in zip(list, list.dropFirst()) { add(earlier, later, "wrote \(key)") }
    }
    for transaction in transactions {
      for (key, list) in transaction.reads {
        if let last = list.last { add(last, transaction.number, "was read in \(key)") }
        let final = finalLists[key, default: []]
        if list.count < final.count {
          add(transaction.number, final[list.count], "read \(key) before")
        }
      }
    }
    for earlier in transactions {
      for later in transactions where earlier.ended < later.began {
        add(earlier.number, later.number, "ended before the start of")
      }
    }
    return edges
  }

  /// A cycle of dependencies, found by depth-first search.
  private func cycle() -> String? {
    let edges = edges()
    var isDone: Set<Int> = []
    for transaction in transactions.map(\.number).sorted() where !isDone.contains(transaction) {
      var path: [(number: Int, next: Int)] = [(transaction, 0)]
      var onPath: Set<Int> = [transaction]
      while let (number, next) = path.last {
        let outgoing = edges[number, default: []]
        guard next < outgoing.count else {
          isDone.insert(number)
          onPath.remove(number)
          path.removeLast()
          continue
        }
        path[path.count - 1].next += 1
        let edge = outgoing[next]
        if onPath.contains(edge.to) {
          let start = path.firstIndex { $0.number == edge.to } ?? 0
          return describe(path[start...].map { (edges[$0.number, default: []], $0) })
        }
        if !isDone.contains(edge.to) {
          path.append((edge.to, 0))
          onPath.insert(edge.to)
        }
      }
    }
    return nil
  }

  private func describe(_ steps: [(edges: [Edge], step: (number: Int, next: Int))]) -> String {
    let parts = steps.map { edges, step in
      let edge = edges[step.next - 1]
      return "\(step.number) \(edge.reason) \(edge.to)"
    }
    return "a cycle: " + parts.joined(separator: ", ")
  }
}
