// A segment whose file is open: footer, sections and top of the index have been read and checked.
// Reads that find their blocks in memory use only the SegmentTable; for the others, this loads the
// blocks.
//
// The filters of a large database have as many bytes as a small cache. As many as fit into a
// quarter of it are kept whole, from their first use until their segments are closed. Of the
// others, parts are read like blocks, on request, and evicted like them.

internal import Synchronization

/// An open segment file and its parts.
final class OpenSegment: Sendable {
  let table: SegmentTable
  let file: any File
  private let salt: UInt64
  /// Opens its blocks; nil when they are not encrypted.
  private let seal: FileSeal?
  private let blocksEnd: UInt64
  private let errors: SegmentErrors
  private let cache: BlockCache
  /// Where the filter is, when it is kept in parts.
  private let filterParts: FilterParts?
  /// Where it is when it is kept whole, and whether it has been loaded.
  private let wholeFilter: (reader: SegmentFileReader, section: SegmentSection)?
  private let isFilterLoaded = Guarded(false)
  private let filterUnit: SealedUnit
  /// How many more blocks were read recently for absent keys than for present ones.
  private let searchesInVain = Atomic(0)

  /// Checks that `file` is the one that `metadata` describes.
  init(
    _ metadata: SegmentMetadata, identity: DatabaseIdentity, shard: UInt32,
    file: any File, cache: BlockCache, seal: FileSeal? = nil
  ) throws(EngineError) {
    let errors = SegmentErrors(file: metadata.number.segmentName)
    self.file = file
    let reader = try SegmentFileReader.open(file, errors)
    let footer = try reader.footer()
    try Self.check(footer, reader, metadata, identity, shard)
    try reader.check(footer, isSealed: seal != nil)
    self.seal = seal
    filterUnit = footer.filterUnit
    let sections = try reader.sections(footer)
    let top = try reader.indexTop(sections, footer, seal)
    var numbers = [UInt32(top.rowCount)]
    let filter: FilterBits
    do throws(EngineError) {
      try reader.numberDataBlocks(top, footer, &numbers)
      let section = try reader.filter(sections, isSealed: seal != nil)
      let lineCount = section.map {
        FilterParts.lineCount(stored: Int($0.length), isSealed: seal != nil)
      }
      if let section, let lineCount, lineCount > 0 {
        if cache.takeFilter(lineCount * Filter.lineBytes) {
          (filter, filterParts) = (FilterBits(linesToLoad: lineCount), nil)
          wholeFilter = (reader, section)
        } else {
          let bytes = try reader.bytes(ofFilter: section, salt: footer.salt)
          filterParts = FilterParts(
            bytes.bytes, at: section.offset, salt: footer.salt, seal: seal,
            as: footer.filterUnit)
          filter = FilterBits(linesInParts: lineCount)
          wholeFilter = nil
        }
      } else {
        (filter, filterParts, wholeFilter) = (.none, nil, nil)
      }
    } catch {
      top.free()
      throw error
    }
    let slotCount = Int(numbers[numbers.count - 1]) + filter.partCount
    table = SegmentTable(
      top: top, slots: SlotTable(count: slotCount), filter: filter, firstDataSlots: numbers,
      meanRows: Double(footer.entries) / Double(max(1, footer.dataBlocks)))
    salt = footer.salt
    blocksEnd = footer.blocksEnd
    self.errors = errors
    self.cache = cache
    cache.register(table.slots)
    cache.reserve(byteCount)
  }

  deinit {
    cache.unregister(table.slots)
    cache.release(byteCount)
    if wholeFilter != nil { cache.giveBackFilter(table.filter.lineBytes) }
    table.free()
  }

  /// Bytes held, without slots and blocks.
  private var byteCount: Int { table.byteCount + (filterParts?.byteCount ?? 0) }

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

  /// Reads the header, which reads do not need, and compares it.
  func verifyHeader(_ expected: DataFileHeader) throws(EngineError) {
    guard try file.read(at: 0, count: DataFileHeader.length) == expected.encode() else {
      throw errors.corrupt(at: 0, "the header is not the one that was written")
    }
  }

  // MARK: - The filter

  /// False when the key with this hash is not in the segment. A filter, or a part of it, that is
  /// not in memory is read when that is likely to save reading a block.
  ///
  /// - Parameter isYoung: whether the segment is one of those that hold few of the requested keys.
  func mayContain(_ hash: UInt64, isYoung: Bool) throws(EngineError) -> Bool {
    let isWorthReading =
      isYoung || searchesInVain.load(ordering: .relaxed) > Self.searchesBeforeFilter
    guard let filterParts else {
      if isWorthReading, table.filter.isToLoad { try loadFilter() }
      return table.filter.mayContain(hash)
    }
    let part = table.filter.part(of: hash)
    let slot = table.filterSlot(part)
    if let pin = table.slots.pin(slot) { return table.filter.mayContain(hash, in: pin.block) }
    guard isWorthReading else { return true }
    let pin = try loadFilterPart(part, of: filterParts, slot: slot)
    return table.filter.mayContain(hash, in: pin.block)
  }

