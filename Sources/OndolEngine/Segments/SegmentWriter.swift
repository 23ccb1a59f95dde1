// Writes a segment, from rows in ascending order to a finished file: the output of flushes and
// compactions. Rows are collected in a block. A full block is compressed and appended to a chunk of
// output, so that the file gets few and large writes. The entries for finding blocks are kept until
// the end. The caller syncs.

/// Writes one segment file.
final class SegmentWriter {
  private let number: FileNumber
  private let salt: UInt64
  private let identity: DatabaseIdentity
  private let shard: UInt32
  private let options: SegmentOptions
  private let seal: FileSeal?

  private var block = BlockBuilder()
  private var raw: [UInt8] = []
  private var index = SegmentIndexBuilder()
  private var hashes = KeyHashes()

  private var output: ChunkedOutput

  private var entries: UInt64 = 0
  private var tombstones: UInt64 = 0
  private var minKey: [UInt8] = []
  private var values = ValueReferenceSums()
  /// Bytes of the keys and values added so far.
  private(set) var rawBytesWritten: UInt64 = 0

  /// The approximate bytes of the file if it ended with the rows added so far, without index and
  /// filter.
  var bytesWritten: UInt64 {
    output.position + UInt64(block.isEmpty ? 0 : block.estimatedLength)
  }

  /// A writer to `file`, which is new and empty.
  init(
    file: any File, number: FileNumber, salt: UInt64, identity: DatabaseIdentity, shard: UInt32,
    options: SegmentOptions = SegmentOptions(), seal: FileSeal? = nil, group: UInt32? = nil
  ) {
    self.seal = seal
    self.number = number
    self.salt = salt
    self.identity = identity
    self.shard = shard
    self.options = options
    let header = DataFileHeader(
      kind: .segment, number: number, salt: salt, identity: identity, shard: shard,
      isSealed: seal != nil, group: group)
    output = ChunkedOutput(file, header: header.encode())
    output.bytes.reserveCapacity(ChunkedOutput.chunkBytes + 2 * options.blockSize)
  }

  /// Adds a row. A tombstone has no value.
  ///
  /// - Throws: `.invalid` for a row over 64 MiB; `.corrupt` when its key is not above the last
  ///   one's, because rows that are merged come from files; and the errors of the file.
  func add(_ kind: RowKind, key: RawSpan, value: RawSpan) throws(EngineError) {
    let length = key.byteCount + value.byteCount
    guard length <= BlockLayout.maximumRowLength else {
      throw .invalid(reason: "a row of \(length) bytes; at most 64 MiB are possible")
    }
    precondition(kind != .delete || value.isEmpty, "a tombstone with a value")
    try refuseDisorder(key)
    if block.isEmpty {
      if entries == 0 { minKey = key.array } else { index.separate(from: key) }
    } else {
      if block.estimatedLength + length > options.blockSize
        || block.rowCount == BlockLayout.maximumRows
      {
        try finishBlock()
        index.separate(from: key)
      }
    }
    block.append(kind, key: key, value: value)
    if options.bitsPerKey > 0 { hashes.append(KeyHash.hash(key)) }
    entries += 1
    if kind == .delete { tombstones += 1 }
    if kind == .valuePointer { values.add(try ValuePointer(row: value)) }
    rawBytesWritten += UInt64(length)
  }

  private func refuseDisorder(_ key: RawSpan) throws(EngineError) {
    if entries == 0 { return }
    let last = index.lastKey
    let order = block.isEmpty ? last.bytes.compare(key) : block.lastKey.compare(key)
    guard order >= 0 else { return }
    throw .corrupt(
      file: number.segmentName, offset: output.position,
      reason: "the rows to be written are out of order: a file they come from is damaged")
  }

