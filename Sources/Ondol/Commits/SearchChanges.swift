// What a write changes in an index of words: the document's terms are put in one row, and where it
// was gathered before, that is undone. Part of stage 2 of the write path.

internal import OndolEngine

/// An index of words, and the pattern it is of.
struct SearchedIndex: Sendable, Hashable {
  var pattern: CollectionPattern
  var keyspace: Keyspace
}

extension Batch {
  /// Puts a document's words into the index.
  ///
  /// - Parameters:
  ///   - key: the document's.
  ///   - isStored: whether there is a row of the document in the snapshot.
  mutating func changeWords(
    of index: IndexDefinition, from before: [String: Value]?, to after: [String: Value]?,
    at key: [UInt8], isStored: Bool, in rows: Rows
  ) throws(DatabaseError) -> Bool {
    let (old, new) = (index.texts(in: before), index.texts(in: after))
    guard !isStored || !zip(old, new).allSatisfy({ isSame($0, $1) }) else { return false }
    let tail = key.dropFirst(Keyspace.prefixLength)
    let keys = index.searchKeys
    let row = index.freshRow(of: new)
    if isStored {
      let ordinalKey = keys.ordinal(tail)
      // Upkeep gathers documents that nobody writes, and does not change them.
      guardUnchanged(ordinalKey.bytes)
      if let bytes = try rows.row(ordinalKey) {
        let ordinal = try checkingRow(of: index) { () throws(MalformedBytes) in
          var reader = ByteReader(bytes.bytes)
          return try reader.varint()
        }
        delete(keys.document(ordinal).bytes)
        delete(ordinalKey.bytes)
      }
      if row == nil { delete(keys.fresh(tail).bytes) }
    }
    if let row { put(keys.fresh(tail).bytes, row.bytes) }
    return row != nil
  }
}

private func isSame(_ left: String?, _ right: String?) -> Bool {
  guard let left, let right else { return left == nil && right == nil }
  return left.compareBytes(right) == 0
}
