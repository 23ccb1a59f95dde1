// A segment as reads see it. Opening a database opens no segment: the file is opened when a read
// first needs it. From then on a get whose blocks are in memory is three searches (the top of the
// index, an index block, a data block) over memory that is reached without locks or reference
// counts.

internal import Synchronization

/// How a segment or run is asked for a key.
package struct ReadOptions: Sendable {
  /// Whether the caller may wait for the file.
  package var mayBlock = true
  /// Whether to ask the filter before searching blocks in memory. Right for runs that are young and
  /// small beside others; for the oldest run, which holds most keys asked for, the filter is only
  /// asked before a block is read from the file.
  package var asksFilterFirst = false

  package init(mayBlock: Bool = true, asksFilterFirst: Bool = false) {
    self.mayBlock = mayBlock
    self.asksFilterFirst = asksFilterFirst
  }
}

/// An immutable sorted file of rows, opened when first needed.
package final class Segment: Sendable {
  package let metadata: SegmentMetadata
  private let identity: DatabaseIdentity
  private let shard: UInt32
  private let directory: any Directory
  private let cache: BlockCache
  /// The value files that its rows point into.
  let valueFiles: [ValueFile]

  /// What gets go by; published when `opened` is set, which keeps it alive.
  private let published = PublishedOnce<SegmentTable>()
  private let opened = Guarded<OpenSegment?>(nil)
  private let file = Guarded<(any File)?>(nil)
  /// Set when a merge has replaced the segment: the file goes with the last view that reads it.
  private let isObsolete = Atomic(false)

  package init(
    _ metadata: SegmentMetadata, identity: DatabaseIdentity, shard: UInt32,
    directory: any Directory, cache: BlockCache, valueFiles: [ValueFile] = []
  ) {
    self.valueFiles = valueFiles
    self.metadata = metadata
    self.identity = identity
    self.shard = shard
    self.directory = directory
    self.cache = cache
  }

  deinit {
    // A file that stays is removed by the next opening, since nobody names it.
    if isObsolete.load(ordering: .relaxed) { try? directory.remove(metadata.number.segmentName) }
  }

  /// Has the file removed once nothing reads it any more.
  func removeWhenUnused() {
    isObsolete.store(true, ordering: .relaxed)
  }

  /// Has the file stay open from now on, because somebody else may remove it. To be asked for only
  /// while the directory has room for files that are held.
  func hold() throws(EngineError) {
    _ = try openFile(held: true)
  }

  private func openFile(held: Bool = false) throws(EngineError) -> any File {
    try file.withLock { (file) throws(EngineError) in
      if let file { return file }
      let opened = try directory.openForReads(metadata.number.segmentName, held: held)
      file = opened
      return opened
    }
  }

  var table: PublishedOnce<SegmentTable>.Reader { published.reader }

  /// What the first bytes of the file must be.
  var expectedHeader: DataFileHeader {
    DataFileHeader(
      kind: .segment, number: metadata.number, salt: metadata.salt, identity: identity, shard: shard
    )
  }

  /// Searches for `key`, whose KeyHash is `hash`.
  ///
  /// - Complexity: O(log rows). Nothing is allocated or counted, and no lock taken, when the blocks
  ///   are in memory; otherwise `pread` for each block that is not, and for the index once.
  @_lifetime(borrow self)
  package func get(
    _ key: RawSpan, hash: UInt64, _ options: ReadOptions = ReadOptions()
  ) throws(EngineError) -> Lookup {
    if let table = published.reader.value {
      if options.asksFilterFirst, !table.filter.mayContain(hash) { return .absent }
      switch table.find(key) {
      case .found(let pin, let row): return .found(PinnedRow(pin, row: row, owner: self))
      case .absent: return .absent
      case .notInMemory: break
      }
    }
    return try load(key, hash, options)
  }

  // MARK: - Reads that need the file

  /// As `get`, reading what is not in memory, unless the filter says that it is not worth it.
  @_lifetime(borrow self)
  func load(
    _ key: RawSpan, _ hash: UInt64, _ options: ReadOptions
  ) throws(EngineError) -> Lookup {
    if let table = published.reader.value, !table.mayContain(hash) { return .absent }
    // A key between two segments of a run is looked for in the second, which need not be readable.
    let minKey = metadata.minKey
    let isBefore = key.compare(minKey.bytes) < 0
    if isBefore { return .absent }
    guard options.mayBlock else { return .wouldBlock }
    let segment = try open()
    guard try segment.mayContain(hash, isYoung: options.asksFilterFirst) else { return .absent }
    let table = segment.table
    let index = table.top.lowerBound(key)
    guard index < table.top.rowCount else { return .absent }
    let indexPin = try indexBlock(index, keep: true)
    let row = indexPin.block.lowerBound(key)
    guard row < indexPin.block.rowCount else { return .absent }
    let pin = try dataBlock(index, indexPin.block, row, keep: true)
    guard let row = pin.block.find(key) else {
      segment.noteSearch(found: false)
      return .absent
    }
    segment.noteSearch(found: true)
    return .found(PinnedRow(pin, row: row, owner: self))
  }

  /// The open file, opened now when it was not yet. Blocks: several `pread` calls the first time.
  @inline(never)
  func open() throws(EngineError) -> OpenSegment {
    try opened.withLock { (opened) throws(EngineError) in
      if let opened { return opened }
      let segment = try OpenSegment(
        metadata, identity: identity, shard: shard, file: try openFile(), cache: cache)
      opened = segment
      published.publish(segment.table)
      return segment
    }
  }

  /// Index block `index`, pinned.
  func indexBlock(_ index: Int, keep: Bool) throws(EngineError) -> PinnedBlock {
    let segment = try open()
    if let pin = segment.table.slots.pinOrResident(index) { return pin }
    return try segment.loadIndexBlock(index, keep: keep)
  }

  /// Data block `row` of index block number `index`, which is `block`, pinned.
  func dataBlock(
    _ index: Int, _ block: Block, _ row: Int, keep: Bool
  ) throws(EngineError) -> PinnedBlock {
    let segment = try open()
    if let pin = segment.table.slots.pin(segment.table.dataSlot(index, row)) { return pin }
    return try segment.loadDataBlock(index, block, row, keep: keep)
  }
}
