// The collections that one commit writes to, with what all their documents share: the catalog's
// entry, the prefix of their keys, and the encoder with the names of their fields. Determined once
// and kept, because most batches write many documents of one collection. Part of stage 2 of the
// write path, used by WritePreparation.

internal import OndolEngine

/// What a commit knows of the collections it writes to. A collection is identified by its place
/// here.
struct WrittenCollections {
  private struct Collection {
    let path: CollectionPath
    let ancestorIDs: [String]
    /// The place of its pattern.
    let pattern: Int
    /// The prefix of its documents' keys; nil until the pattern has a keyspace.
    var keyPrefix: [UInt8]?
  }

  private struct Pattern {
    let pattern: CollectionPattern
    /// The catalog's entry; nil until the commit makes it.
    var entry: CollectionEntry?
    let upgrade: PendingUpgrade?
    var encoder: ValueEncoder
    /// For each of the entry's indexes, the maker of its rows for documents that are bytes already.
    /// It is nil when only their fields will do. Empty until the first such document.
    var plainRows: [PlainIndexRows?] = []
  }

  private var collections: [Collection] = []
  private var patterns: [Pattern] = []
  private var places: [CollectionPath: Int] = [:]
  private var patternPlaces: [CollectionPattern: Int] = [:]
  /// The place that was requested last.
  private var last = 0

  /// The place of the document's collection; nil when it was not added.
  mutating func index(of path: DocumentPath) -> Int? {
    guard !collections.isEmpty else { return nil }
    if path.isDirectly(in: collections[last].path) { return last }
    guard let place = places[path.collection] else { return nil }
    last = place
    return place
  }

  /// Adds a collection and returns its place.
  mutating func add(
    _ path: CollectionPath, _ pattern: CollectionPattern, _ entry: CollectionEntry?,
    _ upgrade: PendingUpgrade?
  ) -> Int {
    let patternPlace = patternPlaces[pattern] ?? patterns.count
    if patternPlace == patterns.count {
      patternPlaces[pattern] = patternPlace
      patterns.append(
        Pattern(
          pattern: pattern, entry: entry, upgrade: upgrade,
          encoder: ValueEncoder(entry?.symbols ?? SymbolTable())))
    }
    last = collections.count
    places[path] = last
    collections.append(
      Collection(path: path, ancestorIDs: path.ancestorIDs, pattern: patternPlace))
    return last
  }

  func pattern(of collection: Int) -> CollectionPattern {
    patterns[collections[collection].pattern].pattern
  }

  func ancestorIDs(of collection: Int) -> [String] { collections[collection].ancestorIDs }

  /// The catalog's entry of the collection; nil when it is new.
  func entry(of collection: Int) -> CollectionEntry? {
    patterns[collections[collection].pattern].entry
  }

  /// How documents of an earlier schema are upgraded, if there may be any.
  func upgrade(of collection: Int) -> PendingUpgrade? {
    patterns[collections[collection].pattern].upgrade
  }

  /// Records what the commit has made of a new collection.
  mutating func set(_ entry: CollectionEntry, of collection: Int) {
    let pattern = collections[collection].pattern
    patterns[pattern].entry = entry
    patterns[pattern].encoder = ValueEncoder(entry.symbols)
    patterns[pattern].plainRows = []
  }

  /// The names of fields, including those that the documents have introduced.
  var symbols: [(CollectionPattern, SymbolTable)] {
    patterns.map { ($0.pattern, $0.encoder.symbols) }
  }

  /// The document's key; nil when its collection is new.
  mutating func key(of path: DocumentPath, in collection: Int) -> [UInt8]? {
    if collections[collection].keyPrefix == nil, let entry = entry(of: collection) {
      collections[collection].keyPrefix = DocumentKey.prefix(
        entry.keyspace, ancestors: collections[collection].ancestorIDs)
    }
    return collections[collection].keyPrefix.map {
      DocumentKey.key(prefix: $0, id: path.documentID)
    }
  }

  /// Adds the document in its new state to the batch. Its collection must not be new any more.
  /// Returns its key, and the contents that it refers to; nil for those it referred to before.
  mutating func add(
    _ document: WrittenDocument, _ keys: CollectionKeys, to batch: inout Batch
  ) throws(DatabaseError) -> (key: [UInt8], contents: Set<BlobDigest>?) {
    guard
      let key = document.key.isEmpty
        ? key(of: document.path, in: document.collection) : document.key
    else { preconditionFailure("a collection has a keyspace before it has documents") }
    var contents: Set<BlobDigest>? = []
    if let after = document.after {
      let pattern = collections[document.collection].pattern
      let isSpliced = try patterns[pattern].encoder.encode(
        after, createTime: document.before?.stamps.createTime)
      let bytes = patterns[pattern].encoder.bytes
      batch.put(key.bytes, bytes.bytes, stamps: patterns[pattern].encoder.stamps)
      contents = isSpliced ? nil : Set(patterns[pattern].encoder.contents)
      if !isSpliced, patterns[pattern].encoder.hasSealedContents {
        try keys.refuseContentKey(inRow: key)
      }
    } else {
      batch.delete(key.bytes)
    }
    batch.guardUnchanged(key.bytes)
    return (key, contents)
  }

  /// Adds a new document's rows in its collection's indexes, as far as they can be made from the
  /// document's bytes. Returns the places of the indexes that need another way; nil for all of
  /// them.
  mutating func addIndexRows(
    of document: WrittenDocument, at key: [UInt8], to batch: inout Batch
  ) throws(DatabaseError) -> [Int]? {
    let place = collections[document.collection].pattern
    guard document.stored == nil, case .encoded(let encoded)? = document.after,
      let entry = patterns[place].entry, !entry.indexes.isEmpty,
      patterns[place].encoder.begins(with: encoded.names)
    else { return nil }
    if patterns[place].plainRows.isEmpty {
      let ancestorCount = patterns[place].pattern.ancestorCount
      patterns[place].plainRows = entry.indexes.map {
        PlainIndexRows($0, encoded.names.symbols, ancestorCount: ancestorCount)
      }
    }
    let bytes = encoded.row.bytes
    var others: [Int] = []
    do throws(MalformedBytes) {
      let view = try DocumentView(bytes.bytes)
      for index in patterns[place].plainRows.indices {
        if patterns[place].plainRows[index] == nil {
          others.append(index)
        } else if let row = try patterns[place].plainRows[index]?.key(of: view, key.bytes) {
          batch.put(row.bytes, RawSpan())
        }
      }
    } catch {
      throw DatabaseError(error, documentAt: document.path)
    }
    return others
  }
}

extension DocumentPath {
  /// Whether this is the path of a document in the collection.
  func isDirectly(in collection: CollectionPath) -> Bool {
    guard segments.count == collection.segments.count + 1 else { return false }
    // By index: iterating would retain and release the texts.
    for index in collection.segments.indices
    where ValueOrder.compare(collection.segments[index], segments[index]) != 0 {
      return false
    }
    return true
  }
}
