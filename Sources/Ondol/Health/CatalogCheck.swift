// Checks whether the catalog's rows are readable, and agree with each other and with the existing
// rows: the next numbers to be assigned must be above all numbers in use, or two things would share
// one.

internal import OndolEngine

/// A walk over keyspace 0.
struct CatalogCheck: Sendable {
  private(set) var findings = FindingList()
  /// The root collections whose own rows are sound.
  private(set) var roots: [String] = []

  private let rows: Rows
  private let shards: Int
  private var nextFamily: UInt64?
  private var families: [UInt32: (root: String, row: FamilyRow)] = [:]
  private var dropped: Set<UInt32> = []
  private var patterns: [Keyspace: CollectionPattern] = [:]
  private var indexes: [IndexDefinition] = []
  /// Keyspaces that rows refer to, in order.
  private var keyspaces: [Keyspace] = []
  private var names: (keyspace: Keyspace, symbols: SymbolTable)?

  init(_ rows: Rows, shards: Int) {
    self.rows = rows
    self.shards = shards
  }

  /// Walks all rows. Blocks the thread while blocks are read from disk.
  mutating func run() {
    do throws(DatabaseError) {
      var walk = RangeWalk(rows, [KeyRange(prefix: Keyspace.catalog.prefix)])
      while try walk.next() {
        let (key, value) = (walk.cursor.key.array, try walk.value.array)
        do throws(MalformedBytes) {
          try take(key, value)
        } catch {
          note(
            error.isOfNewerVersion
              ? "a newer version wrote a row of the catalog: \(error.reason)"
              : "a row of the catalog is damaged: \(error.reason)")
        }
      }
    } catch {
      findings.append(Finding(error, .catalog))
    }
    compareFamilies()
    compareKeyspaces()
    do throws(DatabaseError) {
      try lookBeyondCounters()
    } catch {
      findings.append(Finding(error, .catalog))
    }
  }

  // MARK: - Single rows

  private mutating func take(_ key: [UInt8], _ value: [UInt8]) throws(MalformedBytes) {
    var reader = ByteReader(value.bytes)
    let rest = key.bytes.extracting(droppingFirst: min(key.count, 5))
    switch key.count > 4 ? key[4] : 0 {
    case 0x01 where key.count == 5:
      nextFamily = try reader.varint()
    case 0x02:
      guard let root = String(utf8: rest) else {
        throw MalformedBytes(at: 5, "the name of a collection that is not UTF-8")
      }
      let row = try FamilyRow(value.bytes)
      if let other = families.updateValue((root, row), forKey: row.number) {
        note("\(root) and \(other.root) have the same number, \(row.number)")
      }
      roots.append(root)
    case 0x03:
      try takeKeyspace(key, value)
    case 0x04:
      guard String(utf8: rest) != nil else {
        throw MalformedBytes(at: 5, "the name of a collection group that is not UTF-8")
      }
      for _ in 0..<(try reader.count(atMost: Int(Keyspace.familyCapacity))) {
        _ = try reader.indexKind()
      }
    case 0x05:
      var number = ByteReader(rest)
      dropped.insert(UInt32(bigEndian: try number.littleEndian()))
      _ = try reader.count(atMost: Int(Keyspace.familyCapacity))
    case let mark:
      throw .newer(at: 4, "a row of the unknown kind \(mark)")
    }
  }

  private mutating func takeKeyspace(_ key: [UInt8], _ value: [UInt8]) throws(MalformedBytes) {
    if let keyspace = try CatalogKey.keyspace(of: CatalogKey.schemaMark, key.bytes) {
      keyspaces.append(keyspace)
      _ = try SchemaHistory(value.bytes)
      return
    }
    if let keyspace = try CatalogKey.keyspace(of: CatalogKey.timeToLiveMark, key.bytes) {
      keyspaces.append(keyspace)
      var reader = ByteReader(value.bytes)
      _ = try reader.texts()
      return
    }
    if let keyspace = try CatalogKey.keyspace(of: CatalogKey.formsMark, key.bytes) {
      keyspaces.append(keyspace)
      _ = try ValueForms(value.bytes)
      return
    }
    let (keyspace, symbol) = try CatalogKey.parse(key.bytes)
    if let symbol {
      if names?.keyspace != keyspace { names = (keyspace, SymbolTable()) }
      guard let name = String(utf8: value.bytes), names?.symbols.count == Int(symbol) else {
        throw MalformedBytes(at: 0, "a field name out of order in keyspace \(keyspace.rawValue)")
      }
      try names?.symbols.define(name)
      return
    }
    keyspaces.append(keyspace)
    switch try KeyspaceRow(value.bytes, of: keyspace) {
    case .documents(let pattern):
      guard !pattern.collectionIDs.isEmpty else {
        throw MalformedBytes(at: 0, "keyspace \(keyspace.rawValue) is that of no collection")
      }
      patterns[keyspace] = pattern
    case .index(let index): indexes.append(index)
    case .dropped: break
    }
  }

