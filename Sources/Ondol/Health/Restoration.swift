// Makes a database from the contents of another one: for loading a dump. Rows go to their target in
// the order of their keys. The rest (contents, holders, indexes) is determined with the database
// open. Documents keep their versions and times, and new commits continue after the last one. The
// input may be hostile: it is checked like an app's writes, and refused with a reason.

internal import Logging
package import OndolEngine

/// A database under construction: declarations, then nodes of the tree, then collection by
/// collection in the order of their declaration, then `open`, contents and derivations, then
/// `finish`.
package final class Restoration: @unchecked Sendable {
  // Safe: its steps are sequential.

  private struct Collection {
    var pattern: CollectionPattern
    var keyspace: Keyspace
    var indexes: [IndexDefinition] = []
    var timeToLive: [String]?
    var schema: [UInt8]?
  }

  private let target: RestorationTarget
  private var collections: [Collection] = []
  private var lastDeclared: DumpedCollection?
  private var families: [(root: String, row: FamilyRow)] = []
  private var roots: Set<ExactText> = []
  /// The number of the next family without a key of its own.
  private var nextFamily: UInt32 = 1
  private var groups: [SalvagedRow] = []
  /// The place of the collection whose documents are being added.
  private var current: Int?
  private var encoder = ValueEncoder(SymbolTable())
  private var catalog: [SalvagedRow] = []
  private var lastKey: [UInt8] = []
  /// Rows that are poured together, because each pour changes threads.
  private var pending: [SalvagedRow] = []
  private var pendingBytes = 0
  /// The key of the last leaf of the tree.
  private var leaf: [UInt8]?
  private var sequence = SequenceNumber.zero
  private var time: Int64 = 0
  private var database: Database?
  /// Whether the database reclaims no contents, which have no holder before the load is complete.
  private var keepsContents = false

  /// Begins a database in the directory at `path`, which must be new or empty.
  ///
  /// - Parameter encryption: the key that encrypts it.
  package static func begin(
    at path: String, encryption: Database.Encryption? = nil
  ) async throws(DatabaseError) -> Restoration {
    try encryption?.check(for: path)
    return try await begin(at: path, environment: .live().opening(with: encryption))
  }

  package static func begin(
    at path: String, environment: Environment, engineOptions: EngineOptions = EngineOptions()
  ) async throws(DatabaseError) -> Restoration {
    Restoration(
      try await RestorationTarget.files(at: path, environment, engineOptions))
  }

  /// Begins a database on a store, which must not have any commits yet.
  ///
  /// - Parameter makeStore: makes a connection to the store, a new one each time.
  package static func begin(
    on makeStore: @escaping StoreMaker, environment: Environment
  ) async throws(DatabaseError) -> Restoration {
    Restoration(try await RestorationTarget.store(makeStore, environment))
  }

  private init(_ target: RestorationTarget) {
    self.target = target
  }

  /// Removes everything that was made.
  package func abandon() async {
    endKeepingContents()
    try? await database?.close()
    await target.removeAll()
  }

  // MARK: - Declarations

  /// Declares a pattern; call it in order. Returns whether it gets the key of its own that it asks
  /// for: not when the database is not encrypted.
  @discardableResult
  package func declare(_ collection: DumpedCollection) throws(DatabaseError) -> Bool {
    let pattern = CollectionPattern(collection.pattern)
    if let last = lastDeclared, !last.comes(before: collection) {
      throw Self.refusal(
        collection.isStorage && !last.isStorage
          ? "storage paths come first" : "the collections are not in order")
    }
    lastDeclared = collection
    if !collection.isStorage, !HiddenRows.hasRecords(pattern) {
      // Checked like an app's collection, with an id that any document may have between two.
      _ = try CollectionPath(
        segments: Array(collection.pattern.map { [$0] }.joined(separator: ["x"])))
    } else if collection.hasOwnKey {
      throw Self.refusal("\(pattern) cannot have a key of its own")
    }
    let hasOwnKey = collection.hasOwnKey && target.makesKeys
    func takeKeyspace() throws(DatabaseError) -> Keyspace {
      try self.takeKeyspace(pattern.root, hasOwnKey: hasOwnKey)
    }
    var declared = Collection(pattern: pattern, keyspace: try takeKeyspace())
    for index in collection.indexes {
      declared.indexes.append(
        IndexDefinition(
          keyspace: try takeKeyspace(), documents: declared.keyspace,
          kind: try Self.kind(index), state: .building(through: nil)))
    }
    if let names = collection.timeToLive { _ = try FieldPath(names).names() }
    if let schema = collection.schema {
      let history = try Self.checkingRow { () throws(MalformedBytes) in
        try SchemaHistory(schema.bytes)
      }
      for epoch in history.epochs {
        guard epoch.since < 1 << 62 else { throw Self.refusal("a schema begins with no commit") }
        // Documents written from now on have the last schema.
        sequence = max(sequence, SequenceNumber(rawValue: epoch.since))
      }
    }
    declared.timeToLive = collection.timeToLive
    declared.schema = collection.schema
    collections.append(declared)
    return hasOwnKey
  }

  /// Declares the indexes of a collection group.
  package func declareGroup(_ id: String, _ indexes: [DumpedIndex]) throws(DatabaseError) {
    _ = try CollectionPath(segments: [id])
    var value: [UInt8] = []
    value.appendVarint(indexes.count)
    for index in indexes { value.append(try Self.kind(index)) }
    groups.append(SalvagedRow(key: CatalogKey.group(id), value: value))
  }

  private func takeKeyspace(
    _ root: String, hasOwnKey: Bool
  ) throws(DatabaseError) -> Keyspace {
    if families.last.map({ ExactText($0.root) }) != ExactText(root) {
      guard roots.insert(ExactText(root)).inserted else {
        throw Self.refusal("'\(root)' both has a key of its own and has none")
      }
      let number = try takeFamily(hasOwnKey: hasOwnKey)
      families.append(
        (root, FamilyRow(number: number, generation: 1, nextMember: Keyspace.firstMember)))
    }
    let last = families.count - 1
    guard (families[last].row.number >= Keyspace.commonFamilyLimit) == hasOwnKey else {
      throw Self.refusal("'\(root)' both has a key of its own and has none")
    }
    let member = families[last].row.nextMember
    guard member < Keyspace.familyCapacity else { throw Self.refusal("too many collections") }
    families[last].row.nextMember += 1
    return Keyspace(family: families[last].row.number, member: member)
  }

  private func takeFamily(hasOwnKey: Bool) throws(DatabaseError) -> UInt32 {
    if hasOwnKey {
      let count = families.count { $0.row.number >= Keyspace.commonFamilyLimit }
      guard count < KeyedGroups.mostAtOnce else {
        throw Self.refusal("more than \(count) collections have keys of their own")
      }
      return Keyspace.commonFamilyLimit + UInt32(count)
    }
    guard nextFamily < Keyspace.commonFamilyLimit else {
      throw Self.refusal("too many collections")
    }
    defer { nextFamily += 1 }
    return nextFamily
  }

  private static func kind(_ index: DumpedIndex) throws(DatabaseError) -> IndexKind {
    let kind = try checkingRow { () throws(MalformedBytes) in
      var reader = ByteReader(index.definition.bytes)
      let kind = try reader.indexKind()
      guard reader.isAtEnd else { throw MalformedBytes(at: reader.offset, "it goes on") }
      return kind
    }
    let names = [kind.name, kind.formerName].compactMap { $0.map { ExactText($0) } }
    guard names.contains(ExactText(index.name)) else {
      throw refusal("the definition of the index \"\(index.name)\" is that of \"\(kind.name)\"")
    }
    return kind
  }

  // MARK: - The tree

  /// Adds a node of the tree; call it in the tree's order.
  package func add(_ node: DumpedNode) async throws(DatabaseError) {
    let place = try Self.place(node.path)
    var row = TreeRow(priority: node.priority, arrayLength: node.arrayLength)
    if let value = node.value { row.leaf = .value(try Self.scalar(value)) }
    if let time = node.time {
      guard node.value == nil, Timestamp.isInRange(time) else {
        throw Self.refusal("a node of the tree has a time that cannot be")
      }
      row.leaf = .time(time)
    }
    if let priority = node.priority {
      guard try Self.scalar(priority).boolean == nil else {
        throw Self.refusal("a node of the tree has a priority that is none")
      }
    }
    if let leaf, place.rowKey.starts(with: leaf) {
      throw Self.refusal("a node of the tree is below one with a value")
    }
    if row.leaf != nil { leaf = place.rowKey }
    let bytes = row.bytes.row
    // The checks of the reader of rows.
    try Self.checkingRow { () throws(MalformedBytes) in _ = try TreeRow(bytes.bytes) }
    try await add(SalvagedRow(key: place.rowKey, value: bytes))
  }

  /// Adds an index of the tree; call it in order, after all nodes.
  package func add(_ index: DumpedTreeIndex) async throws(DatabaseError) {
    let way = try Self.place(index.child)
    guard way.depth > 0 else { throw Self.refusal("an index of the tree by nothing") }
    let definition = TreeIndexDefinition(
      node: try Self.place(index.path).rowKey,
      way: Array(way.rowKey.dropFirst(TreeKey.root.count)))
    try await add(SalvagedRow(key: definition.declarationKey, value: []))
  }

  private static func place(_ keys: [String]) throws(DatabaseError) -> TreePath {
    var path = TreePath.root
    for key in keys { path = try path.appending(key: key) }
    return path
  }

  private static func scalar(_ value: Value) throws(DatabaseError) -> Value {
    switch value {
    case .boolean, .integer, .string: return value
    case .double(let number) where number.isFinite: return value
    default: throw refusal("a node of the tree cannot have \(value)")
    }
  }

  // MARK: - Documents

  /// Announces the documents of the declared collection at this place.
  package func begin(_ place: Int) throws(DatabaseError) {
    guard collections.indices.contains(place), place > current ?? -1 else {
      throw Self.refusal("the collections are not in order")
    }
    endCollection()
    current = place
  }

  /// Adds a document of the collection that began last; call it in the order of their ids.
  package func add(_ document: DumpedDocument) async throws(DatabaseError) {
    guard let current else { throw Self.refusal("a document of no collection") }
    let collection = collections[current]
    let path = try Self.path(document.name, in: collection.pattern)
    guard document.version > 0, document.version < 1 << 62 else {
      throw Self.refusal("a document cannot have version \(document.version)")
    }
    guard document.created <= document.updated else {
      throw Self.refusal("a document cannot be changed before it was created")
    }
    if path.lacksObject(document.fields) {
      throw Self.refusal("\"\(document.name)\" has no content, or no metadata")
    }
    // Names and nesting are checked like those of a write.
    _ = try WriteCompiler.set(FieldInput(.map(document.fields)))
    try encoder.encode(document.fields, createTime: document.created)
    var row = encoder.bytes
    row.replace(document.version, at: 0)
    row.replace(UInt64(bitPattern: document.updated.microsecondsSince1970), at: 8)
    sequence = max(sequence, SequenceNumber(rawValue: document.version))
    time = max(time, document.updated.microsecondsSince1970)
    try await add(SalvagedRow(key: DocumentKey.key(collection.keyspace, path), value: row))
  }

  private static func path(
    _ name: String, in pattern: CollectionPattern
  ) throws(DatabaseError) -> DocumentPath {
    if pattern == StorageRows.pattern {
      let path = StorageRows.document(at: name)
      guard path.storagePath.map({ isSame($0, name) }) == true else {
        throw refusal("\"\(name)\" is no storage path")
      }
      return path
    }
    if HiddenRows.hasRecords(pattern) {
      guard let path = HiddenRows.record(named: name, in: pattern) else {
        throw refusal("\"\(name)\" is no record of the database's own in \(pattern)")
      }
      return path
    }
    let path = try DocumentPath(name)
    guard CollectionPattern(collectionOf: path) == pattern else {
      throw refusal("\"\(name)\" is no document of \(pattern)")
    }
    return path
  }

  private func endCollection() {
    guard let current else { return }
    let keyspace = collections[current].keyspace
    for (symbol, name) in encoder.symbols.names.enumerated() {
      catalog.append(
        SalvagedRow(key: CatalogKey.symbol(UInt32(symbol), of: keyspace), value: Array(name.utf8)))
    }
    if !encoder.symbols.forms.isEmpty {
      catalog.append(
        SalvagedRow(key: CatalogKey.forms(keyspace), value: encoder.symbols.forms.bytes))
    }
    encoder = ValueEncoder(SymbolTable())
  }

  private func add(_ row: SalvagedRow) async throws(DatabaseError) {
    guard lastKey.lexicographicallyPrecedes(row.key) else {
      throw Self.refusal("it is not behind the one before, or the same")
    }
    lastKey = row.key
    pending.append(row)
    pendingBytes += row.key.count + row.value.count
    if pending.count >= 512 || pendingBytes >= 1 << 20 { try await pour() }
  }

  /// Pours the collected rows into segments.
  private func pour() async throws(DatabaseError) {
    let (rows, sequence) = (pending, max(sequence, SequenceNumber(rawValue: 1)))
    pending.removeAll(keepingCapacity: true)
    pendingBytes = 0
    try await target.add(rows, upTo: sequence)
  }

  // MARK: - The end

  /// Makes a database from everything that was added, without contents and indexes yet.
  package func open() async throws(DatabaseError) {
    endCollection()
    try await pour()
    let rows = catalogRows()
    let (sequence, time) = (sequence, time)
    let groups = families.map(\.row.number).filter { $0 >= Keyspace.commonFamilyLimit }
    try await target.finish(rows, groups: groups, sequence: sequence, time: time)
    var options = Database.Options()
    // Messages about index builds are of no interest here.
    options.logger.logLevel = .error
    let database = try await target.open(options)
    self.database = database
    try await database.contents.reclaimer.takeTurn()
    keepsContents = true
    try await database.orderSalvagedTree()
  }

  private func catalogRows() -> [SalvagedRow] {
    var rows = catalog + groups
    var next: [UInt8] = []
    next.appendVarint(UInt64(nextFamily))
    rows.append(SalvagedRow(key: CatalogKey.nextFamily, value: next))
    for family in families {
      rows.append(SalvagedRow(key: CatalogKey.family(family.root), value: family.row.bytes))
    }
    for collection in collections {
      let row = KeyspaceRow.documents(collection.pattern)
      rows.append(SalvagedRow(key: CatalogKey.keyspace(collection.keyspace), value: row.bytes))
      for index in collection.indexes {
        let row = KeyspaceRow.index(index)
        rows.append(SalvagedRow(key: CatalogKey.keyspace(index.keyspace), value: row.bytes))
      }
      if let names = collection.timeToLive {
        var value: [UInt8] = []
        value.append(texts: names)
        rows.append(SalvagedRow(key: CatalogKey.timeToLive(collection.keyspace), value: value))
      }
      if let schema = collection.schema {
        rows.append(SalvagedRow(key: CatalogKey.schema(collection.keyspace), value: schema))
      }
    }
    return rows.withMirror
  }

  /// Stores a content, whose bytes `next` gives some at a time.
  ///
  /// Throws `.invalidArgument` when they do not match the digest.
  package func add(
    _ digest: BlobDigest, _ next: () async throws -> [UInt8]?
  ) async throws {
    guard let database else { throw Self.refusal("the database is not open yet") }
    let intake = database.contents.beginIntake()
    do {
      while let piece = try await next() { try await intake.append(piece) }
    } catch {
      await intake.abandon()
      throw error
    }
    try await database.contents.lease(try await intake.finish(expecting: digest))
  }

  /// Stores a content whose bytes are elsewhere.
  package func add(away digest: BlobDigest, length: Int64) async throws(DatabaseError) {
    guard let database else { throw Self.refusal("the database is not open yet") }
    let content = try BlobReference(digest: digest, length: Int(length)).exchanged
    try await database.contents.expect(digest, length: content?.length ?? .max)
  }

  /// Records that a content was made from another; both must be stored.
  package func add(_ derivation: DumpedDerivation) async throws(DatabaseError) {
    guard let database else { throw Self.refusal("the database is not open yet") }
    guard 1...DerivedRows.maximumNameLength ~= derivation.name.utf8.count else {
      throw Self.refusal("\"\(derivation.name)\" is no name for what is made")
    }
    let batch = try await database.read(try database.engineSnapshot()) {
      (rows) throws(DatabaseError) in
      var batch = Batch()
      batch.basis = rows.snapshot.sequence
      guard try !rows.leads(from: derivation.child.digest, to: derivation.parent, in: &batch) else {
        throw Self.refusal("a content that is made from itself")
      }
      guard try rows.location(of: derivation.parent) != nil else {
        throw Self.refusal("the content \(derivation.parent.hex) is missing")
      }
      let key = DerivedRows.key(derivation.parent, derivation.name)
      batch.put(key.bytes, DerivedRows.value(derivation.child).bytes)
      var holding = ContentHolding()
      holding.add(derivation.child.digest, holder: key)
      try holding.settle(into: &batch, rows)
      return batch
    }
    try await rethrowing { () async throws(EngineError) in
      _ = try await database.engine.commit(batch, durability: .process)
    }
  }

  /// Makes documents hold their contents, builds all indexes, and closes the database.
  ///
  /// Throws `.failedPrecondition` when a content is missing or an index cannot be built.
  package func finish() async throws(DatabaseError) {
    guard let database else { throw Self.refusal("the database is not open yet") }
    if let lost = try await database.rebuildHolders().first {
      throw Self.refusal(
        "the content \(lost.digest.hex) that \(lost.document.name) refers to is missing")
    }
    endKeepingContents()
    await database.finishWhatWasBegun()
    try await checkIndexes(database)
    try await database.synchronize()
    try await database.close()
    self.database = nil
    await target.close()
  }

  private func endKeepingContents() {
    guard keepsContents else { return }
    keepsContents = false
    database?.contents.reclaimer.endTurn()
  }

  /// Throws unless all indexes exist: one that cannot be built is dropped.
  private func checkIndexes(_ database: Database) async throws(DatabaseError) {
    var ready: [CollectionPattern: Set<ExactText>] = [:]
    for family in try await database.families() {
      for (pattern, entry) in family.collections {
        ready[pattern] = Set(
          // An index with an app's own tokenizer is built when the app opens the database.
          entry.allIndexes.filter { $0.state == .ready || !database.catalog.canBuild($0.kind) }
            .map { ExactText($0.name) })
      }
    }
    for collection in collections {
      for index in collection.indexes
      where ready[collection.pattern]?.contains(ExactText(index.name)) != true {
        throw Self.refusal(
          "documents of \(collection.pattern) disagree with the index '\(index.name)'")
      }
    }
  }

  private static func refusal(_ reason: String) -> DatabaseError {
    DatabaseError(.failedPrecondition, reason)
  }

  @discardableResult
  private static func checkingRow<R>(
    _ body: () throws(MalformedBytes) -> R
  ) throws(DatabaseError) -> R {
    do throws(MalformedBytes) {
      return try body()
    } catch {
      throw refusal(error.reason)
    }
  }
}

extension [UInt8] {
  /// Writes a number over eight bytes, low byte first.
  fileprivate mutating func replace(_ number: UInt64, at offset: Int) {
    for index in 0..<8 {
      self[offset + index] = UInt8(truncatingIfNeeded: number >> UInt64(8 * index))
    }
  }
}
