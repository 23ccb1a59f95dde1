// Loads a block into memory: the stored bytes are put into their final place, then one pass derives
// the rows and refuses everything that is not exactly as a writer would have written it. See Block
// for the result.

extension Block {
  /// Allocates a block, lets `fill` put the stored bytes into it, and validates them.
  ///
  /// - Throws: the error and its position, counted from the block's first byte before compression.
  /// - Complexity: O(bytes); about 2 µs for 16 KiB.
  static func make(
    rowCount: Int, rawLength: Int, fill: (inout MutableRawSpan) -> Bool
  ) throws(MalformedBytes) -> Block {
    guard rowCount >= 1, rowCount <= BlockLayout.maximumRows else {
      throw MalformedBytes(at: 0, "\(rowCount) rows")
    }
    guard rawLength >= BlockLayout.headerLength, rawLength <= BlockLayout.maximumRawLength else {
      throw MalformedBytes(at: 0, "\(rawLength) bytes")
    }
    let size = allocationSize(rowCount: rowCount, rawLength: rawLength)
    let block = unsafe Block(base: BlockMemory.allocate(size))
    do throws(MalformedBytes) {
      let rawOffset = rowsOffset + rowCount * MemoryLayout<Row>.stride
      // Safe: the allocation has `rawLength` bytes from there on, and the slack after them.
      let raw = unsafe UnsafeMutableRawBufferPointer(
        start: block.base + rawOffset, count: rawLength)
      var span = unsafe MutableRawSpan(_unsafeBytes: raw)
      guard fill(&span) else { throw MalformedBytes(at: 0, "does not decompress") }
      unsafe (block.base + rawOffset + rawLength).initializeMemory(
        as: UInt8.self, repeating: 0, count: slack)
      try block.derive(rowCount: rowCount, rawOffset: rawOffset, rawLength: rawLength)
      return block
    } catch {
      unsafe BlockMemory.free(block.base, size)
      throw error
    }
  }

  /// A block of the bytes `raw`, validated.
  static func make(rowCount: Int, _ raw: RawSpan) throws(MalformedBytes) -> Block {
    try make(rowCount: rowCount, rawLength: raw.byteCount) { target in
      target.copy(raw)
      return true
    }
  }

  /// A block of the rows in `builder`, for searching lists that were never in a file.
  static func make(_ builder: BlockBuilder) -> Block {
    var raw: [UInt8] = []
    builder.encode(into: &raw)
    do throws(MalformedBytes) {
      return try make(rowCount: builder.rowCount, raw.bytes)
    } catch {
      preconditionFailure("our own block is malformed: \(error)")
    }
  }

  /// Frees the memory.
  func free() {
    unsafe BlockMemory.free(base, allocatedBytes)
  }

  // MARK: - Deriving

  private func derive(rowCount: Int, rawOffset: Int, rawLength: Int) throws(MalformedBytes) {
    let raw = unsafe RawSpan(_unsafeStart: base + rawOffset, byteCount: rawLength)
    var reader = ByteReader(raw)
    let storedRows: UInt32 = try reader.littleEndian()
    let version = try reader.byte()
    let flags = try reader.byte()
    let keyWidth = try reader.byte()
    let valueWidth = try reader.byte()
    let prefixLength: UInt32 = try reader.littleEndian()
    let keyBytes: UInt32 = try reader.littleEndian()
    guard Int(storedRows) == rowCount else {
      throw MalformedBytes(at: 0, "\(storedRows) rows where \(rowCount) were announced")
    }
    guard version == BlockLayout.version, flags & ~BlockLayout.kindsFlag == 0 else {
      throw MalformedBytes(at: 4, "layout \(version) with flags \(flags)")
    }
    let prefixOffset = reader.offset
    _ = try reader.take(Int(prefixLength))
    let keyLengths = try Self.lengths(&reader, rowCount: rowCount, width: keyWidth)
    let valueLengths = try Self.lengths(&reader, rowCount: rowCount, width: valueWidth)
    let kinds = flags == 0 ? nil : try reader.take(rowCount)
    let keysOffset = reader.offset
    _ = try reader.take(Int(keyBytes))
    let valuesOffset = reader.offset

    // Safe: `rows[-1]` and `rowCount` rows were allocated.
    let rows = unsafe UnsafeMutablePointer(mutating: self.rows)
    unsafe rows[-1] = Row(
      head: 0, keyEnd: UInt32(rawOffset + keysOffset), valueEnd: UInt32(rawOffset + valuesOffset))
    let longestKey: Int
    switch keyWidth {
    case 1: longestKey = try deriveKeys(keyLengths, UInt8.self, rowCount, rawOffset + valuesOffset)
    case 2: longestKey = try deriveKeys(keyLengths, UInt16.self, rowCount, rawOffset + valuesOffset)
    default:
      longestKey = try deriveKeys(keyLengths, UInt32.self, rowCount, rawOffset + valuesOffset)
    }
    switch valueWidth {
    case 1: try deriveValues(valueLengths, UInt8.self, rowCount, rawOffset + rawLength)
    case 2: try deriveValues(valueLengths, UInt16.self, rowCount, rawOffset + rawLength)
    default: try deriveValues(valueLengths, UInt32.self, rowCount, rawOffset + rawLength)
    }
    if let kinds { try deriveKinds(kinds, rowCount) }

    let prefix = raw.extracting(prefixOffset..<(prefixOffset + Int(prefixLength)))
    var header = Header(
      firstHead: unsafe rows[0].head, scale: 0, prefixWord: Self.word(prefix, at: 0),
      rowCount: UInt32(rowCount), prefixLength: prefixLength,
      allocatedBytes: UInt32(Self.allocationSize(rowCount: rowCount, rawLength: rawLength)),
      longestKey: UInt32(Int(prefixLength) + longestKey), owner: 0)
    header.scale = scaleIfEven(header)
    unsafe base.initializeMemory(as: Header.self, to: header)
  }

