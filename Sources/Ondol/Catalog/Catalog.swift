// The catalog in memory: which families, collections, field names and indexes there are, as
// immutable values behind one lock, so that reads and writes take what they need in nanoseconds.
//
// The rows in keyspace 0 are the truth, and the pictures here copies of them. A call works on a
// snapshot, which may be older or newer than a picture. What keeps the two together:
// - A family's row has a generation that every change of its keyspaces, names or indexes raises,
//   and a picture is exactly what one generation was. Whoever plans a query or writes reads that
//   row in his own snapshot, and gets the picture of that generation.
// - Every write guards the family's row. A write that was prepared before an index was declared is
//   refused and prepared again, so no document is ever missing from an index.
// - Reading one document by its id needs only its keyspace's number, which never changes, and the
//   names in it, which are only ever added. A document with a name the picture lacks has the family
//   loaded again.

internal import OndolEngine

/// A collection pattern, as the catalog knows it.
struct CollectionEntry: Sendable {
  var keyspace: Keyspace
  var symbols = SymbolTable()
  /// What serves queries.
  private(set) var indexes: [IndexDefinition] = []
  /// What says which storage paths documents keep.
  private(set) var links: [IndexDefinition] = []
  /// The field with the moment from which on a document is no more, if there is one.
  var timeToLive: FieldNames?
  /// Which documents have which schema.
  var schema = SchemaHistory()

  init(keyspace: Keyspace) {
    self.keyspace = keyspace
  }

  /// Everything that has rows of each document.
  var allIndexes: [IndexDefinition] { links.isEmpty ? indexes : indexes + links }

  /// Adds an index or a link, in the place of the one in its keyspace.
  mutating func put(_ index: IndexDefinition) {
    remove(index)
    if index.kind.isLink { links.append(index) } else { indexes.append(index) }
  }

  /// Takes an index or a link away.
  mutating func remove(_ index: IndexDefinition) {
    indexes.removeAll { $0.keyspace == index.keyspace }
    links.removeAll { $0.keyspace == index.keyspace }
  }
}

/// A root collection and everything below it.
struct Family: Sendable {
  let root: String
  var row: FamilyRow
  var collections: [CollectionPattern: CollectionEntry] = [:]
  /// Keyspaces of indexes that are no more and whose rows may still be there.
  var dropped: [Keyspace] = []
  /// Rows that the last change brought, and that the next commit has yet to repeat in the mirror:
  /// a log that loses the change would lose its rows in both copies.
  var repeats: [CatalogRow] = []
}

/// The pictures of all families met so far.
final class Catalog: Sendable {
  private let pictures: Guarded<[ExactText: Family]>

  /// How documents of earlier schemas are upgraded, as the app has said since it opened the
  /// database.
  private let upgrades: Guarded<[CollectionPattern: SchemaUpgrade]>

  /// What the moments are compared with from which on documents are no more: microseconds since
  /// 1970.
  let clock: @Sendable () -> Int64

  /// Whether commits say in the log what they changed, see ChangeRecord.
  let keepsChanges: Bool

  /// Indexes that a transaction's own writes have made of no use for its queries.
  private let unsettledIndexes: Set<Keyspace>
  /// Where collections of a group are; shared by all copies.
  let directory: GroupDirectory

  /// - Parameter isReadOnly: whether somebody else writes the database.
  init(
    clock: @escaping @Sendable () -> Int64, keepsChanges: Bool = false, isReadOnly: Bool = false
  ) {
    directory = GroupDirectory(isKept: !isReadOnly)
    pictures = Guarded([:])
    upgrades = Guarded([:])
    self.clock = clock
    self.keepsChanges = keepsChanges
    unsettledIndexes = []
  }

  /// The same pictures, at another time.
  init(copying catalog: Catalog, at time: Int64) {
    pictures = Guarded(catalog.pictures.withLock { $0 })
    upgrades = catalog.upgrades
    clock = { time }
    keepsChanges = catalog.keepsChanges
    unsettledIndexes = []
    directory = catalog.directory
  }

