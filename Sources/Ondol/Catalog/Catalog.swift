// The catalog in memory: the families, collections, field names and indexes, as immutable values
// behind one lock, so that reads and writes get what they need in nanoseconds.
//
// The rows in keyspace 0 are the truth, and the cached pictures here are copies of them. A call
// works on a snapshot, which may be older or newer than a picture. These rules keep the two
// together:
// - A family's row has a generation that every change of its keyspaces, names or indexes raises,
//   and a picture is the state of exactly one generation. Code that plans a query or writes reads
//   that row in its own snapshot, and gets the picture of that generation.
// - Every write guards the family's row. A write that was prepared before an index was declared is
//   refused and prepared again, so no document is ever missing from an index.
// - Reading one document by its id needs only the properties that determine how documents are read:
//   the keyspace, the schema, the expiry, and names, which are only ever added. A picture records
//   from which commit on it is right about these. It is not used while a commit that changes them
//   is under way. In that case, and for an older snapshot, the family's row is also read. A
//   document with a name that the picture lacks makes the catalog load the family again.

internal import OndolEngine

/// A collection pattern's entry in the catalog.
struct CollectionEntry: Sendable {
  var keyspace: Keyspace
  var symbols = SymbolTable()
  /// Indexes that serve queries.
  private(set) var indexes: [IndexDefinition] = []
  /// Links, which determine which storage paths documents keep.
  private(set) var links: [IndexDefinition] = []
  /// Indexes that find the documents that expire next.
  private(set) var ends: [IndexDefinition] = []
  /// Word indexes.
  private(set) var searches: [IndexDefinition] = []
  /// The field with the expiry time of documents, if there is one.
  var timeToLive: FieldNames?
  /// Which documents have which schema.
  var schema = SchemaHistory()

  /// Everything that has rows for each document.
  var allIndexes: [IndexDefinition] {
    links.isEmpty && ends.isEmpty && searches.isEmpty
      ? indexes : indexes + links + ends + searches
  }

  /// Whether there is a declaration that a collection without documents keeps.
  var isDeclared: Bool {
    timeToLive != nil || schema.current > 0 || allIndexes.contains { !$0.kind.isOfGroup }
  }

  /// Adds an index of any kind, replacing the one in its keyspace.
  mutating func put(_ index: IndexDefinition) {
    remove(index)
    if index.kind.isLink {
      links.append(index)
    } else if index.kind.isOfWords {
      searches.append(index)
    } else if index.kind.isOfEnds {
      ends.append(index)
    } else {
      indexes.append(index)
    }
  }

  /// Removes an index of any kind.
  mutating func remove(_ index: IndexDefinition) {
    indexes.removeAll { $0.keyspace == index.keyspace }
    links.removeAll { $0.keyspace == index.keyspace }
    ends.removeAll { $0.keyspace == index.keyspace }
    searches.removeAll { $0.keyspace == index.keyspace }
  }
}

/// A root collection and everything below it.
struct Family: Sendable {
  var root: String
  var row: FamilyRow
  var collections: [CollectionPattern: CollectionEntry] = [:]
  /// Keyspaces of dropped indexes whose rows may still exist.
  var dropped: [Keyspace] = []
  /// Rows of the last change that the next commit must repeat in the mirror. Otherwise a log that
  /// loses the change would lose its rows in both copies.
  var repeats: [CatalogRow] = []
  /// The commit from which on documents are read in this way. While it is nil, the commit is
  /// unknown, and only the family's own row determines that.
  var readsSince: SequenceNumber?
  /// The commit as of which all this is known. It orders the pictures of one name, even when
  /// families have exchanged their names.
  var knownAt = SequenceNumber.zero

  /// Whether documents expire in one of its collections.
  var hasEnds: Bool { collections.values.contains { $0.timeToLive != nil } }
}

/// The pictures of all families met so far.
final class Catalog: Sendable {
  private struct Pictures: Sendable {
    var newest: [ExactText: Family] = [:]
    /// Their entries of the root collections themselves, which most documents are in, and the
    /// commit from which on they hold.
    var outermost: [ExactText: (entry: CollectionEntry, since: SequenceNumber)] = [:]
    /// Older pictures that snapshots still in use have requested, the most recent one last.
    var earlier: [Family] = []
    /// Families with commits under way that change how documents are read, and the number of these
    /// commits.
    var changing: [ExactText: Int] = [:]
    /// The families in which documents expire.
    var ending: Set<ExactText> = []

    mutating func put(_ family: Family, at key: ExactText) {
      newest[key] = family
      let entry = family.collections[CollectionPattern([family.root])]
      if let entry, let since = family.readsSince {
        outermost[key] = (entry, since)
      } else {
        outermost[key] = nil
      }
      if family.hasEnds { ending.insert(key) } else { ending.remove(key) }
    }
  }