  // MARK: - Together

  private mutating func compareFamilies() {
    for (number, family) in families.sorted(by: { $0.key < $1.key }) {
      // The engine assigns the numbers of the others.
      let isCounted = number < Keyspace.commonFamilyLimit
      if number == 0 || isCounted && UInt64(number) >= nextFamily ?? 0 {
        note(
          "its number is \(number), and the next to be given out is \(nextFamily ?? 0)",
          family.root)
      }
      if dropped.contains(number) {
        note("it is said to have been dropped, and is there", family.root)
      }
    }
  }

  private mutating func compareKeyspaces() {
    for keyspace in keyspaces {
      let (number, member) = keyspace.rawValue.quotientAndRemainder(
        dividingBy: Keyspace.familyCapacity)
      guard let family = families[number] else {
        note("keyspace \(keyspace.rawValue) belongs to no collection")
        continue
      }
      if member >= family.row.nextMember {
        note(
          "keyspace \(member) is in use, and the next to be given out is"
            + " \(family.row.nextMember)", family.root)
      }
      if let pattern = patterns[keyspace], ExactText(pattern.root) != ExactText(family.root) {
        note("keyspace \(keyspace.rawValue) is that of \(pattern)", family.root)
      }
    }
    for index in indexes {
      guard let pattern = patterns[index.documents] else {
        note("the index \(index.name) is one of an unknown collection")
        continue
      }
      if index.keyspace.rawValue / Keyspace.familyCapacity
        != index.documents.rawValue / Keyspace.familyCapacity
      {
        note("the index \(index.name) belongs to another collection", pattern.description)
      }
    }
  }

  // MARK: - Unknown rows

  /// Looks for rows in keyspaces that have not been assigned yet.
  private mutating func lookBeyondCounters() throws(DatabaseError) {
    for (number, family) in families.sorted(by: { $0.key < $1.key })
    where family.row.nextMember < Keyspace.familyCapacity
      && !rows.catalog.keys.isLocked(family: number)
    {
      let first = Keyspace(family: number, member: family.row.nextMember)
      let last = Keyspace(family: number, member: Keyspace.familyCapacity - 1)
      let range = KeyRange(lower: first.prefix, upper: last.prefix + [0xff])
      try lookForRows(in: range, family.root)
    }
    let limit = Keyspace.commonFamilyLimit
    guard let nextFamily, nextFamily < UInt64(limit) else { return }
    // As many families as there are shards are in all of them, and a cursor stays in its shard.
    let end = min(UInt64(limit), nextFamily + UInt64(shards))
    let upper = Keyspace(family: limit, member: 0).prefix
    for number in UInt32(nextFamily)..<UInt32(end) {
      // After the mirror, which exists before there is a first family.
      let first = max(
        Keyspace(family: number, member: 0).rawValue, Keyspace.mirror.rawValue + 1)
      let lower = Keyspace(rawValue: first).prefix
      try lookForRows(in: KeyRange(lower: lower, upper: upper), nil)
    }
  }

  private mutating func lookForRows(
    in range: KeyRange, _ root: String?
  ) throws(DatabaseError) {
    var walk = RangeWalk(rows, [range])
    guard try walk.next() else { return }
    var reader = ByteReader(walk.cursor.key)
    let number = (try? reader.littleEndian(UInt32.self)).map { UInt32(bigEndian: $0) }
    note("there are rows in keyspace \(number ?? 0), which is not yet in use", root)
  }

  private mutating func note(_ message: String, _ collection: String? = nil) {
    findings.append(
      Finding(
        .error, .catalog, message, collection: collection, hint: Finding.damageHint))
  }
}
