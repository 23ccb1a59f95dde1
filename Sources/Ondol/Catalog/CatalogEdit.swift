// A commit's additions to the catalog: a new collection, new field names, an index. Part of stage 2
// of the write path. Everything is derived from the commit's own snapshot and guarded. So of two
// commits that would define the same thing, one is refused and derives again.

internal import OndolEngine

/// Changes of one family for a batch.
struct CatalogEdit: Sendable {
  /// The most bytes of a commit that has room for all rows to repeat.
  private static let maximumRepeatingLength = 16 << 20

  /// The family with the changes.
  private(set) var family: Family
  let isNewFamily: Bool
  private var changedRows: [CatalogRow] = []
  private var schemaRows: [(key: [UInt8], schema: SchemaHistory)] = []
  private var guardedKeys: [[UInt8]]
  private var deletedKeys: [[UInt8]] = []
  private var rows: Rows
  /// Whether the commit changes the catalog.
  private(set) var isChanged = false
  /// Rows of the change that the family's next commit repeats. They can only change together with
  /// the family's own row, which that commit guards.
  private var repeats: [CatalogRow] = []
  /// Whether the commit changes the picture of the family.
  private(set) var changesPicture = false
  /// Whether the commit changes how documents are read.
  private(set) var changesReading = false

  /// Begins with an existing family.
  init(_ family: Family, in rows: Rows) {
    self.rows = rows
    self.family = family
    isNewFamily = false
    guardedKeys = [CatalogKey.family(family.root)]
  }

  /// The same, continuing with the same rows read on another thread.
  func reading(_ rows: Rows) -> CatalogEdit {
    var edit = self
    edit.rows = rows
    return edit
  }

  /// Begins with a new family. `following` is the number of the previous family that the same
  /// commit made.
  init(
    newFamily root: String, following last: UInt32?, in rows: Rows
  ) throws(DatabaseError) {
    self.rows = rows
    let key = CatalogKey.nextFamily
    var number: UInt32 = 1
    if let last {
      number = last + 1
    } else if let bytes = try rows.row(key) {
      do throws(MalformedBytes) {
        var reader = ByteReader(bytes.bytes)
        number = UInt32(try reader.count(atMost: Int(Keyspace.familyLimit)))
      } catch {
        throw DatabaseError(catalog: error)
      }
    }
    guard number < Keyspace.commonFamilyLimit else {
      throw DatabaseError(
        .resourceExhausted,
        "the database has had \(number - 1) root collections and can have no more", path: root)
    }
    family = Family(
      root: root, row: FamilyRow(number: number, generation: 0, nextMember: Keyspace.firstMember))
    isNewFamily = true
    changesReading = true
    guardedKeys = [CatalogKey.family(root), key]
  }

  /// Begins with a new family that has the key of a group that no family has.
  init(newFamily root: String, inGroup group: UInt32, in rows: Rows) {
    self.rows = rows
    family = Family(
      root: root, row: FamilyRow(number: group, generation: 0, nextMember: Keyspace.firstMember))
    isNewFamily = true
    changesReading = true
    guardedKeys = [CatalogKey.family(root)]
  }

  /// The entry of a collection pattern, created if necessary, with the indexes of its group.
  mutating func collection(
    _ pattern: CollectionPattern
  ) throws(DatabaseError) -> CollectionEntry {
    if let entry = family.collections[pattern] { return entry }
    let keyspace = try takeKeyspace()
    rows.catalog.directory.enter(pattern)
    family.collections[pattern] = CollectionEntry(keyspace: keyspace)
    change(CatalogKey.keyspace(keyspace), KeyspaceRow.documents(pattern).bytes)
    // Documents written here have the schema that the app has declared.
    if let version = rows.catalog.schemas.version(of: pattern), version > 0 {
      put(SchemaHistory(base: version), of: pattern, keyspace)
    }
    let group = CatalogKey.group(pattern.collectionID.text)
    guardedKeys.append(group)
    for kind in try rows.groupIndexes(group) {
      // There is no document yet that would be missing from it.
      let index = IndexDefinition(
        keyspace: try takeKeyspace(), documents: keyspace, kind: kind, state: .ready)
      put(index, in: pattern)
    }
    return family.collections[pattern] ?? CollectionEntry(keyspace: keyspace)
  }

