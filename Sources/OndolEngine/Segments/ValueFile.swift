// A value file as reads see it. The file is opened when a read first needs it. A value that was
// read is kept in the block cache like a block of one row, in a slot of its own. So it counts
// against the same budget, is evicted by the same clock, and a second read of it takes no lock and
// makes no system call. A run keeps its segments, and these keep their value files.

/// An immutable file of values, opened when first needed.
final class ValueFile: Sendable {
  let metadata: ValueFileMetadata
  private let identity: DatabaseIdentity
  private let shard: UInt32
  private let cache: BlockCache

  /// The file; when nothing points to it any more, it is removed with the last view that reads it.
  let data: DataFile
  /// The values in memory; published when the file is opened.
  private let slots = PublishedOnce<SlotTable>()
  /// Opens its records; nil when they are not encrypted.
  private let seal: FileSeal?

  init(
    _ metadata: ValueFileMetadata, identity: DatabaseIdentity, shard: UInt32,
    directory: any Directory, cache: BlockCache
  ) {
    self.metadata = metadata
    self.identity = identity
    self.shard = shard
    data = DataFile(metadata.number.valueFileName, in: directory)
    seal = directory.keyring?.seal(
      .values, number: metadata.number, salt: metadata.salt, group: metadata.group)
    self.cache = cache
  }

  deinit {
    if let slots = slots.reader.value { cache.unregister(slots) }
  }

  var number: FileNumber { metadata.number }
  var errors: SegmentErrors { SegmentErrors(file: data.name) }

  // MARK: - Reading

  /// The value's block, pinned; nil when it is not in memory.
  func pinned(_ pointer: ValuePointer) -> PinnedBlock? {
    guard UInt64(pointer.ordinal) < metadata.values else { return nil }
    return slots.reader.value?.pin(Int(pointer.ordinal))
  }

  /// The value's block, read from the file if it is not in memory; its one row has the value.
  /// Blocks: one `pread`.
  ///
  /// - Parameter keep: false when the value is read once and must not evict other blocks.
  func load(_ pointer: ValuePointer, keep: Bool) throws(EngineError) -> PinnedBlock {
    let file = try open()
    if let pin = pinned(pointer) { return pin }
    guard let slots = slots.reader.value, UInt64(pointer.ordinal) < metadata.values else {
      throw errors.corrupt(at: pointer.offset, "a value beyond the last")
    }
    let bytes = try read(pointer, from: file)
    do throws(MalformedBytes) {
      let opened = try open(bytes.bytes, pointer)
      let layout = SingleValueBlock(valueLength: Int(pointer.rawLength))
      let size = Block.allocationSize(rowCount: 1, rawLength: layout.rawLength)
      let isKept = keep && size <= cache.budgetBytes / Self.largestShare
      let place = cache.makeRoom(size, keep: isKept)
      let block: Block
      do throws(MalformedBytes) {
        block = try layout.make { raw in opened.fill(&raw) }
      } catch {
        cache.giveBack(place)
        throw error
      }
      return cache.install(
        block, place, at: Int(pointer.ordinal), of: slots, kind: .data)
    } catch {
      throw errors.corrupt(error, from: pointer.offset)
    }
  }

  /// A value that takes more than this part of the cache is not kept in it: it would evict many
  /// blocks to save one `pread`.
  private static let largestShare = 16

  /// Passes the stored record, verified, to `body`. Blocks: one `pread`.
  func withRecord<R>(
    _ pointer: ValuePointer, _ body: (borrowing ValueRecord.Opened) throws(EngineError) -> R
  ) throws(EngineError) -> R {
    let bytes = try read(pointer, from: try open())
    let record: ValueRecord.Opened
    do throws(MalformedBytes) {
      record = try open(bytes.bytes, pointer)
    } catch {
      throw errors.corrupt(error, from: pointer.offset)
    }
    return try body(record)
  }

  /// The bytes of the record that `pointer` leads to. Sealed ones are verified and decrypted,
  /// others are not verified yet.
  func read(
    _ pointer: ValuePointer, from file: any File
  ) throws(EngineError) -> [UInt8] {
    let (end, overflows) = pointer.offset.addingReportingOverflow(pointer.recordLength)
    guard !overflows, pointer.offset >= UInt64(DataFileHeader.length),
      end <= metadata.sizeBytes, pointer.rawLength <= BlockLayout.maximumRowLength
    else { throw errors.corrupt(at: pointer.offset, "a value outside the file") }
    let length = Int(pointer.recordLength)
    let bytes = try file.read(at: pointer.offset, count: length)
    guard bytes.count == length else {
      throw errors.corrupt(at: pointer.offset, "the file ends within a value")
    }
    guard let seal else { return bytes }
    do throws(MalformedBytes) {
      return try ValueRecord.unsealed(
        bytes.bytes, salt: metadata.salt, offset: pointer.offset, by: seal)
    } catch {
      throw errors.corrupt(error, from: pointer.offset)
    }
  }

  /// The record in `bytes`, which must be the one that `pointer` was made for.
  @_lifetime(copy bytes)
  func open(
    _ bytes: RawSpan, _ pointer: ValuePointer
  ) throws(MalformedBytes) -> ValueRecord.Opened {
    let record = try ValueRecord.Opened(
      bytes, salt: metadata.salt, offset: pointer.offset, isUnsealed: seal != nil)
    guard record.header.rawLength == pointer.rawLength,
      UInt32(truncatingIfNeeded: record.header.checksum) == pointer.checksum
    else { throw MalformedBytes(at: 0, "the value is not the one that its row points to") }
    return record
  }

  /// The file, opened now if necessary, and checked to be the one that the manifest names.
  @discardableResult
  func open() throws(EngineError) -> any File {
    try data.open { (file) throws(EngineError) in
      if slots.reader.value == nil { try introduce(file) }
    }
  }

  /// Checks the file when it is first opened, and makes room for its values.
  private func introduce(_ file: any File) throws(EngineError) {
    let size = try file.size()
    guard size == metadata.sizeBytes else {
      throw errors.corrupt(at: size, "the file is not the one that the manifest names")
    }
    // A record has at least a header; the manifest's count limits the allocation.
    let most = metadata.recordBytes / UInt64(ValueFileFormat.recordHeaderLength)
    guard metadata.values <= most else {
      throw errors.corrupt(at: size, "\(metadata.values) values, and room for \(most)")
    }
    try checkHeader(of: file)
    let table = SlotTable(count: Int(metadata.values))
    cache.register(table)
    slots.publish(table)
  }

  func checkHeader(of file: any File) throws(EngineError) {
    let header = DataFileHeader(
      kind: .values, number: metadata.number, salt: metadata.salt, identity: identity, shard: shard,
      isSealed: seal != nil, group: metadata.group)
    guard try file.read(at: 0, count: DataFileHeader.length) == header.encode() else {
      throw errors.corrupt(at: 0, "the header is not the one that was written")
    }
  }
}
