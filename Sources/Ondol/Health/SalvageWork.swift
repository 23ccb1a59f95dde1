// Salvages documents, a few hundred at a time: each row that the engine can still read is checked
// and, when it is a whole document of a known collection, written unchanged into the new database.
// Rows of the catalog and its mirror come before all documents, and are written last.

internal import OndolEngine

/// A salvage under way. One thread at a time.
final class SalvageWork: @unchecked Sendable {
  // Safe: its steps are sequential, on one worker.

  private let reader: SalvageReader
  private let target: SalvageTarget
  private var copies = SalvageCopies()
  private var catalog = SalvageCatalog()
  private var tree = SalvageTree()
  private var isCatalogComplete = false
  private var collections: [Keyspace: SalvageReport.Collection] = [:]
  /// The locations of contents.
  private(set) var locations: [(digest: BlobDigest, location: ContentLocation)] = []
  /// Rows of keyspaces that the catalog does not know.
  private var strangers: [Keyspace: Int] = [:]
  private var losses: [SalvageReport.Loss] = []
  private var sequence: SequenceNumber
  private var time: Int64
  private(set) var documents = 0

  /// Rows in one step.
  private static let stepCount = 256

  init(
    from path: String, to newPath: String, environment: Environment, options: EngineOptions
  ) throws(EngineError) {
    reader = try SalvageReader(at: path, environment: environment, version: Self.version)
    sequence = reader.last.sequence
    time = reader.last.time
    target = try SalvageTarget(
      at: newPath, environment: environment, options: options,
      shardCount: reader.shardCount ?? options.shardCount)
  }

  /// The commit in a row.
  static func version(of key: [UInt8], _ value: [UInt8]) -> SequenceNumber? {
    guard !key.starts(with: Keyspace.catalog.prefix), !key.starts(with: Keyspace.mirror.prefix)
    else { return nil }
    return (try? DocumentView(value.bytes))?.version
  }

  /// Salvages some more rows; false when there is nothing left.
  func step() throws(EngineError) -> Bool {
    for _ in 0..<Self.stepCount {
      guard let row = reader.next() else { return false }
      try take(row)
    }
    return true
  }

  /// Removes what was written.
  func giveUp() { target.removeAll() }

  // MARK: - Rows

  private func take(_ row: SalvagedRow) throws(EngineError) {
    var key = ByteReader(row.key.bytes)
    guard let number = try? key.littleEndian(UInt32.self) else { return }
    let keyspace = Keyspace(rawValue: UInt32(bigEndian: number))
    if keyspace == .catalog || keyspace == .mirror { return copies.take(row) }
    if SalvageTree.hasRows(in: keyspace) {
      if tree.keeps(row, of: keyspace) { try target.add(row, upTo: sequence) }
      return
    }
    // Contents are put again, and their holders are rebuilt.
    if keyspace.rawValue < Keyspace.familyCapacity { return take(row, of: keyspace) }
    completeCatalog()
    catalog.noteUse(of: keyspace)
    guard let pattern = catalog.patterns[keyspace] ?? adopt(keyspace, row) else { return }
    do throws(MalformedBytes) {
      try check(row, keyspace, pattern)
    } catch {
      collections[keyspace]?.lost += 1
      let path = path(of: row.key)
      return losses.append(
        SalvageReport.Loss(
          reason: "a document is damaged at \(error.offset): \(error.reason)", after: path,
          before: path))
    }
    collections[keyspace]?.saved += 1
    documents += 1
    try target.add(row, upTo: sequence)
  }

  /// Takes a row about contents.
  private func take(_ row: SalvagedRow, of keyspace: Keyspace) {
    guard keyspace == ContentKey.locations else { return }
    guard let digest = try? ContentKey.digest(in: row.key.bytes),
      let location = try? ContentLocation(row.value.bytes)
    else { return losses.append(SalvageReport.Loss(reason: "where a content is")) }
    locations.append((digest, location))
  }

  /// Finds a name for the collection of a document that the catalog does not know.
  private func adopt(_ keyspace: Keyspace, _ row: SalvagedRow) -> CollectionPattern? {
    guard !catalog.isIndex(keyspace), (try? DocumentView(row.value.bytes)) != nil else {
      return nil
    }
    guard let count = Self.idCount(row.key, keyspace),
      let pattern = catalog.adopt(keyspace, idCount: count)
    else {
      strangers[keyspace, default: 0] += 1
      return nil
    }
    collections[keyspace] = SalvageReport.Collection(name: pattern.description)
    return pattern
  }

  /// The number of ids in a document's key.
  private static func idCount(_ key: [UInt8], _ keyspace: Keyspace) -> Int? {
    (1...100).first { count in
      guard let ids = try? DocumentKey.ids(in: key.bytes, ancestorCount: count - 1),
        let last = ids.last
      else { return false }
      return DocumentKey.key(keyspace, ancestors: Array(ids.dropLast()), id: last) == key
    }
  }

