// Makes the rows of an index from documents in their stored form, for building an index over many
// of them and for those that come as bytes. It reads the fields in place, and the ids are bytes of
// the document's key. Only for indexes with at most one row a document and no value in it.
// IndexEntries makes the rows of all indexes, from decoded fields, and defines their form.

internal import OndolEngine

/// Makes the rows of a plain index, for one document after the other.
struct PlainIndexRows: Sendable {
  private let index: IndexDefinition
  private let paths: [ResolvedPath]
  private let symbols: SymbolTable
  private let ancestorCount: Int
  private var writer = KeyWriter()

  /// Returns nil when the index is unique or partial, or of elements, links or expiry.
  init?(_ index: IndexDefinition, _ symbols: SymbolTable, ancestorCount: Int) {
    let kind = index.kind
    guard !kind.isUnique, !kind.isOfElements, !kind.isOfEnds, !kind.isLink, kind.condition == nil
    else { return nil }
    self.index = index
    self.symbols = symbols
    self.ancestorCount = ancestorCount
    paths = index.fields.map { ResolvedPath($0.names, in: symbols) }
  }

  /// The key of the document's row; nil when it has none.
  ///
  /// - Parameter key: the document's key.
  mutating func key(
    of view: borrowing DocumentView, _ key: RawSpan
  ) throws(MalformedBytes) -> [UInt8]? {
    guard let first = paths.first, try view.field(first) != nil else { return nil }
    var reader = KeyReader(key)
    try reader.skip(raw: Keyspace.prefixLength)
    for _ in 0..<ancestorCount { _ = try reader.id() }
    let id = reader.offset
    _ = try reader.id()
    guard reader.isAtEnd else {
      throw MalformedBytes(at: reader.offset, "a document's key goes on behind its id")
    }
    writer.restart(index.keyspace.prefix)
    let ancestors = key.extracting(Keyspace.prefixLength..<id)
    if !index.kind.putsAncestorsBehind { writer.append(raw: ancestors) }
    for place in paths.indices {
      let descending = index.fields[place].descending
      if let value = try view.field(paths[place]) {
        if let text = try value.text {
          if let comparison = index.fields[place].comparison {
            writer.append(text: comparison.key(of: text.array).bytes, descending: descending)
          } else {
            writer.append(text: text, descending: descending)
          }
        } else {
          writer.append(try value.value(symbols), descending: descending)
        }
      } else {
        writer.append(raw: [descending ? ~IndexDefinition.missing : IndexDefinition.missing])
      }
    }
    let mask: UInt8 = index.idDescending ? 0xff : 0
    if index.kind.putsAncestorsBehind { writer.append(raw: ancestors, mask: mask) }
    writer.append(raw: key.extracting(id..<key.byteCount), mask: mask)
    return writer.bytes
  }
}
