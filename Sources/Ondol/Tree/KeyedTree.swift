// Entries ordered by the bytes that each has: a node's children, and their positions. A listener
// keeps the last node it delivered and hands it out at no cost, because trees share their equal
// parts.

/// An entry of a `KeyedTree`.
protocol KeyedEntry: Sendable, Equatable {
  /// The bytes that order the entry; no two entries of a tree have the same.
  var orderedBy: [UInt8] { get }
}

/// Orders entries by their bytes.
struct KeyedOrder<Entry: KeyedEntry>: EntryOrder {
  func key(of entry: Entry) -> [UInt8] { entry.orderedBy }

  func compare(_ left: [UInt8], _ right: [UInt8]) -> Int { TreeKey.compare(left, right) }
}

/// Entries in the order of their bytes, which are unique.
typealias KeyedTree<Entry: KeyedEntry> = OrderedTree<KeyedOrder<Entry>>

extension OrderedTree {
  /// A tree without entries, or with those of a sorted list.
  init<E: KeyedEntry>(sorted entries: [E] = []) where Order == KeyedOrder<E> {
    self.init(KeyedOrder(), sorted: entries)
  }
}
