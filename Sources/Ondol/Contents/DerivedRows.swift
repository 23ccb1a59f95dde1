// Contents that were made from others, such as thumbnails. Each belongs to its parent, the content
// it was made from, and is reclaimed with it. They have rows of their own beside the contents':
//
//   keyspace 5   digest of the parent ++ name  ->  the child, a blob as in keys
//
// The row holds the child, and only the parent keeps the row: the commit that reclaims the parent
// removes it. To prevent two contents from keeping each other for ever, a content that leads to its
// own parent is not recorded as its child.

internal import OndolEngine

/// Rows of derived contents.
enum DerivedRows {
  static let keyspace = Keyspace(rawValue: 5)
  /// The most bytes of UTF-8 in a name.
  static let maximumNameLength = 1_000

  static func key(_ parent: BlobDigest, _ name: String) -> [UInt8] {
    prefix(parent) + Array(name.utf8)
  }

  /// The rows of all children of a content.
  static func children(of parent: BlobDigest) -> KeyRange {
    let prefix = prefix(parent)
    // A name is UTF-8, which has no byte FF.
    return KeyRange(prefix: prefix)
  }

  private static func prefix(_ parent: BlobDigest) -> [UInt8] {
    var key = keyspace.prefix
    parent.append(to: &key)
    return key
  }

  static func value(_ child: BlobReference) -> [UInt8] {
    var writer = KeyWriter()
    writer.append(.blob(child))
    return writer.bytes
  }

  /// The child in a row's value.
  static func child(_ value: RawSpan) throws(DatabaseError) -> BlobReference {
    do throws(MalformedBytes) {
      var reader = KeyReader(value)
      if case .value(.blob(let child)) = try reader.component(), reader.isAtEnd { return child }
      throw MalformedBytes(at: 0, "no blob")
    } catch {
      throw DatabaseError(.dataLoss, "the row of a derived content is damaged: \(error.reason)")
    }
  }

  /// The parent and the name in a row's key.
  static func parse(_ key: RawSpan) throws(DatabaseError) -> (parent: BlobDigest, name: String) {
    let start = keyspace.prefix.count
    guard key.byteCount > start + BlobDigest.length,
      let name = String(utf8: key.extracting(droppingFirst: start + BlobDigest.length))
    else { throw DatabaseError(.dataLoss, "the key of a derived content's row is damaged") }
    let octets = key.octets.extracting(start..<(start + BlobDigest.length))
    return (BlobDigest(octets), name)
  }

  /// Removes the children of a reclaimed content, and what they hold.
  static func release(
    childrenOf parent: BlobDigest, holding: inout ContentHolding, batch: inout Batch, _ rows: Rows
  ) throws(DatabaseError) {
    let range = children(of: parent)
    batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
    var walk = RangeWalk(rows, [range])
    while try walk.next() {
      let key = walk.cursor.key.array
      let value = try walk.value.array
      holding.remove(try child(value.bytes).digest, holder: key)
      batch.delete(key.bytes)
    }
  }
}

extension Rows {
  /// The content derived from a content under a name; nil when there is none yet.
  func derived(_ name: String, from parent: BlobDigest) throws(DatabaseError) -> BlobReference? {
    guard let row = try row(DerivedRows.key(parent, name)) else { return nil }
    return try DerivedRows.child(row.bytes)
  }

  /// Whether a content equals another, or is derived from it, directly or not. Makes the batch fail
  /// when that changes.
  func leads(
    from digest: BlobDigest, to other: BlobDigest, in batch: inout Batch
  ) throws(DatabaseError) -> Bool {
    var seen: Set<BlobDigest> = [digest]
    var open = [digest]
    while let next = open.popLast() {
      if next == other { return true }
      let range = DerivedRows.children(of: next)
      batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
      var walk = RangeWalk(self, [range])
      while try walk.next() {
        let value = try walk.value.array
        let child = try DerivedRows.child(value.bytes).digest
        if seen.insert(child).inserted { open.append(child) }
      }
    }
    return false
  }
}
