// The stored rows of an index, decoded into values, for tools that inspect it. A walk over the
// index's keyspace. It does not read documents, so it also lists rows that lead nowhere.

internal import OndolEngine

/// A row of an index.
package struct ListedIndexRow: Sendable {
  /// The value of a field in a row.
  package enum Component: Sendable {
    case value(Value)
    /// The index contains only the beginning of the value.
    case cut
    case missing
  }

  /// One for each field of the index.
  package var components: [Component]
  /// The path of the document that the row leads to.
  package var document: String
}

extension ListedIndexRow {
  /// Whether the first value is within bounds; an unknown one may be.
  fileprivate func isWithin(_ bounds: (least: Value?, greatest: Value?)) -> Bool {
    guard case .value(let value) = components.first else { return true }
    if let least = bounds.least, ValueOrder.compare(value, least) < 0 { return false }
    if let greatest = bounds.greatest, ValueOrder.compare(value, greatest) > 0 { return false }
    return true
  }
}

/// Some rows of an index.
package struct ListedIndexPage: Sendable {
  package var fields: [String]
  package var rows: [ListedIndexRow]
  /// Where the next page begins; nil after the last row.
  package var next: [UInt8]?
}

extension Database {
  /// Rows of the index called `name` of the collections of a pattern, in the index's order, from
  /// `start` on; nil when there is no such index.
  ///
  /// - Parameters:
  ///   - bounds: the least and the greatest first value of the wanted rows.
  ///   - limit: the number of rows to look at.
  /// - Complexity: O(limit).
  package func listIndex(
    _ name: String, of pattern: String, bounds: (least: Value?, greatest: Value?),
    from start: [UInt8]?, limit: Int
  ) async throws(DatabaseError) -> ListedIndexPage? {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      for family in try rows.catalog.families(in: rows) {
        for (known, entry) in family.collections where isSame(known.description, pattern) {
          if rows.catalog.keys.isLocked(family) { throw .locked(family.root) }
          guard let index = entry.allIndexes.first(where: { isSame($0.name, name) }) else {
            continue
          }
          return try rows.page(of: index, known, bounds, from: start, limit)
        }
      }
      return nil
    }
  }
}

extension Rows {
  fileprivate func page(
    of index: IndexDefinition, _ pattern: CollectionPattern,
    _ bounds: (least: Value?, greatest: Value?), from start: [UInt8]?, _ limit: Int
  ) throws(DatabaseError) -> ListedIndexPage {
    if index.kind.isOfWords { return try wordsPage(of: index, pattern, from: start, limit) }
    var range = KeyRange(prefix: index.keyspace.prefix)
    if let start { range.lower = start }
    var walk = RangeWalk(self, [range])
    var page = ListedIndexPage(fields: index.fields.map(\.description), rows: [])
    var count = 0
    while try walk.next() {
      let key = walk.cursor.key.array
      guard count < limit else {
        page.next = key
        break
      }
      count += 1
      let row = try index.list(key, try walk.value.array, pattern)
      if row.isWithin(bounds) { page.rows.append(row) }
    }
    return page
  }
}

extension Rows {
  /// The documents of a word index, and the number of words in each of their fields.
  private func wordsPage(
    of index: IndexDefinition, _ pattern: CollectionPattern, from start: [UInt8]?, _ limit: Int
  ) throws(DatabaseError) -> ListedIndexPage {
    let keys = index.searchKeys
    var walk = RangeWalk(
      self, [KeyRange(lower: start ?? keys.place([]), upper: keys.state)])
    var page = ListedIndexPage(fields: index.fields.map(\.description), rows: [])
    while try walk.next() {
      let key = walk.cursor.key.array
      guard page.rows.count < limit else {
        page.next = key
        break
      }
      let tail = Array(key.dropFirst(keys.place([]).count))
      let lengths = try searchedLengths(of: tail, in: index)
      let ids = try DocumentKey.ids(
        in: (index.documents.prefix + tail).bytes, ancestorCount: pattern.ancestorCount)
      page.rows.append(
        ListedIndexRow(
          components: lengths.map { .value(.integer(Int64($0))) },
          document: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] }.joined(separator: "/")))
    }
    return page
  }

  private func searchedLengths(
    of tail: [UInt8], in index: IndexDefinition
  ) throws(DatabaseError) -> [Int] {
    let bytes: [UInt8]?
    let place = try searchedPlace(of: tail, in: index)
    switch place {
    case .fresh(let generation): bytes = try row(index.searchKeys.fresh(generation, tail))
    case .gathered(let ordinal): bytes = try row(index.searchKeys.document(ordinal))
    case nil: bytes = nil
    }
    guard let bytes else { return [] }
    return try checkingRow(of: index) { () throws(MalformedBytes) in
      if case .fresh = place { return try FreshRow(bytes).lengths }
      return try SearchedDocument(bytes.bytes).lengths
    }
  }
}

extension IndexDefinition {
  fileprivate func list(
    _ key: [UInt8], _ value: [UInt8], _ pattern: CollectionPattern
  ) throws(DatabaseError) -> ListedIndexRow {
    let document: [UInt8]
    let components: [ListedIndexRow.Component]
    do throws(MalformedBytes) {
      document = try documentKey(of: key, value, ancestorCount: pattern.ancestorCount)
      components = try self.components(of: key, ancestorCount: pattern.ancestorCount)
    } catch {
      throw DatabaseError(.dataLoss, "a row of the index '\(name)' is damaged: \(error.reason)")
    }
    let ids = try DocumentKey.ids(in: document.bytes, ancestorCount: pattern.ancestorCount)
    let path = zip(pattern.collectionIDs, ids).flatMap { [$0, $1] }
    return ListedIndexRow(components: components, document: path.joined(separator: "/"))
  }

  private func components(
    of key: [UInt8], ancestorCount: Int
  ) throws(MalformedBytes) -> [ListedIndexRow.Component] {
    var reader = KeyReader(key.bytes)
    try reader.skip(raw: try prefixLength(of: key, ancestorCount: ancestorCount))
    if kind.isLink { return [.value(.string(try reader.id()))] }
    var components: [ListedIndexRow.Component] = []
    for field in fields {
      let mark = field.descending ? ~Self.missing : Self.missing
      if reader.offset < key.count, key[reader.offset] == mark {
        try reader.skip(raw: 1)
        components.append(.missing)
        continue
      }
      switch try reader.component(descending: field.descending) {
      case .value(let value): components.append(.value(value))
      case .cut: components.append(.cut)
      }
    }
    return components
  }
}