  private func completeCatalog() {
    guard !isCatalogComplete else { return }
    isCatalogComplete = true
    copies.isCatalogWhole = !reader.mayLackRows(ofKeyspace: Keyspace.catalog.rawValue)
    copies.isMirrorWhole = !reader.mayLackRows(ofKeyspace: Keyspace.mirror.rawValue)
    for (row, other) in copies.rows { catalog.take(row, or: other) }
    catalog.complete()
    for (keyspace, pattern) in catalog.patterns {
      collections[keyspace] = SalvageReport.Collection(
        name: pattern.description, indexes: catalog.indexNames(of: keyspace))
    }
  }

  /// Throws unless the row is a whole document.
  private func check(
    _ row: SalvagedRow, _ keyspace: Keyspace, _ pattern: CollectionPattern
  ) throws(MalformedBytes) {
    let ids = (try? DocumentKey.ids(in: row.key.bytes, ancestorCount: pattern.ancestorCount)) ?? []
    let segments = zip(pattern.collectionIDs, ids).flatMap { [$0, $1] }
    guard let last = ids.last, (try? DocumentPath(stored: segments)) != nil,
      DocumentKey.key(keyspace, ancestors: Array(ids.dropLast()), id: last) == row.key
    else { throw MalformedBytes(at: 0, "its key is not that of a document") }
    let view = try DocumentView(row.value.bytes)
    try checkNames(view, keyspace)
    guard view.version > .zero, view.version.rawValue < 1 << 62 else {
      throw MalformedBytes(at: 0, "it is of no commit")
    }
    sequence = max(sequence, view.version)
    time = max(time, view.updateTime.microsecondsSince1970)
  }

  /// Throws unless the fields are intact. Names that the catalog has lost get replacements.
  private func checkNames(
    _ view: DocumentView, _ keyspace: Keyspace
  ) throws(MalformedBytes) {
    let known = catalog.symbols(of: keyspace)
    do throws(MalformedBytes) {
      try view.check(known)
    } catch {
      for count in [64, 1024, SymbolTable.maximumCount] where count > known.count {
        let wider = catalog.widened(known, to: count)
        guard (try? view.check(wider)) != nil else { continue }
        return catalog.replaceNames(of: keyspace, with: wider)
      }
      throw error
    }
  }

  // MARK: - The end

  /// Makes a database from what was saved.
  func finish() throws(EngineError) -> SalvageReport {
    completeCatalog()
    let rows = catalog.rows()
    for number in catalog.keyedFamilies { try target.makeKeyedGroup(number) }
    try target.finish(rows, sequence: sequence, time: time)
    var report = SalvageReport()
    report.collections = collections.values.filter { !HiddenRows.isHidden(root: $0.name) }
      .sorted { $0.name < $1.name }
    if let paths = collections.values.first(where: { isSame($0.name, StorageRows.root) }) {
      report.storagePaths = paths.saved
      report.lostStoragePaths = paths.lost
    }
    report.lastVersion = sequence.rawValue
    let unread = reader.foundLosses.filter { !isOfIndex($0) }
    let hidden = reader.lossCount - reader.foundLosses.count
    losses += catalog.losses + tree.losses
    report.treeRows = tree.saved
    for (keyspace, count) in strangers.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      losses.append(
        SalvageReport.Loss(
          reason: "\(count) documents of a collection that the catalog does not know, number"
            + " \(keyspace.rawValue)"))
    }
    let all = unread.map(describe) + losses
    report.losses = Array(all.prefix(1000))
    report.lossCount = all.count + hidden
    return report
  }

  /// Whether only rows of an index can be missing, which is rebuilt.
  private func isOfIndex(_ loss: SalvageLoss) -> Bool {
    guard let after = loss.after.flatMap(keyspace), let before = loss.before.flatMap(keyspace)
    else { return false }
    return after == before && catalog.isIndex(after)
  }

  private func keyspace(of key: [UInt8]) -> Keyspace? {
    var reader = ByteReader(key.bytes)
    return (try? reader.littleEndian(UInt32.self)).map { Keyspace(rawValue: UInt32(bigEndian: $0)) }
  }

  private func describe(_ loss: SalvageLoss) -> SalvageReport.Loss {
    let (after, before) = (loss.after.flatMap(path), loss.before.flatMap(path))
    var reason = loss.reason
    // If no document is known, the loss names the collection.
    if after == nil, before == nil, let family = loss.after.flatMap(keyspace)?.keyedGroup,
      loss.before.flatMap(keyspace)?.family == family, let root = catalog.root(ofFamily: family)
    {
      reason = "of the collection '\(root)': \(reason)"
    }
    return SalvageReport.Loss(
      file: loss.file, offset: loss.offset, reason: reason, after: after, before: before)
  }

  /// The path of the document with this key, if it is a document's.
  private func path(of key: [UInt8]) -> String? {
    guard let keyspace = keyspace(of: key), let pattern = catalog.patterns[keyspace],
      let ids = try? DocumentKey.ids(in: key.bytes, ancestorCount: pattern.ancestorCount)
    else { return nil }
    return DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] }).name
  }
}
