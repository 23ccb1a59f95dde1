// Who encodes Codable values straight to rows for a batch: one encoder for each collection, with
// the names that the newest picture of the catalog has. Asked on the caller, before there is a
// snapshot; whether the names were right shows in the commit.

/// The encoders of the collections that a batch writes to, as the catalog has them.
struct RowEncoders {
  /// Encoders kept. With more collections, all are forgotten and the next ones kept.
  private static let limit = 64

  /// Nil for a collection that the catalog lacks.
  private var encoders: [CollectionPattern: RowEncoder?] = [:]
  private var last: (collection: CollectionPath, encoder: RowEncoder?)?

  /// What encodes the document; nil when its collection is not known.
  mutating func encoder(for path: DocumentPath, in database: Database) -> RowEncoder? {
    if let last, path.isDirectly(in: last.collection) { return last.encoder }
    let collection = path.collection
    let pattern = CollectionPattern(collection)
    let encoder = encoders[pattern] ?? database.rowEncoder(of: pattern)
    if encoders.count >= Self.limit { encoders = [:] }
    encoders.updateValue(encoder, forKey: pattern)
    last = (collection, encoder)
    return encoder
  }
}

extension Database {
  /// What encodes documents of the pattern; nil when the catalog does not know it, or no names of
  /// fields in it.
  fileprivate func rowEncoder(of pattern: CollectionPattern) -> RowEncoder? {
    guard let symbols = catalog.picture(of: pattern.root)?.collections[pattern]?.symbols,
      symbols.count > 0
    else { return nil }
    return RowEncoder(symbols, refusedTypes)
  }
}
