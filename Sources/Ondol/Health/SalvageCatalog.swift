// The catalog of a database that is being salvaged: everything readable, made consistent again.
// Counters are raised above every number in use; indexes are declared as unfinished; a lost field
// name is replaced, so that the documents with it can be read.

internal import OndolEngine

/// The known collections, names and indexes.
struct SalvageCatalog {
  private(set) var patterns: [Keyspace: CollectionPattern] = [:]
  private(set) var losses: [SalvageReport.Loss] = []
  private var symbols: [Keyspace: SymbolTable] = [:]
  private var names: [Keyspace: [UInt32: String]] = [:]
  private var indexes: [Keyspace: IndexDefinition] = [:]
  /// Dropped indexes.
  private var dropped: Set<Keyspace> = []
  private var families: [ExactText: FamilyRow] = [:]
  private var nextFamily: UInt64 = 1
  /// Rows that are kept unchanged, about a keyspace or none.
  private var others: [(keyspace: Keyspace?, row: SalvagedRow)] = []
  /// For each family, the greatest number in use.
  private var members: [UInt32: UInt32] = [:]

  // MARK: - Taking rows

  /// Takes a row of keyspace 0; if it cannot be understood, takes its other value if there is one.
  mutating func take(_ row: SalvagedRow, or other: [UInt8]?) {
    do throws(MalformedBytes) {
      try parse(row)
    } catch {
      if let other, (try? parse(SalvagedRow(key: row.key, value: other))) != nil { return }
      losses.append(SalvageReport.Loss(reason: "a row of the catalog: \(error.reason)"))
    }
  }

  private mutating func parse(_ row: SalvagedRow) throws(MalformedBytes) {
    let (key, value) = (row.key, row.value)
    var reader = ByteReader(value.bytes)
    let rest = key.bytes.extracting(droppingFirst: min(key.count, 5))
    switch key.count > 4 ? key[4] : 0 {
    case 0x01 where key.count == 5:
      nextFamily = max(nextFamily, try reader.varint())
    case 0x02:
      guard let root = String(utf8: rest) else {
        throw MalformedBytes(at: 5, "the name of a collection that is not UTF-8")
      }
      families[ExactText(root)] = try FamilyRow(value.bytes)
    case 0x03:
      try parseKeyspace(row)
    case 0x04:
      for _ in 0..<(try reader.count(atMost: Int(Keyspace.familyCapacity))) {
        _ = try reader.indexKind()
      }
      others.append((nil, row))
    case 0x05:
      // Its rows are left out, so there is nothing left to remove.
      var number = ByteReader(rest)
      noteUse(
        of: Keyspace(family: UInt32(bigEndian: try number.littleEndian()) & 0xfffff, member: 0))
    case let mark:
      throw .newer(at: 4, "of the unknown kind \(mark)")
    }
  }

  private mutating func parseKeyspace(_ row: SalvagedRow) throws(MalformedBytes) {
    let (key, value) = (row.key.bytes, row.value.bytes)
    if let keyspace = try CatalogKey.keyspace(of: CatalogKey.schemaMark, key) {
      _ = try SchemaHistory(value)
      return others.append((keyspace, row))
    }
    if let keyspace = try CatalogKey.keyspace(of: CatalogKey.timeToLiveMark, key) {
      var reader = ByteReader(value)
      _ = try reader.texts()
      return others.append((keyspace, row))
    }
    if let keyspace = try CatalogKey.keyspace(of: CatalogKey.formsMark, key) {
      _ = try ValueForms(value)
      return others.append((keyspace, row))
    }
    let (keyspace, symbol) = try CatalogKey.parse(key)
    noteUse(of: keyspace)
    if let symbol {
      guard let name = String(utf8: value), symbol < SymbolTable.maximumCount else {
        throw MalformedBytes(at: 0, "a field name in keyspace \(keyspace.rawValue)")
      }
      names[keyspace, default: [:]][symbol] = name
      return
    }
    switch try KeyspaceRow(value, of: keyspace) {
    case .documents(let pattern):
      guard !pattern.collectionIDs.isEmpty else {
        throw MalformedBytes(at: 0, "keyspace \(keyspace.rawValue) is that of no collection")
      }
      patterns[keyspace] = pattern
    case .index(var index):
      index.state = .building(through: nil)
      indexes[keyspace] = index
    case .dropped: dropped.insert(keyspace)
    }
  }

  /// Records that a keyspace has been assigned.
  mutating func noteUse(of keyspace: Keyspace) {
    let (family, member) = keyspace.rawValue.quotientAndRemainder(
      dividingBy: Keyspace.familyCapacity)
    members[family] = max(members[family] ?? 0, member)
  }

  // MARK: - Lookup

  /// Whether the rows of a keyspace are those of an index, which is rebuilt.
  func isIndex(_ keyspace: Keyspace) -> Bool {
    indexes[keyspace] != nil || dropped.contains(keyspace)
  }

  /// The families with keys of their own.
  var keyedFamilies: [UInt32] {
    families.values.map(\.number).filter { $0 >= Keyspace.commonFamilyLimit }
  }

  func root(ofFamily number: UInt32) -> String? {
    families.first { $0.value.number == number }?.key.text
  }

  /// The names of a keyspace's indexes, in order.
  func indexNames(of documents: Keyspace) -> [String] {
    indexes.values.filter { $0.documents == documents }.map(\.name).sorted()
  }

  /// The names of fields in a keyspace.
  func symbols(of keyspace: Keyspace) -> SymbolTable { symbols[keyspace] ?? SymbolTable() }

