// What a write changes in an index of words: the document's terms are put in one row, and where it
// was gathered before, that is undone. Part of stage 2 of the write path.

internal import OndolEngine

/// An index of words, and the pattern it is of.
struct SearchedIndex: Sendable, Hashable {
  var pattern: CollectionPattern
  var keyspace: Keyspace
}

extension Batch {
  /// Puts a document's words into the index; answers whether upkeep gets something to do.
  ///
  /// - Parameters:
  ///   - key: the document's.
  ///   - tokenizer: the index's; asked for when the texts have changed.
  ///   - isStored: whether there is a row of the document in the snapshot.
  ///   - generation: the present one, whose end the batch is guarded against.
  mutating func changeWords(
    of index: IndexDefinition, from before: [String: Value]?, to after: [String: Value]?,
    at key: [UInt8], isStored: Bool, generation: UInt64, in rows: Rows,
    _ tokenizer: () throws(DatabaseError) -> Tokenizer
  ) throws(DatabaseError) -> Bool {
    let (old, new) = (index.texts(in: before), index.texts(in: after))
    guard !isStored || !zip(old, new).allSatisfy({ isSame($0, $1) }) else { return false }
    let tail = key.dropFirst(Keyspace.prefixLength)
    let keys = index.searchKeys
    let row = index.freshRow(of: new, try tokenizer())
    let placeKey = keys.place(tail)
    if isStored {
      // Upkeep gathers documents that nobody writes, and does not change them.
      guardUnchanged(placeKey.bytes)
      switch try rows.searchedPlace(of: tail, in: index) {
      case .fresh(let other):
        if row == nil || other != generation { delete(keys.fresh(other, tail).bytes) }
        if row == nil { delete(placeKey.bytes) }
      case .gathered(let ordinal):
        delete(keys.document(ordinal).bytes)
        if row == nil { delete(placeKey.bytes) }
      case nil: break
      }
    }
    if let row {
      put(keys.fresh(generation, tail).bytes, row.bytes)
      put(placeKey.bytes, SearchedPlace.fresh(generation).bytes.bytes)
    }
    return isStored || row != nil
  }
}

private func isSame(_ left: String?, _ right: String?) -> Bool {
  guard let left, let right else { return left == nil && right == nil }
  return left.compareBytes(right) == 0
}