  /// The same pictures, which others who install theirs do not change; with `families` as a
  /// transaction that is not committed would leave them, and `indexes` not to be used.
  init(copying catalog: Catalog, adding families: [Family], without indexes: Set<Keyspace> = []) {
    var copy = catalog.pictures.withLock { $0 }
    for family in families { copy[ExactText(family.root)] = family }
    pictures = Guarded(copy)
    upgrades = catalog.upgrades
    clock = catalog.clock
    keepsChanges = catalog.keepsChanges
    unsettledIndexes = indexes
    directory = catalog.directory
  }

  /// Whether a query may read the index, once it is complete.
  func mayUse(_ index: IndexDefinition) -> Bool { !unsettledIndexes.contains(index.keyspace) }

  /// The newest picture of the family, which may be newer or older than any snapshot. Nil when none
  /// is known.
  func picture(of root: String) -> Family? {
    pictures.withLock { $0[ExactText(root)] }
  }

  /// What the newest picture of the pattern's family knows of it.
  func pictured(_ pattern: CollectionPattern) -> CollectionEntry? {
    pictures.withLock { $0[ExactText(pattern.root)]?.collections[pattern] }
  }

  /// The family as it was when `rows` were taken. Nil when there was none.
  ///
  /// - Complexity: one row is read; all of the family's when the picture is of another generation.
  func family(_ root: String, in rows: Rows) throws(DatabaseError) -> Family? {
    guard let bytes = try rows.row(CatalogKey.family(root)) else { return nil }
    let row: FamilyRow
    do throws(MalformedBytes) {
      row = try FamilyRow(bytes.bytes)
    } catch {
      throw DatabaseError(catalog: error)
    }
    if let picture = picture(of: root), picture.row == row { return picture }
    return try load(root, row, in: rows)
  }

  /// Notes how documents of the pattern are upgraded.
  func register(_ upgrade: @escaping SchemaUpgrade, for pattern: CollectionPattern) {
    upgrades.withLock { $0[pattern] = upgrade }
  }

  /// How documents of the pattern must be upgraded; nil when none has an earlier schema, or the app
  /// has not said how.
  func pendingUpgrade(of pattern: CollectionPattern, _ entry: CollectionEntry) -> PendingUpgrade? {
    guard !entry.schema.epochs.isEmpty else { return nil }
    return upgrades.withLock { $0[pattern] }
      .map { PendingUpgrade(history: entry.schema, upgrade: $0) }
  }

  /// Every family as it was when `rows` were taken.
  func families(in rows: Rows) throws(DatabaseError) -> [Family] {
    var found: [(String, FamilyRow)] = []
    let prefix = CatalogKey.families
    var walk = RangeWalk(rows, [KeyRange(lower: prefix, upper: prefix + [0xff])])
    while try walk.next() {
      let value = try walk.value
      do throws(MalformedBytes) {
        guard let root = String(utf8: walk.cursor.key.extracting(prefix.count...)) else { continue }
        found.append((root, try FamilyRow(value)))
      } catch {
        throw DatabaseError(catalog: error)
      }
    }
    var families: [Family] = []
    for (root, row) in found {
      if let picture = picture(of: root), picture.row == row {
        families.append(picture)
      } else {
        families.append(try load(root, row, in: rows))
      }
    }
    return families
  }

  /// Makes `family`, which was just committed, the picture, unless a newer one is there.
  func install(_ family: Family) {
    pictures.withLock { pictures in
      let key = ExactText(family.root)
      if let known = pictures[key], family.row.isOlder(than: known.row) { return }
      pictures[key] = family
    }
  }

  /// Makes `family`, which was just loaded, the picture, unless one of the same state or of a newer
  /// one is there: who committed it knows what is to be repeated.
  private func installLoaded(_ family: Family) {
    pictures.withLock { pictures in
      let key = ExactText(family.root)
      if let known = pictures[key], !known.row.isOlder(than: family.row) { return }
      pictures[key] = family
    }
  }