  @_lifetime(copy reader)
  private static func lengths(
    _ reader: inout ByteReader, rowCount: Int, width: UInt8
  ) throws(MalformedBytes) -> RawSpan {
    guard width == 1 || width == 2 || width == 4 else {
      throw MalformedBytes(at: 6, "lengths of \(width) bytes")
    }
    return try reader.take(rowCount * Int(width))
  }

  /// Fills in heads and ends of keys; `limit` is where keys end. Returns the longest length.
  private func deriveKeys<Length: FixedWidthInteger & UnsignedInteger & BitwiseCopyable>(
    _ lengths: RawSpan, _: Length.Type, _ rowCount: Int, _ limit: Int
  ) throws(MalformedBytes) -> Int {
    // Safe: `lengths` has one length for each row, keys were bounded by `take`, and eight bytes can
    // be loaded after any key because of the slack.
    let rows = unsafe UnsafeMutablePointer(mutating: self.rows)
    var start = unsafe Int(rows[-1].keyEnd)
    var previousHead: UInt64 = 0
    var longest = 0
    for row in 0..<rowCount {
      let length = unsafe Int(
        Length(
          littleEndian: lengths.unsafeLoadUnaligned(
            fromUncheckedByteOffset: row * MemoryLayout<Length>.size, as: Length.self)))
      let end = start + length
      guard end <= limit else { throw MalformedBytes(at: 0, "key \(row) ends behind the keys") }
      var head = unsafe UInt64(
        bigEndian: (base + start).loadUnaligned(as: UInt64.self))
      if length < 8 { head = length == 0 ? 0 : head & (~0 << UInt64(64 - 8 * length)) }
      if head <= previousHead && row > 0 {
        let previous = unsafe RawSpan(
          _unsafeStart: base + Int(rows[row - 2].keyEnd),
          byteCount: start - Int(rows[row - 2].keyEnd))
        let this = unsafe RawSpan(_unsafeStart: base + start, byteCount: length)
        guard previous.compare(this) < 0 else {
          throw MalformedBytes(at: 0, "key \(row) is not above the one before")
        }
      }
      unsafe rows[row].head = head
      unsafe rows[row].keyEnd = UInt32(end)
      previousHead = head
      longest = max(longest, length)
      start = end
    }
    guard start == limit else { throw MalformedBytes(at: 0, "bytes behind the last key") }
    return longest
  }

  /// Fills in ends of values; `limit` is where the block ends.
  private func deriveValues<Length: FixedWidthInteger & UnsignedInteger & BitwiseCopyable>(
    _ lengths: RawSpan, _: Length.Type, _ rowCount: Int, _ limit: Int
  ) throws(MalformedBytes) {
    // Safe: as in `deriveKeys`.
    let rows = unsafe UnsafeMutablePointer(mutating: self.rows)
    var end = unsafe Int(rows[-1].valueEnd)
    for row in 0..<rowCount {
      end += unsafe Int(
        Length(
          littleEndian: lengths.unsafeLoadUnaligned(
            fromUncheckedByteOffset: row * MemoryLayout<Length>.size, as: Length.self)))
      guard end <= limit else { throw MalformedBytes(at: 0, "value \(row) ends behind the block") }
      unsafe rows[row].valueEnd = UInt32(end)
    }
    guard end == limit else { throw MalformedBytes(at: 0, "bytes behind the last value") }
  }

  private func deriveKinds(_ kinds: RawSpan, _ rowCount: Int) throws(MalformedBytes) {
    // Safe: as in `deriveKeys`.
    let rows = unsafe UnsafeMutablePointer(mutating: self.rows)
    for row in 0..<rowCount {
      switch RowKind(rawValue: kinds.byte(at: row)) {
      case .put: break
      case .delete:
        guard valueRange(row).isEmpty else {
          throw MalformedBytes(at: 0, "tombstone \(row) has a value")
        }
        unsafe rows[row].valueEnd |= Self.tombstoneBit
        unsafe rows[-1].head = 1
      case .valuePointer:
        guard valueRange(row).count == ValuePointer.length else {
          throw MalformedBytes(at: 0, "the pointer in row \(row) is of another length")
        }
        unsafe rows[row].valueEnd |= Self.pointerBit
      case nil: throw MalformedBytes(at: 0, "row \(row) is of an unknown kind")
      }
    }
  }

  /// The factor that converts a head's distance from the first into a row; 0 when guesses made with
  /// it are not near their rows.
  private func scaleIfEven(_ header: Header) -> UInt64 {
    // Safe: `rowCount` rows were derived.
    let rows = unsafe self.rows
    let rowCount = Int(header.rowCount)
    let distance = unsafe rows[rowCount - 1].head - header.firstHead
    guard rowCount >= 8, distance > UInt64(rowCount) else { return 0 }
    var header = header
    header.scale = distance.dividingFullWidth((UInt64(rowCount - 1), 0)).quotient
    var errors = 0
    for row in 1..<rowCount {
      let head = unsafe rows[row].head
      if head > header.firstHead { errors += abs(guess(head, header) - row) }
    }
    return errors <= rowCount * Self.evenLimit ? header.scale : 0
  }

  /// How many rows guesses may be off on average.
  private static var evenLimit: Int { 8 }
}

extension MutableRawSpan {
  /// Copies all of `source`, which has as many bytes.
  mutating func copy(_ source: RawSpan) {
    precondition(source.byteCount == byteCount, "a copy of another size")
    // Safe: both have `byteCount` bytes and do not overlap, because one is held exclusively.
    unsafe withUnsafeMutableBytes { target in
      unsafe source.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    }
  }
}
