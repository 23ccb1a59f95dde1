// A segment as reads see it. Opening a database opens no segment: the file is opened when a read
// first needs it. From then on, a get whose blocks are in memory is three searches (the top of the
// index, an index block, a data block) over memory that is accessed without locks or reference
// counts.

/// How a segment or run is searched for a key.
struct ReadOptions: Sendable {
  /// Whether the caller may wait for the file.
  var mayBlock = true
  /// Whether to check the filter before searching blocks in memory. True for runs that are young
  /// and small compared with others. For the oldest run, which holds most requested keys, the
  /// filter is checked only before a block is read from the file.
  var asksFilterFirst = false
}

/// An immutable sorted file of rows, opened when first needed.
final class Segment: Sendable {
  let metadata: SegmentMetadata
  private let identity: DatabaseIdentity
  private let shard: UInt32
  private let cache: BlockCache
  /// The file; when a merge has replaced the segment, it is removed with the last view that reads
  /// it.
  let data: DataFile
  /// The value files that its rows point into.
  let valueFiles: [ValueFile]

  /// The table that gets use; published when `opened` is set, which keeps it alive.
  private let published = PublishedOnce<SegmentTable>()
  private let opened = Guarded<OpenSegment?>(nil)
  /// The numbers of rows before each index block, as far as counted; see `Run.extent`.
  let rowSums = Guarded<[Int]>([0])

  init(
    _ metadata: SegmentMetadata, identity: DatabaseIdentity, shard: UInt32,
    directory: any Directory, cache: BlockCache, valueFiles: [ValueFile] = []
  ) {
    self.valueFiles = valueFiles
    self.metadata = metadata
    self.identity = identity
    self.shard = shard
    data = DataFile(metadata.number.segmentName, in: directory)
    self.cache = cache
  }

  var table: PublishedOnce<SegmentTable>.Reader { published.reader }

  /// The required first bytes of the file.
  var expectedHeader: DataFileHeader {
    DataFileHeader(
      kind: .segment, number: metadata.number, salt: metadata.salt, identity: identity,
      shard: shard, isSealed: data.keyring?.seals(metadata.number) ?? false,
      group: metadata.group)
  }

  // MARK: - Reads that need the file

  /// Searches for `key`, whose KeyHash is `hash`, and reads what is not in memory, unless the
  /// filter excludes the key.
  ///
  /// - Complexity: O(log rows); `pread` for each block that is not in memory, and for the index
  ///   once.
  func load(
    _ key: RawSpan, _ hash: UInt64, _ options: ReadOptions
  ) throws(EngineError) -> Lookup {
    if let table = published.reader.value, !table.mayContain(hash) { return .absent }
    // A key between two segments of a run is looked up in the second, which need not be readable.
    let minKey = metadata.minKey
    let isBefore = key.compare(minKey.bytes) < 0
    if isBefore { return .absent }
    guard options.mayBlock else { return .notInMemory }
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
    return .found(pin, row: row)
  }

  /// The open file, opened now if necessary. Blocks: several `pread` calls the first time.
  @inline(never)
  func open() throws(EngineError) -> OpenSegment {
    try opened.withLock { (opened) throws(EngineError) in
      if let opened { return opened }
      let segment = try OpenSegment(
        metadata, identity: identity, shard: shard, file: try data.open(), cache: cache,
        seal: data.keyring?.seal(
          .segment, number: metadata.number, salt: metadata.salt, group: metadata.group))
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