  /// Reads a filter that is kept whole, unless it is in memory.
  func loadFilter() throws(EngineError) {
    guard let (reader, section) = wholeFilter else { return }
    try isFilterLoaded.withLock { (isLoaded) throws(EngineError) in
      if isLoaded { return }
      var bytes = try reader.bytes(ofFilter: section, salt: salt)
      if let seal {
        do throws(MalformedBytes) {
          bytes = try FilterParts.opened(
            bytes.bytes, as: filterUnit, at: section.offset, by: seal)
        } catch {
          throw errors.corrupt(error, from: section.offset)
        }
      }
      table.filter.load(bytes.bytes)
      cache.reserve(table.filter.byteCount)
      isLoaded = true
    }
  }

  /// The oldest run holds most requested keys, and for these reading a part of its filter is
  /// useless. The filter is worth its bytes when absent keys are requested, this many more often
  /// than present ones.
  private static let searchesBeforeFilter = 8
  private static let mostSearchesCounted = 64

  /// Counts a search of a block that the filter did not prevent.
  func noteSearch(found: Bool) {
    guard filterParts != nil || table.filter.isToLoad else { return }
    let count = searchesInVain.load(ordering: .relaxed)
    let new = min(max(count + (found ? -1 : 1), 0), Self.mostSearchesCounted)
    // Two concurrent searches may count as one.
    if new != count { searchesInVain.store(new, ordering: .relaxed) }
  }

  private func loadFilterPart(
    _ part: Int, of parts: FilterParts, slot: Int
  ) throws(EngineError) -> PinnedBlock {
    let range = parts.range(part)
    let bytes = try file.read(at: range.lowerBound, count: range.count)
    guard bytes.count == range.count, parts.isPart(part, bytes.bytes, salt: salt) else {
      throw errors.corrupt(at: range.lowerBound, "the filter's checksum does not match")
    }
    let lines = try open(part, of: parts, bytes)
    let layout = SingleValueBlock(valueLength: lines.count)
    let place = cache.makeRoom(
      Block.allocationSize(rowCount: 1, rawLength: layout.rawLength), keep: true)
    do throws(MalformedBytes) {
      let block = try layout.make { raw in
        raw.copy(lines.bytes)
        return true
      }
      return cache.install(block, place, at: slot, of: table.slots, kind: .data)
    } catch {
      cache.giveBack(place)
      throw errors.corrupt(error, from: range.lowerBound)
    }
  }

  private func open(
    _ part: Int, of parts: FilterParts, _ bytes: [UInt8]
  ) throws(EngineError) -> [UInt8] {
    do throws(MalformedBytes) {
      return try parts.opened(part, bytes)
    } catch {
      throw errors.corrupt(error, from: parts.range(part).lowerBound)
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

  /// The position in the file of the data block that row `row` of an index block points to.
  func dataBlockOffset(_ block: Block, _ row: Int) throws(EngineError) -> UInt64 {
    try BlockHandle.parse(block.value(row), errors, blocksEnd).offset
  }

  // MARK: - Read-ahead

  /// Announces to the system that the data blocks in `rows` of the index block will be read soon.
  func adviseAhead(_ index: Block, _ rows: Range<Int>) throws(EngineError) {
    guard let first = rows.first, let last = rows.last else { return }
    let start = try BlockHandle.parse(index.value(first), errors, blocksEnd).offset
    let end = try BlockHandle.parse(index.value(last), errors, blocksEnd).offset
    guard start <= end, end - start <= UInt64(Self.mostAdvised) else { return }
    file.willRead(at: start, count: Int(end - start) + 1)
  }

  /// Two blocks are further apart only in a damaged file.
  private static let mostAdvised = 64 << 20

  private func load(
    _ handle: BlockHandle, _ kind: BlockKind, slot: Int, keep: Bool
  ) throws(EngineError) -> PinnedBlock {
    let length = UInt64(handle.storedLength) + UInt64(StoredBlock.trailerLength)
    let (end, overflows) = handle.offset.addingReportingOverflow(length)
    guard !overflows, handle.offset >= UInt64(DataFileHeader.length), end <= blocksEnd else {
      throw errors.corrupt(at: handle.offset, "a block outside the blocks")
    }
    var bytes = try file.read(at: handle.offset, count: Int(length))
    guard bytes.count == Int(length) else {
      throw errors.corrupt(at: handle.offset, "the file ends within a block")
    }
    do throws(MalformedBytes) {
      if let seal {
        bytes = try StoredBlock.unsealed(
          bytes.bytes, salt: salt, offset: handle.offset, by: seal)
      }
      let opened = try StoredBlock.Opened(
        bytes.bytes, kind: kind, salt: salt, offset: handle.offset, isUnsealed: seal != nil)
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