  /// Adds the names of `symbols` that the catalog lacks, and the forms of values.
  mutating func add(_ symbols: SymbolTable, to pattern: CollectionPattern) {
    guard let entry = family.collections[pattern],
      symbols.count > entry.symbols.count || symbols.forms != entry.symbols.forms
    else { return }
    isChanged = true
    if symbols.forms != entry.symbols.forms {
      change(CatalogKey.forms(entry.keyspace), symbols.forms.bytes)
    }
    for number in entry.symbols.count..<symbols.count {
      let key = CatalogKey.symbol(UInt32(number), of: entry.keyspace)
      change(key, Array(symbols.names[number].utf8))
    }
    family.collections[pattern]?.symbols = symbols
  }

  /// Adds an index, or replaces the one in its keyspace.
  mutating func put(_ index: IndexDefinition, in pattern: CollectionPattern) {
    isChanged = true
    if index.kind.isLink { rows.catalog.directory.enterLinks(in: pattern.root) }
    family.collections[pattern]?.put(index)
    putRow(CatalogKey.keyspace(index.keyspace), KeyspaceRow.index(index).bytes)
  }

  /// Sets the field with the expiry time of documents, or none. Returns the index of these times,
  /// if there is one, and the indexes that are no longer needed.
  mutating func setTimeToLive(
    _ field: FieldNames?, of pattern: CollectionPattern
  ) throws(DatabaseError) -> (index: IndexDefinition?, dropped: [IndexDefinition]) {
    let entry = try collection(pattern)
    if entry.timeToLive != field { try putTimeToLive(field, of: pattern) }
    let kind = field.map { IndexKind.ends($0) }
    let dropped = entry.ends.filter { $0.kind != kind }
    for index in dropped { drop(index, from: pattern) }
    return (
      try kind.map { (kind) throws(DatabaseError) in try declareIndex(kind, of: pattern) },
      dropped
    )
  }

  private mutating func putTimeToLive(
    _ field: FieldNames?, of pattern: CollectionPattern
  ) throws(DatabaseError) {
    let keyspace = try collection(pattern).keyspace
    isChanged = true
    family.collections[pattern]?.timeToLive = field
    var value: [UInt8] = []
    value.append(texts: field ?? [])
    change(CatalogKey.timeToLive(keyspace), value)
    changeReading(of: pattern, keyspace)
  }

  /// Sets which documents have which schema.
  ///
  /// - Parameter changesReading: whether documents are read in another way from now on.
  mutating func setSchema(
    _ schema: SchemaHistory, of pattern: CollectionPattern, changesReading: Bool
  ) throws(DatabaseError) {
    let keyspace = try collection(pattern).keyspace
    put(schema, of: pattern, keyspace)
    if changesReading { changeReading(of: pattern, keyspace) }
  }

  private mutating func put(
    _ schema: SchemaHistory, of pattern: CollectionPattern, _ keyspace: Keyspace
  ) {
    isChanged = true
    family.collections[pattern]?.schema = schema
    // Older snapshots may have documents that this does not cover.
    family.readsSince = nil
    let key = CatalogKey.schema(keyspace)
    if schema.isResolved {
      change(key, schema.bytes.value)
    } else {
      schemaRows.append((key, schema))
    }
  }

  /// Records that the commit changes how documents are read. It rewrites their keyspace's row, so
  /// that commits that have read documents and guard that row are refused.
  private mutating func changeReading(of pattern: CollectionPattern, _ keyspace: Keyspace) {
    changesReading = true
    family.readsSince = nil
    change(CatalogKey.keyspace(keyspace), KeyspaceRow.documents(pattern).bytes)
  }

  /// Declares everything that is declared in an earlier incarnation of the family, which has no
  /// documents any more.
  mutating func declare(asIn earlier: Family) throws(DatabaseError) {
    let declared = earlier.collections.filter(\.value.isDeclared)
    for (pattern, entry) in declared.sorted(by: { $0.value.keyspace < $1.value.keyspace }) {
      let keyspace = try collection(pattern).keyspace
      for index in entry.allIndexes where !index.kind.isOfGroup {
        put(
          IndexDefinition(
            keyspace: try takeKeyspace(), documents: keyspace, kind: index.kind, state: .ready),
          in: pattern)
      }
      if let field = entry.timeToLive { try putTimeToLive(field, of: pattern) }
      if entry.schema.current > 0 {
        put(SchemaHistory(base: entry.schema.current), of: pattern, keyspace)
      }
    }
  }

