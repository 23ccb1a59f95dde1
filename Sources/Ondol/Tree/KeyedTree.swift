// Entries in the order of bytes that each has: a node's children, and where they stand. A listener
// keeps the node it told last, and hands it out at no cost, because trees share what is the same.

/// What can be in a `KeyedTree`.
protocol KeyedEntry: Sendable, Equatable {
  /// What the entry is ordered by; no two entries of a tree have the same.
  var orderedBy: [UInt8] { get }
}

/// By the bytes that entries have.
struct KeyedOrder<Entry: KeyedEntry>: EntryOrder {
  func key(of entry: Entry) -> [UInt8] { entry.orderedBy }

  func compare(_ left: [UInt8], _ right: [UInt8]) -> Int { TreeKey.compare(left, right) }
}

/// Entries in the order of their bytes, which are unique.
typealias KeyedTree<Entry: KeyedEntry> = OrderedTree<KeyedOrder<Entry>>

extension OrderedTree {
  /// No entries, or those that are in order already.
  init<E: KeyedEntry>(sorted entries: [E] = []) where Order == KeyedOrder<E> {
    self.init(KeyedOrder(), sorted: entries)
  }
}
