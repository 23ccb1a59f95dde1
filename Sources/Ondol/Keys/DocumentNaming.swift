// Converts a document's key to its name in a query and back. A query of one collection names its
// documents by their ids, one of a group by their paths. The bytes after the prefix, the tail, are
// the same in a document's key and in the rows of its indexes, so most reads never make a name.

internal import OndolEngine

/// The keys and names of a source's documents, of one pattern.
struct DocumentNaming: Sendable {
  let pattern: CollectionPattern
  let keyspace: Keyspace
  /// The queried collection; nil when it is all of the pattern.
  let collection: CollectionPath?
  /// The prefix of the keys of all queried documents.
  let prefix: [UInt8]

  init(_ pattern: CollectionPattern, _ keyspace: Keyspace, collection: CollectionPath?) {
    self.pattern = pattern
    self.keyspace = keyspace
    self.collection = collection
    prefix = DocumentKey.prefix(keyspace, ancestors: collection?.ancestorIDs ?? [])
  }

  /// The path of the document with the key.
  func path(of key: RawSpan) throws(DatabaseError) -> DocumentPath {
    if let collection {
      var segments: [String] = []
      segments.reserveCapacity(collection.segments.count + 1)
      segments.append(contentsOf: collection.segments)
      segments.append(try id(of: key))
      return DocumentPath(unchecked: segments)
    }
    let ids = try DocumentKey.ids(in: key, ancestorCount: pattern.ancestorCount)
    return DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
  }

  /// The query's name of the document with the key.
  func name(of key: RawSpan) throws(DatabaseError) -> Value {
    collection == nil ? .reference(try path(of: key)) : .string(try id(of: key))
  }

  /// The same, when the document's other bytes are also read.
  func name(in key: RawSpan) throws(MalformedBytes) -> Value {
    do throws(DatabaseError) {
      return try name(of: key)
    } catch {
      throw MalformedBytes(at: 0, error.message)
    }
  }

  private func id(of key: RawSpan) throws(DatabaseError) -> String {
    do throws(MalformedBytes) {
      var reader = KeyReader(key)
      try reader.skip(raw: prefix.count)
      return try reader.id()
    } catch {
      throw DatabaseError(
        .dataLoss, "a document's key is damaged: \(error.reason)", path: "\(pattern)")
    }
  }

  /// The key of the document with this name in the query; nil when it is not a queried one.
  func key(of name: Value) -> [UInt8]? {
    switch name {
    case .string(let id): return DocumentKey.key(prefix: prefix, id: id)
    case .reference(let path):
      let pattern = CollectionPattern(path.collection)
      guard pattern == self.pattern else { return nil }
      return DocumentKey.key(keyspace, path)
    default: return nil
    }
  }
}
