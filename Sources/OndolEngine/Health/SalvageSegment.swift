// The readable blocks of a segment, whatever else of it is damaged. A valid index leads to them.
// Otherwise they are found directly (BlockWalk) with the file's salt, which is in the header, in
// the footer and in the manifest.

/// A damaged segment file.
struct SalvageSegment {
  let number: FileNumber
  /// The data blocks found, in order, valid or not.
  private(set) var blocks: [SalvageBlock] = []
  /// The commits of its rows, if known.
  private(set) var sequences: ClosedRange<SequenceNumber>?
  private let directory: any Directory
  private let reach: SalvageLoss.Reach
  private let salt: UInt64
  private let seal: FileSeal?

  var name: String { number.segmentName }

  /// Finds the blocks. Throws if nothing in the file can be read.
  init(
    _ number: FileNumber, _ metadata: SegmentMetadata?, reach: SalvageLoss.Reach,
    in directory: any Directory, _ losses: SalvageLosses
  ) throws(EngineError) {
    self.number = number
    self.reach = reach
    self.directory = directory
    let errors = SegmentErrors(file: number.segmentName)
    let file = try directory.open(number.segmentName, access: .readOnly)
    let reader = try? SegmentFileReader.open(file, errors)
    let footer = try reader?.soundFooter()
    let header = try DataFileHeader.find(.segment, in: file)
    guard let salt = header?.salt ?? footer?.salt ?? metadata?.salt else {
      throw errors.corrupt(at: 0, "neither its header nor its footer can be read")
    }
    self.salt = salt
    seal = directory.keyring?.seal(
      .segment, number: number, salt: salt, group: metadata?.group ?? header?.group)
    if let metadata {
      sequences = Self.range(metadata.minSequence, metadata.maxSequence)
    } else if let footer {
      sequences = Self.range(footer.minSequence, footer.maxSequence)
    }
    let size = try file.size()
    let end = min(footer?.blocksEnd ?? size, size)
    do throws(EngineError) {
      guard let reader, let footer else {
        throw errors.corrupt(at: size, "the footer cannot be read")
      }
      try readIndex(reader, footer, file, losses)
    } catch {
      losses.note(SalvageLoss(error, in: name, reach: reach))
      blocks = []
      try search(UInt64(DataFileHeader.length)..<max(64, end), file)
    }
  }

  private static func range(
    _ least: SequenceNumber, _ greatest: SequenceNumber
  ) -> ClosedRange<SequenceNumber>? {
    least <= greatest ? least...greatest : nil
  }

  // MARK: - With the index

  private mutating func readIndex(
    _ reader: SegmentFileReader, _ footer: SegmentFooter, _ file: any File,
    _ losses: SalvageLosses
  ) throws(EngineError) {
    let top = try reader.indexTop(try reader.sections(footer), footer, seal)
    defer { top.free() }
    // Index blocks come after all data blocks.
    var indexStart = footer.blocksEnd
    var lacking: [Int] = []
    for row in 0..<top.rowCount {
      let handle = try BlockHandle.parse(top.value(row), reader.errors, footer.blocksEnd)
      indexStart = min(indexStart, handle.offset)
      let block = SalvageBlock(handle)
      do throws(EngineError) {
        let index = try read(block, .index, file)
        defer { index.free() }
        for row in 0..<index.rowCount {
          let data = try BlockHandle.parse(index.value(row), reader.errors, footer.blocksEnd)
          blocks.append(SalvageBlock(data))
        }
      } catch {
        losses.note(SalvageLoss(error, in: name, reach: reach))
        if lacking.last != blocks.count { lacking.append(blocks.count) }
      }
    }
    try search(lacking, upTo: indexStart, file)
  }

  /// Searches for the blocks that precede unreadable index blocks.
  private mutating func search(
    _ places: [Int], upTo end: UInt64, _ file: any File
  ) throws(EngineError) {
    let known = blocks
    for place in places.reversed() {
      let start =
        place == 0
        ? UInt64(DataFileHeader.length)
        : known[place - 1].offset + UInt64(known[place - 1].length)
      let stop = place < known.count ? known[place].offset : end
      guard start < stop else { continue }
      let behind = Array(blocks[place...])
      blocks.removeSubrange(place...)
      try search(start..<stop, file)
      blocks += behind
    }
  }

  // MARK: - Without the index

  /// Appends the blocks found in a section of the file.
  private mutating func search(
    _ stretch: Range<UInt64>, _ file: any File
  ) throws(EngineError) {
    var walk = BlockWalk(file, stretch, salt: salt, seal: seal)
    while let found = try walk.next() {
      if found.kind != .index { blocks.append(found.place) }
    }
  }

  // MARK: - Rows

