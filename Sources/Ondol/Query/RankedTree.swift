// A result kept in order: what listeners to a query have seen, and what has changed since.
// ResultView uses it.

/// A document in a result, with its sort keys.
final class RankedDocument: Sendable {
  let keys: [Value?]
  let document: DocumentSnapshot

  init(keys: [Value?], document: DocumentSnapshot) {
    self.keys = keys
    self.document = document
  }
}

/// By the orders of a query.
struct RankedOrder: EntryOrder {
  let orders: [SortOrder]

  func key(of entry: RankedDocument) -> [Value?] { entry.keys }

  func compare(_ left: [Value?], _ right: [Value?]) -> Int { orders.compare(left, right) }
}

/// Documents in the order of their keys, which are unique.
typealias RankedTree = OrderedTree<RankedOrder>

extension OrderedTree where Order == RankedOrder {
  /// A tree without documents, or with those of a sorted list.
  init(_ orders: [SortOrder], sorted entries: [RankedDocument] = []) {
    self.init(RankedOrder(orders: orders), sorted: entries)
  }

  var orders: [SortOrder] { order.orders }

  /// Every document, in order.
  ///
  /// - Complexity: O(n).
  var documents: [DocumentSnapshot] {
    var documents: [DocumentSnapshot] = []
    documents.reserveCapacity(count)
    visit { documents.append($0.document) }
    return documents
  }
}