  /// The most pictures that are kept for older snapshots.
  private static let earlierLimit = 8

  private let pictures: Guarded<Pictures>

  /// The app's schema declarations since it opened the database.
  let schemas: DeclaredSchemas

  /// Microseconds since 1970, for the expiry of documents.
  let clock: @Sendable () -> Int64

  /// Whether commits record their changes in the log, see ChangeRecord.
  let keepsChanges: Bool

  /// The app's own tokenizers.
  let tokenizers: OwnTokenizers

  /// Where the witness of the commits sits; see CommitWitness.
  let seat: WitnessSeat

  /// Indexes that a transaction's own writes have made invalid for its queries.
  private let unsettledIndexes: Set<Keyspace>
  /// Where the collections of a group are; shared by all copies.
  let directory: GroupDirectory

  /// The keys of root collections that have one of their own.
  let keys: CollectionKeys

  /// - Parameter hasOtherWriters: whether another process writes the database, beside this one or
  ///   alone.
  init(
    clock: @escaping @Sendable () -> Int64, keepsChanges: Bool = false,
    hasOtherWriters: Bool = false, tokenizers: [any SearchTokenizer] = [],
    keys: CollectionKeys = .none
  ) {
    self.keys = keys
    self.tokenizers = OwnTokenizers(tokenizers)
    directory = GroupDirectory(isKept: !hasOtherWriters)
    pictures = Guarded(Pictures())
    schemas = DeclaredSchemas()
    self.clock = clock
    self.keepsChanges = keepsChanges
    seat = WitnessSeat()
    unsettledIndexes = []
  }

  /// A copy with the same pictures that later changes do not affect. `families` are as an
  /// uncommitted transaction would leave them, and `indexes` must not be used.
  init(copying catalog: Catalog, adding families: [Family], without indexes: Set<Keyspace> = []) {
    var copy = catalog.pictures.withLock { $0 }
    for family in families { copy.put(family, at: ExactText(family.root)) }
    pictures = Guarded(copy)
    schemas = catalog.schemas
    clock = catalog.clock
    keepsChanges = catalog.keepsChanges
    seat = catalog.seat
    tokenizers = catalog.tokenizers
    unsettledIndexes = indexes
    directory = catalog.directory
    keys = catalog.keys
  }

  /// Whether a query may read the index, once it is finished.
  func mayUse(_ index: IndexDefinition) -> Bool { !unsettledIndexes.contains(index.keyspace) }

  /// The newest picture of the family, which may be newer or older than any snapshot. Nil when
  /// there is none.
  func picture(of root: String) -> Family? {
    pictures.withLock { $0.newest[ExactText(root)] }
  }

  /// The entry of a document's collection in the newest picture of its family, if that determines
  /// how documents are read in a snapshot of `sequence`.
  func pictured(
    collectionOf path: DocumentPath, at sequence: SequenceNumber
  ) -> CollectionEntry? {
    let root = ExactText(path.segments[0])
    let pattern = path.segments.count == 2 ? nil : CollectionPattern(collectionOf: path)
    return pictures.withLock { pictures in
      guard pictures.changing.isEmpty || pictures.changing[root] == nil else { return nil }
      guard let pattern else {
        guard let known = pictures.outermost[root], known.since <= sequence else { return nil }
        return known.entry
      }
      guard let family = pictures.newest[root], let since = family.readsSince, since <= sequence
      else { return nil }
      return family.collections[pattern]
    }
  }

  /// The families in which documents expire, as far as pictures know.
  var endingRoots: [String] { pictures.withLock { $0.ending.map(\.text) } }

  /// Call this around a commit that changes how documents of a family are read: the picture is not
  /// used until it is that of the commit.
  func beginChange(of root: String) {
    pictures.withLock { $0.changing[ExactText(root), default: 0] += 1 }
  }

  func endChange(of root: String) {
    let root = ExactText(root)
    pictures.withLock { pictures in
      let left = (pictures.changing[root] ?? 1) - 1
      pictures.changing[root] = left == 0 ? nil : left
    }
  }

  /// The family as it was when `rows` were taken. Nil when there was none.
  ///
  /// Throws `.permissionDenied` when it has a key of its own that is missing.
  ///
  /// - Complexity: one row is read; all of the family's when the picture is of another generation.
  func family(_ root: String, in rows: Rows) throws(DatabaseError) -> Family? {
    let family = try listedFamily(root, in: rows)
    if let family, keys.isLocked(family) { throw .locked(root) }
    return family
  }

