// A segment whose file is open: footer, sections and top of the index have been read and checked.
// Reads that find their blocks in memory go by the SegmentTable alone and never come here; this is
// where the others load them.

/// An open segment file and what belongs to it.
final class OpenSegment: Sendable {
  let table: SegmentTable
  let file: any File
  private let salt: UInt64
  private let blocksEnd: UInt64
  private let errors: SegmentErrors
  private let cache: BlockCache

  /// Opens the file and checks that it is the one `metadata` describes.
  init(
    _ metadata: SegmentMetadata, identity: DatabaseIdentity, shard: UInt32,
    directory: any Directory, cache: BlockCache
  ) throws(EngineError) {
    let errors = SegmentErrors(file: metadata.number.segmentName)
    file = try directory.open(errors.file, access: .readOnly)
    let reader = try SegmentFileReader.open(file, errors)
    let footer = try reader.footer()
    try Self.check(footer, reader, metadata, identity, shard)
    let sections = try reader.sections(footer)
    let top = try reader.indexTop(sections, footer)
    var numbers = [UInt32(top.rowCount)]
    var filter = FilterBits.none
    do throws(EngineError) {
      try reader.numberDataBlocks(top, footer, &numbers)
      filter = try reader.filter(sections, footer)
    } catch {
      top.free()
      throw error
    }
    let slotCount = Int(numbers[numbers.count - 1])
    table = SegmentTable(
      top: top, slots: SlotTable(count: slotCount), filter: filter, firstDataSlots: numbers,
      meanRows: Double(footer.entries) / Double(max(1, footer.dataBlocks)))
    salt = footer.salt
    blocksEnd = footer.blocksEnd
    self.errors = errors
    self.cache = cache
    cache.register(table.slots)
    cache.reserve(table.byteCount)
  }

  deinit {
    cache.unregister(table.slots)
    cache.release(table.byteCount)
    table.free()
  }

  private static func check(
    _ footer: SegmentFooter, _ reader: SegmentFileReader, _ metadata: SegmentMetadata,
    _ identity: DatabaseIdentity, _ shard: UInt32
  ) throws(EngineError) {
    guard reader.size == metadata.sizeBytes, reader.footerChecksum == metadata.footerChecksum,
      footer.number == metadata.number, footer.salt == metadata.salt,
      footer.identity == identity, footer.shard == shard, footer.entries == metadata.entries
    else {
      throw reader.errors.corrupt(
        at: reader.size, "the file is not the one that the manifest names")
    }
  }

  /// Reads the header, which reads do without, and compares it.
  func verifyHeader(_ expected: DataFileHeader) throws(EngineError) {
    guard try file.read(at: 0, count: SegmentFormat.headerLength) == expected.encode() else {
      throw errors.corrupt(at: 0, "the header is not the one that was written")
    }
  }

  // MARK: - Loading blocks

  /// Loads index block `index`, pinned.
  func loadIndexBlock(_ index: Int, keep: Bool) throws(EngineError) -> PinnedBlock {
    let handle = try BlockHandle.parse(table.top.value(index), errors, blocksEnd)
    return try load(handle, .index, slot: index, keep: keep)
  }

  /// Loads data block `row` of index block number `index`, which is `block`, pinned.
  func loadDataBlock(
    _ index: Int, _ block: Block, _ row: Int, keep: Bool
  ) throws(EngineError) -> PinnedBlock {
    let handle = try BlockHandle.parse(block.value(row), errors, blocksEnd)
    return try load(handle, .data, slot: table.dataSlot(index, row), keep: keep)
  }

  /// Where the data block that row `row` of an index block points to is in the file.
  func dataBlockOffset(_ block: Block, _ row: Int) throws(EngineError) -> UInt64 {
    try BlockHandle.parse(block.value(row), errors, blocksEnd).offset
  }

  // MARK: - Reading ahead

  /// Tells the system that the data blocks in `rows` of the index block will be read soon.
  func adviseAhead(_ index: Block, _ rows: Range<Int>) throws(EngineError) {
    guard let first = rows.first, let last = rows.last else { return }
    let start = try BlockHandle.parse(index.value(first), errors, blocksEnd).offset
    let end = try BlockHandle.parse(index.value(last), errors, blocksEnd).offset
    guard start <= end, end - start <= UInt64(Self.mostAdvised) else { return }
    file.willRead(at: start, count: Int(end - start) + 1)
  }

  /// More than this is between two blocks only in a damaged file.
  private static let mostAdvised = 64 << 20

  private func load(
    _ handle: BlockHandle, _ kind: BlockKind, slot: Int, keep: Bool
  ) throws(EngineError) -> PinnedBlock {
    let length = UInt64(handle.storedLength) + UInt64(SegmentFormat.trailerLength)
    let (end, overflows) = handle.offset.addingReportingOverflow(length)
    guard !overflows, handle.offset >= UInt64(SegmentFormat.headerLength), end <= blocksEnd else {
      throw errors.corrupt(at: handle.offset, "a block outside the blocks")
    }
    let bytes = try file.read(at: handle.offset, count: Int(length))
    guard bytes.count == Int(length) else {
      throw errors.corrupt(at: handle.offset, "the file ends within a block")
    }
    do throws(MalformedBytes) {
      let opened = try StoredBlock.Opened(
        bytes.bytes, kind: kind, salt: salt, offset: handle.offset)
      let rowCount = Int(handle.rowCount)
      guard rowCount >= 1, rowCount <= BlockLayout.maximumRows else {
        throw MalformedBytes(at: 0, "a block of \(rowCount) rows")
      }
      let place = cache.makeRoom(
        Block.allocationSize(rowCount: rowCount, rawLength: opened.rawLength), keep: keep)
      let block: Block
      do throws(MalformedBytes) {
        block = try opened.decode(rowCount: rowCount)
      } catch {
        cache.giveBack(place)
        throw error
      }
      return cache.install(block, place, at: slot, of: table.slots, kind: kind)
    } catch {
      throw errors.corrupt(error, from: handle.offset)
    }
  }
}