  // MARK: - Lost entries

  /// Names a collection of which only documents remain, with that many ids in their keys. Nil when
  /// there is no name for it.
  mutating func adopt(_ keyspace: Keyspace, idCount: Int) -> CollectionPattern? {
    let family = keyspace.rawValue / Keyspace.familyCapacity
    let root = families.first { $0.value.number == family }?.key.text ?? "recovered-\(family)"
    // There is one collection at the top of a family; for those below, not even the ids are known.
    let inner = (1..<max(idCount, 1)).map {
      $0 + 1 == idCount ? "recovered-\(keyspace.rawValue)" : "level-\($0)"
    }
    let pattern = CollectionPattern([root] + inner)
    guard !patterns.values.contains(pattern),
      families[ExactText(root)].map({ $0.number == family }) ?? true
    else { return nil }
    patterns[keyspace] = pattern
    if families[ExactText(root)] == nil {
      families[ExactText(root)] = FamilyRow(
        number: family, generation: 1, nextMember: Keyspace.firstMember)
    }
    losses.append(
      SalvageReport.Loss(reason: "the name of a collection; it is called \(pattern) now"))
    return pattern
  }

  /// The names of a keyspace, followed by replacements for lost ones.
  func widened(_ table: SymbolTable, to count: Int) -> SymbolTable {
    var table = table
    while table.count < count, (try? table.define("lost-name-\(table.count)")) != nil {}
    return table
  }

  /// Takes a table with replacements.
  mutating func replaceNames(of keyspace: Keyspace, with table: SymbolTable) {
    let first = symbols(of: keyspace).count
    symbols[keyspace] = table
    for symbol in first..<table.count {
      names[keyspace, default: [:]][UInt32(symbol)] = table.names[symbol]
    }
    let place = patterns[keyspace]?.description ?? ""
    losses.append(
      SalvageReport.Loss(
        reason: "names of fields in \(place); they are called lost-name-\(first) and so on now"))
  }

  /// Call this when all rows have been taken.
  mutating func complete() {
    for (keyspace, pattern) in patterns {
      let known = names[keyspace] ?? [:]
      guard let last = known.keys.max() else { continue }
      var table = SymbolTable()
      for symbol in 0...last {
        if let name = known[symbol], (try? table.define(name)) != nil { continue }
        // A name of their own, so that they are not confused with other fields.
        let replacement = "lost-name-\(symbol)"
        try? table.define(replacement)
        names[keyspace]?[symbol] = replacement
        losses.append(
          SalvageReport.Loss(
            reason: "the name of a field in \(pattern); it is called \(replacement) now"))
      }
      symbols[keyspace] = table
    }
    for (keyspace, index) in indexes where patterns[index.documents] == nil {
      losses.append(
        SalvageReport.Loss(reason: "the index \(index.name) is one of an unknown collection"))
      indexes[keyspace]?.documents = .catalog
    }
  }

  // MARK: - The new catalog

  /// All rows and those of the mirror, in the order of their keys.
  mutating func rows() -> [SalvagedRow] {
    completeFamilies()
    var rows: [SalvagedRow] = []
    var next: [UInt8] = []
    next.appendVarint(nextFamily)
    rows.append(SalvagedRow(key: CatalogKey.nextFamily, value: next))
    for (root, family) in families {
      rows.append(SalvagedRow(key: CatalogKey.family(root.text), value: family.bytes))
    }
    for (keyspace, pattern) in patterns {
      let row = KeyspaceRow.documents(pattern)
      rows.append(SalvagedRow(key: CatalogKey.keyspace(keyspace), value: row.bytes))
      for (symbol, name) in names[keyspace] ?? [:] {
        rows.append(
          SalvagedRow(key: CatalogKey.symbol(symbol, of: keyspace), value: Array(name.utf8)))
      }
    }
    for (keyspace, index) in indexes where index.documents != .catalog {
      rows.append(
        SalvagedRow(key: CatalogKey.keyspace(keyspace), value: KeyspaceRow.index(index).bytes))
    }
    rows += others.filter { $0.keyspace.map { patterns[$0] != nil } ?? true }.map(\.row)
    return rows.withMirror
  }

  /// Gives every pattern a family, and raises all counters.
  private mutating func completeFamilies() {
    // A collection may have been renamed, and the row of its old name may still exist.
    let named = Set(patterns.values.map { ExactText($0.root) })
    let numbers = Dictionary(grouping: families.keys) { families[$0]?.number }
    for roots in numbers.values where roots.count > 1 {
      let real = roots.filter { named.contains($0) }
      for root in roots where !(real.isEmpty ? [roots[0]] : real).contains(root) {
        families[root] = nil
      }
    }
    for (keyspace, pattern) in patterns where families[ExactText(pattern.root)] == nil {
      let number = keyspace.rawValue / Keyspace.familyCapacity
      families[ExactText(pattern.root)] = FamilyRow(
        number: number, generation: 1, nextMember: Keyspace.firstMember)
    }
    for (root, family) in families {
      let used = (members[family.number] ?? 0) + 1
      families[root]?.nextMember = max(family.nextMember, min(used, Keyspace.familyCapacity))
    }
    // The engine assigns the numbers of the others.
    let inUse = (Array(members.keys) + families.values.map(\.number))
      .filter { $0 < Keyspace.commonFamilyLimit }
    nextFamily = max(nextFamily, UInt64(inUse.max() ?? 0) + 1)
  }
}