  /// The same for code that reads none of its rows: its key may be missing.
  func listedFamily(_ root: String, in rows: Rows) throws(DatabaseError) -> Family? {
    guard let bytes = try rows.row(CatalogKey.family(root)) else { return nil }
    let row: FamilyRow
    do throws(MalformedBytes) {
      row = try FamilyRow(bytes.bytes)
    } catch {
      throw DatabaseError(catalog: error)
    }
    if let picture = known(root, row) { return picture }
    return try load(root, row, in: rows)
  }

  /// A picture of exactly this state.
  private func known(_ root: String, _ row: FamilyRow) -> Family? {
    let key = ExactText(root)
    return pictures.withLock { pictures in
      if let newest = pictures.newest[key], newest.row == row { return newest }
      guard !pictures.earlier.isEmpty else { return nil }
      return pictures.earlier.last { $0.row == row && ExactText($0.root) == key }
    }
  }

  /// Every family as it was when `rows` were taken, including those whose keys are missing.
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
      if let picture = known(root, row) {
        families.append(picture)
      } else {
        families.append(try load(root, row, in: rows))
      }
    }
    return families
  }

  /// Makes `family`, which the commit with this number has just written, the picture, unless there
  /// is a newer one.
  func install(_ family: Family, at sequence: SequenceNumber) {
    var family = family
    if family.readsSince == nil { family.readsSince = sequence }
    family.knownAt = sequence
    pictures.withLock { pictures in
      let key = ExactText(family.root)
      if let known = pictures.newest[key], family.knownAt < known.knownAt { return }
      pictures.put(family, at: key)
    }
  }

  /// Makes `family`, which was just loaded, the picture, unless there is one of the same state or a
  /// newer one: only the picture from a commit has the rows to repeat.
  private func installLoaded(_ family: Family) {
    pictures.withLock { pictures in
      let key = ExactText(family.root)
      if let known = pictures.newest[key],
        known.row == family.row || family.knownAt < known.knownAt
      {
        guard known.row != family.row else { return }
        if pictures.earlier.count == Self.earlierLimit { pictures.earlier.removeFirst() }
        pictures.earlier.append(family)
      } else {
        pictures.put(family, at: key)
      }
    }
  }

  /// Updates the pictures for a database that another process has written: `rows` are newer than
  /// all of them. Returns the current families.
  @discardableResult
  func follow(_ rows: Rows) throws(DatabaseError) -> [Family] {
    let families = try families(in: rows)
    let present = Set(families.map { ExactText($0.root) })
    let gone = pictures.withLock { $0.newest.filter { !present.contains($0.key) } }
    for family in gone.values { forget(family, at: rows.snapshot.sequence) }
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
    var family = reader.family
    family.readsSince = rows.snapshot.sequence
    family.knownAt = rows.snapshot.sequence
    if keys.isLocked(family) {
      // No picture leads to its rows, so code that needs them requests the family.
      forget(family, at: rows.snapshot.sequence)
    } else {
      installLoaded(family)
    }
    return family
  }
}

/// Assembles a family from its rows, which come in the order of their keys.
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
    if let keyspace = try CatalogKey.keyspace(of: CatalogKey.formsMark, key) {
      let forms = try ValueForms(value)
      if let pattern = patterns[keyspace] { family.collections[pattern]?.symbols.forms = forms }
      return
    }
    let (keyspace, symbol) = try CatalogKey.parse(key)
    guard let symbol else {
      switch try KeyspaceRow(value, of: keyspace) {
      case .documents(let pattern):
        patterns[keyspace] = pattern
        family.collections[pattern] = CollectionEntry(keyspace: keyspace)
      case .index(let index):
        // The keyspace of documents has the lower number, because there is no index before there is
        // a collection.
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
  /// The current family. Nil when there is none.
  func family(_ root: String) async throws(DatabaseError) -> Family? {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.catalog.family(root, in: rows)
    }
  }

  /// Every current family, including those whose keys are missing.
  func families() async throws(DatabaseError) -> [Family] {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.catalog.families(in: rows)
    }
  }
}

extension DatabaseError {
  /// An unreadable row of the catalog.
  init(catalog error: MalformedBytes) {
    if error.isOfNewerVersion {
      self.init(
        .unimplemented,
        "a newer version wrote the catalog: \(error.reason); open the database with that version")
      return
    }
    self.init(
      .dataLoss,
      "the catalog is damaged: \(error.reason) at \(error.offset); restore a backup or salvage"
        + " what is left")
  }
}

extension Catalog {
  /// Replaces the picture of a dropped family with an empty one, so that an old picture of it never
  /// comes back.
  func forget(_ family: Family, at sequence: SequenceNumber) {
    var row = family.row
    row.generation = .max
    install(Family(root: family.root, row: row), at: sequence)
  }
}