  /// The rows of block `index`.
  func rows(of index: Int) throws(EngineError) -> [(key: [UInt8], row: SalvageCandidate)] {
    let file = try directory.open(name, access: .readOnly)
    let block = try read(blocks[index], .data, file)
    defer { block.free() }
    let prefix = block.prefix().array
    let earliest = sequences?.lowerBound ?? .zero
    return (0..<block.rowCount).map { row in
      let candidate = SalvageCandidate(
        kind: block.kind(row), bytes: block.value(row).array, earliest: earliest)
      return (prefix + block.suffix(row).array, candidate)
    }
  }

  private func read(
    _ place: SalvageBlock, _ kind: BlockKind, _ file: any File
  ) throws(EngineError) -> Block {
    var bytes = try file.read(at: place.offset, count: place.length)
    do throws(MalformedBytes) {
      guard bytes.count == place.length else {
        throw MalformedBytes(at: 0, "the file ends within a block")
      }
      if let seal {
        bytes = try StoredBlock.unsealed(
          bytes.bytes, salt: salt, offset: place.offset, by: seal)
      }
      let opened = try StoredBlock.Opened(
        bytes.bytes, kind: kind, salt: salt, offset: place.offset, isUnsealed: seal != nil)
      let raw = try opened.rawBytes()
      var reader = ByteReader(raw.bytes)
      return try Block.make(rowCount: Int(try reader.littleEndian(UInt32.self)), raw.bytes)
    } catch {
      throw SegmentErrors(file: name).corrupt(error, from: place.offset)
    }
  }
}

extension SalvageBlock {
  init(_ handle: BlockHandle) {
    offset = handle.offset
    length = Int(handle.storedLength) + StoredBlock.trailerLength
  }
}

extension SegmentFileReader {
  /// The footer, or nil if it is damaged.
  fileprivate func soundFooter() throws(EngineError) -> SegmentFooter? {
    do throws(EngineError) {
      return try footer()
    } catch {
      guard case .needsNewerVersion = error else { return nil }
      throw error
    }
  }
}

/// Rows of consecutive segments.
final class SalvageRun: SalvageSource {
  private let directory: any Directory
  private let reach: SalvageLoss.Reach
  private let losses: SalvageLosses
  /// The segments not yet begun, in reverse order.
  private var waiting: [(FileNumber, SegmentMetadata?)]
  private var segment: SalvageSegment?
  private var block = 0
  private var rows: [(key: [UInt8], row: SalvageCandidate)] = []
  private var row = 0
  /// The last key so far, and what was lost after it.
  private var lastKey: [UInt8]?
  private var open: [SalvageLoss] = []

  init(
    _ segments: [(FileNumber, SegmentMetadata?)], reach: SalvageLoss.Reach,
    in directory: any Directory, _ losses: SalvageLosses
  ) {
    self.reach = reach
    waiting = segments.reversed()
    self.directory = directory
    self.losses = losses
    load()
  }

  var key: [UInt8]? { row < rows.count ? rows[row].key : nil }
  var candidate: SalvageCandidate { rows[row].row }

  func next() {
    row += 1
    if row >= rows.count { load() }
  }

  /// Loads the next readable block.
  private func load() {
    if let last = rows.last { lastKey = last.key }
    (rows, row) = ([], 0)
    while rows.isEmpty {
      guard let segment, block < segment.blocks.count else {
        guard beginSegment() else { return closeLosses(before: nil) }
        continue
      }
      do throws(EngineError) {
        rows = try segment.rows(of: block)
        // A block out of order would break the order of everything that is merged with it.
        if let lastKey, let first = rows.first, !lastKey.lexicographicallyPrecedes(first.key) {
          rows = []
          throw SegmentErrors(file: segment.name).corrupt(
            at: segment.blocks[block].offset, "a block out of order")
        }
      } catch {
        var loss = SalvageLoss(error, in: segment.name, reach: reach)
        loss.after = lastKey
        open.append(loss)
      }
      block += 1
    }
    closeLosses(before: rows.first?.key)
  }

  private func closeLosses(before key: [UInt8]?) {
    for var loss in open {
      if loss.before == nil { loss.before = key }
      losses.note(loss)
    }
    open = []
  }

  /// Returns false if no segment is left.
  private func beginSegment() -> Bool {
    guard let (number, metadata) = waiting.popLast() else { return false }
    block = 0
    do throws(EngineError) {
      segment = try SalvageSegment(number, metadata, reach: reach, in: directory, losses)
    } catch {
      segment = nil
      var loss = SalvageLoss(error, in: number.segmentName, reach: reach)
      loss.after = metadata?.minKey ?? lastKey
      loss.before = metadata?.maxKey
      open.append(loss)
    }
    return true
  }
}