  /// Has the pictures follow a database that another has written: `rows` are newer than all of
  /// them. Answers with the families there are now.
  @discardableResult
  func follow(_ rows: Rows) throws(DatabaseError) -> [Family] {
    let families = try families(in: rows)
    let present = Set(families.map { ExactText($0.root) })
    let gone = pictures.withLock { $0.filter { !present.contains($0.key) } }
    for family in gone.values { forget(family) }
    return families
  }

  /// Reads all rows of a family.
  private func load(
    _ root: String, _ row: FamilyRow, in rows: Rows
  ) throws(DatabaseError) -> Family {
    var reader = FamilyReader(Family(root: root, row: row))
    let (lower, upper) = CatalogKey.keyspaces(ofFamily: row.number)
    var walk = RangeWalk(rows, [KeyRange(lower: lower, upper: upper)])
    while try walk.next() {
      let value = try walk.value
      do throws(MalformedBytes) {
        try reader.add(key: walk.cursor.key, value: value)
      } catch {
        throw DatabaseError(catalog: error)
      }
    }
    let family = reader.family
    installLoaded(family)
    return family
  }
}

/// Puts a family together from its rows, which come in the order of their keys.
private struct FamilyReader {
  private(set) var family: Family
  private var patterns: [Keyspace: CollectionPattern] = [:]

  init(_ family: Family) {
    self.family = family
  }

  mutating func add(key: RawSpan, value: RawSpan) throws(MalformedBytes) {
    if let keyspace = try CatalogKey.keyspace(of: CatalogKey.schemaMark, key) {
      guard let pattern = patterns[keyspace] else { return }
      family.collections[pattern]?.schema = try SchemaHistory(value)
      return
    }
    if let keyspace = try CatalogKey.keyspace(of: CatalogKey.timeToLiveMark, key) {
      guard let pattern = patterns[keyspace] else { return }
      var reader = ByteReader(value)
      let names = try reader.texts()
      family.collections[pattern]?.timeToLive = names.isEmpty ? nil : names
      return
    }
    let (keyspace, symbol) = try CatalogKey.parse(key)
    guard let symbol else {
      switch try KeyspaceRow(value, of: keyspace) {
      case .documents(let pattern):
        patterns[keyspace] = pattern
        family.collections[pattern] = CollectionEntry(keyspace: keyspace)
      case .index(let index):
        // Documents have the lower number, as there is no index before there is a collection.
        guard let pattern = patterns[index.documents] else {
          throw MalformedBytes(at: 0, "an index of an unknown collection")
        }
        family.collections[pattern]?.put(index)
      case .dropped: family.dropped.append(keyspace)
      }
      return
    }
    guard let pattern = patterns[keyspace], let name = String(utf8: value),
      family.collections[pattern]?.symbols.count == Int(symbol)
    else { throw MalformedBytes(at: 0, "a field name out of order") }
    try family.collections[pattern]?.symbols.define(name)
  }
}

extension Database {
  /// The family as it is now. Nil when there is none.
  func family(_ root: String) async throws(DatabaseError) -> Family? {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.catalog.family(root, in: rows)
    }
  }

  /// Every family as it is now.
  func families() async throws(DatabaseError) -> [Family] {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.catalog.families(in: rows)
    }
  }
}

/// Runs `body` with the engine's errors turned into the product's.
func rethrowing<R>(_ body: () throws(EngineError) -> R) throws(DatabaseError) -> R {
  do throws(EngineError) {
    return try body()
  } catch {
    throw DatabaseError(error)
  }
}

extension DatabaseError {
  /// A row of the catalog that cannot be read.
  init(catalog error: MalformedBytes) {
    self.init(
      .dataLoss,
      "the catalog is damaged: \(error.reason) at \(error.offset); restore a backup or salvage"
        + " what is left")
  }
}