  /// Removes an empty collection from the catalog, or the rest of an empty family.
  mutating func forget(_ keys: [[UInt8]], of pattern: CollectionPattern?) {
    isChanged = true
    deletedKeys += keys
    family.repeats.removeAll { keys.contains($0.key) }
    if let pattern { family.collections[pattern] = nil }
  }

  /// Renames a collection and everything below it.
  mutating func rename(_ renaming: CollectionRenaming) {
    isChanged = true
    changesReading = true
    family.readsSince = nil
    var collections: [CollectionPattern: CollectionEntry] = [:]
    for (pattern, entry) in family.collections {
      guard let renamed = renaming.renamed(pattern) else {
        collections[pattern] = entry
        continue
      }
      rows.catalog.directory.enter(renamed)
      if !entry.links.isEmpty { rows.catalog.directory.enterLinks(in: renamed.root) }
      collections[renamed] = entry
      change(CatalogKey.keyspace(entry.keyspace), KeyspaceRow.documents(renamed).bytes)
    }
    family.collections = collections
    guard renaming.pattern.ancestorCount == 0 else { return }
    let key = CatalogKey.family(family.root)
    deletedKeys.append(key)
    family.repeats.removeAll { $0.key == key }
    family.root = renaming.target.root
    guardedKeys.append(CatalogKey.family(family.root))
  }

  /// Fills in what is known only with the commit of this change.
  mutating func resolve(_ sequence: SequenceNumber) {
    for pattern in family.collections.keys {
      family.collections[pattern]?.schema.resolve(sequence)
    }
    for row in schemaRows {
      var schema = row.schema
      schema.resolve(sequence)
      family.repeats.append(CatalogRow(key: row.key, value: schema.bytes.value))
    }
  }

  /// Removes an index; its rows must still be removed.
  mutating func drop(_ index: IndexDefinition, from pattern: CollectionPattern) {
    isChanged = true
    family.collections[pattern]?.remove(index)
    family.dropped.append(index.keyspace)
    putRow(CatalogKey.keyspace(index.keyspace), KeyspaceRow.dropped.bytes)
  }

  /// A number for a new keyspace of the family.
  mutating func takeKeyspace() throws(DatabaseError) -> Keyspace {
    guard family.row.nextMember < Keyspace.familyCapacity else {
      throw DatabaseError(
        .resourceExhausted,
        "'\(family.root)' and what is below it have had \(Keyspace.familyCapacity - 1) collections"
          + " and indexes and can have no more", path: family.root)
    }
    isChanged = true
    defer { family.row.nextMember += 1 }
    return Keyspace(family: family.row.number, member: family.row.nextMember)
  }

  /// Adds all changes to `batch`, with the guards. The family's row is guarded even when nothing
  /// changes.
  mutating func write(to batch: inout Batch) {
    for key in guardedKeys {
      batch.guardUnchanged(key.bytes)
    }
    repeatLastChange(in: &batch)
    for key in deletedKeys { batch.deleteCatalogRow(key) }
    if isChanged {
      family.row.generation += 1
      change(CatalogKey.family(family.root), family.row.bytes)
    }
    // The engine assigns the numbers of the others.
    if isNewFamily, !family.hasOwnKey {
      var next: [UInt8] = []
      next.appendVarint(UInt64(family.row.number + 1))
      putRow(CatalogKey.nextFamily, next)
    }
    for (key, schema) in schemaRows {
      let (value, stamps) = schema.bytes
      batch.putCatalogRow(key, value, stamps: stamps)
    }
    for row in changedRows { batch.putCatalogRow(row.key, row.value) }
    family.repeats += repeats
    changesPicture = changesPicture || isChanged
  }

  /// Writes the family's last change to the mirror again, before the commit's own changes. A commit
  /// that frees space, or is large, leaves that to another.
  private mutating func repeatLastChange(in batch: inout Batch) {
    guard !family.repeats.isEmpty, !batch.freesSpace,
      batch.payloadLength <= Self.maximumRepeatingLength
    else { return }
    for row in family.repeats {
      batch.put(CatalogKey.mirrored(row.key).bytes, row.value.bytes)
    }
    family.repeats = []
    changesPicture = true
  }

  /// Changes a row that must be repeated.
  private mutating func change(_ key: [UInt8], _ value: [UInt8]) {
    repeats.append(CatalogRow(key: key, value: value))
    putRow(key, value)
  }

  private mutating func putRow(_ key: [UInt8], _ value: [UInt8]) {
    changedRows.append(CatalogRow(key: key, value: value))
  }
}
