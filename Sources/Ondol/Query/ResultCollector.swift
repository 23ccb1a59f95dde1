// Collects matches. Documents are kept as their keys and sort keys, never many more than the limit,
// and only those in the result are decoded.

/// A document in a result.
struct Ranked: Sendable {
  /// The executor's source that it comes from.
  var source: Int
  var key: [UInt8]
  /// Empty when the documents came in order.
  var sortKeys: [Value?]
}

/// Sorts documents as they come, and keeps the first.
struct ResultCollector {
  private let orders: [SortOrder]
  private let limit: Int
  private var documents: [Ranked] = []
  /// The sort keys of the last document that can be in the result, once there are enough.
  private var worst: [Value?]?
  /// Whether a document was left out because enough others come before it.
  private(set) var hasLeftOut = false

  init(_ orders: [SortOrder], limit: Int) {
    self.orders = orders
    self.limit = limit
  }

  /// Adds a document, unless enough others come before it.
  mutating func add(_ document: @autoclosure () -> Ranked, sortKeys: [Value?]) {
    if let worst, !orders.areInOrder(sortKeys, worst) {
      // Perhaps this is the last document again, found by another way.
      if orders.compare(sortKeys, worst) != 0 { hasLeftOut = true }
      return
    }
    documents.append(document())
    // Sorting from time to time costs O(log n) a document, and memory for twice the limit.
    if limit < .max / 2, documents.count >= 2 * max(limit, 512) { keepBest() }
  }

  /// The documents in order, each once.
  mutating func finish() -> [Ranked] {
    keepBest()
    return documents
  }

  private mutating func keepBest() {
    documents.sort { orders.areInOrder($0.sortKeys, $1.sortKeys) }
    // The name is one of the orders, so equal keys mean the same document, found twice.
    var kept = 0
    for index in documents.indices {
      if kept > 0, orders.compare(documents[kept - 1].sortKeys, documents[index].sortKeys) == 0 {
        continue
      }
      guard kept < limit else {
        hasLeftOut = true
        break
      }
      if kept != index { documents.swapAt(kept, index) }
      kept += 1
    }
    documents.removeLast(documents.count - kept)
    if kept == limit { worst = documents.last?.sortKeys }
  }
}

/// Merges several ways that are each in order.
struct MergedWalk {
  private struct Head {
    var way: Int
    var document: Ranked
  }

  private let orders: [SortOrder]
  private var heads: [Head] = []
  private let next: (Int) throws(DatabaseError) -> Ranked?

  /// - Parameter next: the next match of a way, with its sort keys.
  init(
    _ orders: [SortOrder], ways: Int, next: @escaping (Int) throws(DatabaseError) -> Ranked?
  ) throws(DatabaseError) {
    self.orders = orders
    self.next = next
    for way in 0..<ways {
      if let document = try next(way) { heads.append(Head(way: way, document: document)) }
    }
  }

  /// Whether no way leads to another document.
  var isAtEnd: Bool { heads.isEmpty }

  /// The next document of all ways; nil at the end.
  mutating func nextDocument() throws(DatabaseError) -> Ranked? {
    guard var least = heads.first?.document else { return nil }
    for head in heads.dropFirst() where orders.areInOrder(head.document.sortKeys, least.sortKeys) {
      least = head.document
    }
    // Advances every way that is at this document.
    var index = 0
    while index < heads.count {
      guard orders.compare(heads[index].document.sortKeys, least.sortKeys) == 0 else {
        index += 1
        continue
      }
      if let document = try next(heads[index].way) {
        heads[index].document = document
        index += 1
      } else {
        heads.remove(at: index)
      }
    }
    return least
  }
}