  /// Writes the rest, and the index, filter and footer. There must have been a row.
  func finish(
    minSequence: SequenceNumber, maxSequence: SequenceNumber
  ) throws(EngineError) -> SegmentMetadata {
    precondition(entries > 0, "a segment without rows")
    try finishBlock()
    let maxKey = index.lastKey
    index.finish()
    let dataBlocks = UInt64(index.entryCount)
    let (top, indexBlocks) = try writeIndex()
    let blocksEnd = output.position

    var sections = [try writeSection(.indexTop, flags: SegmentSection.mustUnderstand, top)]
    if options.bitsPerKey > 0 {
      let filter = Filter.build(hashes, bitsPerKey: options.bitsPerKey)
      sections.append(try writeSection(.filter, flags: 0, filter))
    }
    let tableOffset = output.position
    var table: [UInt8] = []
    for section in sections { section.append(to: &table) }
    output.bytes += table
    var footer = SegmentFooter(
      number: number, salt: salt, identity: identity, shard: shard, entries: entries,
      tombstones: tombstones, minSequence: minSequence, maxSequence: maxSequence,
      rawBytes: rawBytesWritten, blocksEnd: blocksEnd, dataBlocks: dataBlocks,
      indexBlocks: indexBlocks, sectionTableOffset: tableOffset,
      sectionCount: UInt32(sections.count),
      sectionTableChecksum: seededChecksum(
        contextSeed(salt: salt, offset: tableOffset), table.bytes))
    footer.isSealed = seal != nil
    let (footerBytes, footerChecksum) = footer.encode(at: output.position)
    output.bytes += footerBytes
    try output.flush()
    return SegmentMetadata(
      number: number, salt: salt, sizeBytes: output.position, footerChecksum: footerChecksum,
      minKey: minKey,
      maxKey: maxKey, entries: entries, tombstones: tombstones, rawBytes: rawBytesWritten,
      minSequence: minSequence, maxSequence: maxSequence, valueReferences: values.references)
  }

  // MARK: - Pieces

  private func finishBlock() throws(EngineError) {
    guard !block.isEmpty else { return }
    // One array when the only row is the first and the last.
    let lastKey = entries == 1 ? minKey : block.lastKey.array
    index.append(lastKey: lastKey, try write(&block, .data))
  }

  /// Writes a block, and empties its builder.
  private func write(
    _ builder: inout BlockBuilder, _ kind: BlockKind
  ) throws(EngineError) -> BlockHandle {
    raw.removeAll(keepingCapacity: true)
    builder.encode(into: &raw)
    let rowCount = builder.rowCount
    // Before the block is compressed, so that a long row is not in memory twice.
    builder.removeAll()
    let offset = output.position
    let length = StoredBlock.seal(
      raw.bytes, kind: kind, compress: options.compress, salt: salt, offset: offset, seal: seal,
      appendingTo: &output.bytes)
    if raw.count > Self.longestKept { raw = [] }
    try output.flushChunk()
    return BlockHandle(offset: offset, storedLength: UInt32(length), rowCount: UInt32(rowCount))
  }

  /// After a block with a longer row than this, its memory is not reused.
  private static let longestKept = 1 << 20

  /// Writes the index blocks; returns the block that points to them, and their number.
  private func writeIndex() throws(EngineError) -> (top: [UInt8], blocks: UInt64) {
    var top = BlockBuilder()
    var builder = BlockBuilder()
    var count: UInt64 = 0
    var entry = 0
    while entry < index.entryCount {
      index.append(entry, to: &builder)
      entry += 1
      let isFull = builder.estimatedLength >= SegmentFormat.indexBlockSize
      guard isFull || entry == index.entryCount else { continue }
      let handle = try write(&builder, .index)
      index.append(indexBlock: handle, upTo: entry - 1, to: &top)
      count += 1
    }
    var bytes: [UInt8] = []
    top.encode(into: &bytes)
    return (bytes, count)
  }

  private func writeSection(
    _ kind: SegmentSection.Kind, flags: UInt32, _ bytes: [UInt8]
  ) throws(EngineError) -> SegmentSection {
    let offset = output.position
    var bytes = bytes
    if let seal {
      if kind == .filter {
        bytes = FilterParts.sealed(bytes, as: .filter, at: offset, by: seal)
      } else {
        seal.seal(&bytes, from: 0, .section, at: offset)
      }
    }
    try output.append(bytes)
    return SegmentSection(
      kind: kind.rawValue, flags: flags, offset: offset, length: UInt64(bytes.count),
      checksum: seededChecksum(contextSeed(salt: salt, offset: offset), bytes.bytes))
  }
}
