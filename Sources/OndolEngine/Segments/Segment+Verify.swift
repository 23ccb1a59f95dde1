// Reads a whole segment and checks what no single read checks: the header, that every block is
// between its neighbours' keys, that the filter contains every key, that pointers lead to values,
// and that the sums are right. It bypasses the cache, because the file is in question, and
// continues after a finding.

extension Segment {
  /// Checks every meaningful byte of the file.
  ///
  /// - Throws: `.corrupt` with the first error.
  /// - Complexity: O(file); reads all of it.
  func verify() throws(EngineError) {
    guard let first = findings().first else { return }
    throw .corrupt(file: first.file, offset: first.offset ?? 0, reason: first.message)
  }

  /// All errors in the file.
  ///
  /// - Complexity: O(file); reads all of it, and the headers of the values its rows point to.
  func findings() -> [StorageFinding] {
    let file = metadata.number.segmentName
    do throws(EngineError) {
      let segment = try open()
      try segment.verifyHeader(expectedHeader)
      try segment.loadFilter()
      var check = SegmentCheck(file: file, valueFiles: ValueFileTable(valueFiles))
      for index in 0..<segment.table.top.rowCount { check.take(index, of: segment) }
      check.compareSums(with: metadata)
      return check.findings
    } catch {
      return [StorageFinding(error, .segment, in: file)]
    }
  }

  /// The errors in the file's header and index.
  ///
  /// - Complexity: O(index blocks).
  func structureFindings() -> [StorageFinding] {
    let file = metadata.number.segmentName
    var findings: [StorageFinding] = []
    do throws(EngineError) {
      let segment = try open()
      try segment.loadFilter()
      do throws(EngineError) {
        try segment.verifyHeader(expectedHeader)
      } catch {
        findings.append(StorageFinding(error, .segment, in: file))
      }
      for index in 0..<segment.table.top.rowCount {
        do throws(EngineError) {
          _ = try segment.loadIndexBlock(index, keep: false)
        } catch {
          findings.append(StorageFinding(error, .block, in: file))
        }
      }
    } catch {
      findings.append(StorageFinding(error, .segment, in: file))
    }
    return findings
  }
}

/// A walk over all blocks of a segment.
private struct SegmentCheck {
  let file: String
  let valueFiles: ValueFileTable
  private(set) var findings: [StorageFinding] = []
  /// Whether every block was read, so that sums can be compared.
  private var isWhole = true
  private var entries: UInt64 = 0
  private var tombstones: UInt64 = 0
  private var rawBytes: UInt64 = 0
  private var values = ValueReferenceSums()
  private var firstKey: [UInt8]?
  private var lastKey: [UInt8] = []
  /// The upper bound of the previous block.
  private var lastBound: [UInt8]?

  init(file: String, valueFiles: ValueFileTable) {
    self.file = file
    self.valueFiles = valueFiles
  }

  /// Checks index block `index` and all blocks it points to.
  mutating func take(_ index: Int, of segment: OpenSegment) {
    do throws(EngineError) {
      let pin = try segment.loadIndexBlock(index, keep: false)
      for row in 0..<pin.block.rowCount { take(row, index, pin.block, of: segment) }
      if lastKey.bytes.compare(bound(of: segment.table.top, index).bytes) > 0 {
        note(.order, at: nil, "index block \(index) ends above its bound")
      }
    } catch {
      isWhole = false
      findings.append(StorageFinding(error, .block, in: file))
    }
  }

  /// Checks the data block that row `row` of an index block points to.
  private mutating func take(_ row: Int, _ index: Int, _ block: Block, of segment: OpenSegment) {
    do throws(EngineError) {
      let offset = try segment.dataBlockOffset(block, row)
      let pin = try segment.loadDataBlock(index, block, row, keep: false)
      try add(pin.block, at: offset, segment)
      if lastKey.bytes.compare(bound(of: block, row).bytes) > 0 {
        note(.order, at: offset, "the block ends above its bound")
      }
    } catch {
      isWhole = false
      findings.append(StorageFinding(error, .block, in: file))
    }
    lastBound = bound(of: block, row)
  }

  /// The upper bound in a row of an index.
  private func bound(of index: Block, _ row: Int) -> [UInt8] {
    index.prefix().array + index.suffix(row).array
  }

  /// Adds the rows of a block.
  private mutating func add(
    _ block: Block, at offset: UInt64, _ segment: OpenSegment
  ) throws(EngineError) {
    let buffer = KeyBuffer()
    defer { buffer.free() }
    buffer.enter(block)
    for place in 0..<block.rowCount {
      let length = buffer.fill(block, place)
      let key = buffer.key(length, heldBy: buffer)
      if place == 0 {
        if firstKey == nil { firstKey = key.array }
        if let lastBound, lastBound.bytes.compare(key) >= 0 {
          note(.order, at: offset, "the block begins below the bound of the one before")
        }
      }
      if try !segment.mayContain(KeyHash.hash(key), isYoung: true) {
        note(.order, at: offset, "row \(place) of the block is not in the filter")
      }
      count(block, place, at: offset)
      rawBytes += UInt64(length + block.valueRange(place).count)
      if place + 1 == block.rowCount { lastKey = key.array }
    }
  }

  private mutating func count(_ block: Block, _ place: Int, at offset: UInt64) {
    entries += 1
    switch block.kind(place) {
    case .put: break
    case .delete: tombstones += 1
    case .valuePointer:
      do throws(EngineError) {
        let pointer = try ValuePointer(row: block.value(place))
        values.add(pointer)
        let values = try valueFiles.file(of: pointer)
        // A file that cannot be opened is a finding of its own.
        if (try? values.open()) != nil { try values.check(pointer) }
      } catch {
        let reason = StorageFinding(error, .pointer, in: file).message
        note(.pointer, at: offset, "row \(place) of the block points to no value: \(reason)")
      }
    }
  }

  /// Compares the counts with the manifest, if everything was read.
  mutating func compareSums(with metadata: SegmentMetadata) {
    guard isWhole else { return }
    let isRight =
      entries == metadata.entries && tombstones == metadata.tombstones
      && rawBytes == metadata.rawBytes && firstKey ?? [] == metadata.minKey
      && lastKey == metadata.maxKey && values.references == metadata.valueReferences
    if !isRight { note(.count, at: nil, "the rows are not those that the manifest counts") }
  }

  private mutating func note(
    _ kind: StorageFinding.Kind, at offset: UInt64?, _ message: String
  ) {
    findings.append(StorageFinding(kind, in: file, at: offset, message))
  }
}
