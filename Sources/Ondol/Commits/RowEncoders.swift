// The encoders that turn a batch's Codable values straight into rows: one for each collection, with
// the names of the newest catalog. They run on the caller, before there is a snapshot. The commit
// shows whether the names were right.

/// The encoders of the collections that a batch writes to, as the catalog has them.
struct RowEncoders {
  /// The most encoders that are kept. With more collections, all are dropped and the next ones
  /// kept.
  private static let limit = 64

  /// Nil for a collection that the catalog lacks.
  private var encoders: [CollectionPattern: RowEncoder?] = [:]
  private var last: (collection: CollectionPath, encoder: RowEncoder?)?

  /// The encoder of the document; nil when its collection is unknown.
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
  /// The encoder for documents of the pattern; nil when the catalog does not know the pattern, or
  /// no names of fields in it.
  fileprivate func rowEncoder(of pattern: CollectionPattern) -> RowEncoder? {
    guard let symbols = catalog.picture(of: pattern.root)?.collections[pattern]?.symbols,
      symbols.count > 0
    else { return nil }
    return RowEncoder(symbols, refusedTypes)
  }
}
