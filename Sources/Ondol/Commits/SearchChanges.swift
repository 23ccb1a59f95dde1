// The changes of a write in a word index: the document's terms are stored in one fresh row, and its
// entry in a run is invalidated. Part of stage 2 of the write path.

internal import OndolEngine

/// A word index, and its pattern.
struct SearchedIndex: Sendable, Hashable {
  var pattern: CollectionPattern
  var keyspace: Keyspace
}

extension Batch {
  /// Stores a document's words in the index; returns whether that gives upkeep work.
  ///
  /// - Parameters:
  ///   - key: the document's key.
  ///   - tokenizer: the index's tokenizer; called when the texts have changed.
  ///   - isStored: whether the snapshot has a row of the document.
  ///   - generation: the current one; the batch is guarded against its end.
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
      // Upkeep gathers documents that are not being written, and does not change them.
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
