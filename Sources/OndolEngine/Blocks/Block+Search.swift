// Finds rows in a block. Reads spend their time here: the order of loads matters more than their
// number, so a search uses heads, which are side by side, and looks at one key at the end.

extension Block {
  /// The row with exactly this key.
  /// - Complexity: O(log rows), usually two or three cache lines.
  @inline(__always)
  func find(_ key: RawSpan) -> Int? {
    let prefixLength = Int(header.prefixLength)
    guard key.byteCount >= prefixLength else { return nil }
    let head = Self.word(key, at: prefixLength)
    var row = firstHead(atLeast: head)
    // Safe: `row` is below `rowCount` where it is read.
    guard unsafe row < rowCount && rows[row].head == head else { return nil }
    // Before the comparisons, which wait for another cache line.
    prefetchValue(row)
    guard prefixEquals(key, prefixLength) else { return nil }
    // Rarely another row has the same head; then whole keys decide.
    if suffixEquals(row, key, from: prefixLength) { return row }
    row = lowerBoundAmongEqual(row, head, key, prefixLength)
    guard unsafe row < rowCount && rows[row].head == head,
      suffixEquals(row, key, from: prefixLength)
    else { return nil }
    return row
  }

  /// The first row whose key is `key` or above; `rowCount` when there is none.
  @inline(__always)
  func lowerBound(_ key: RawSpan) -> Int {
    let prefixLength = Int(header.prefixLength)
    let order = comparePrefix(key, prefixLength)
    if order != 0 { return order < 0 ? 0 : rowCount }
    let head = Self.word(key, at: prefixLength)
    let row = firstHead(atLeast: head)
    guard row < rowCount, unsafe rows[row].head == head else { return row }
    // Usually the key is present.
    if suffixEquals(row, key, from: prefixLength) { return row }
    return lowerBoundAmongEqual(row, head, key, prefixLength)
  }

  /// The first row whose head is `head` or above.
  @inline(__always)
  private func firstHead(atLeast head: UInt64) -> Int {
    let header = self.header
    let rows = unsafe self.rows
    let count = Int(header.rowCount)
    if head <= header.firstHead { return 0 }
    if header.scale != 0 {
      var row = guess(head, header)
      // Safe: `row` stays within 0...count - 1 where it is read.
      if unsafe rows[row].head < head {
        repeat { row += 1 } while unsafe row < count && rows[row].head < head
      } else {
        while unsafe row > 0 && rows[row - 1].head >= head { row -= 1 }
      }
      return row
    }
    // Safe: `first + half` is always below `count`.
    var first = 0
    var rest = count
    while rest > 1 {
      let half = rest >> 1
      first = unsafe rows[first + half - 1].head < head ? first + half : first
      rest -= half
    }
    return unsafe first + (rows[first].head < head ? 1 : 0)
  }

  /// A row not far from the first whose head is `head` or above: the proportional position,
  /// corrected twice by the distance of the head found there from the wanted one. Identifiers made
  /// of letters and digits have gaps between `9` and `A` and between `Z` and `a`, which a
  /// correction steps over. `head` is above the first row's.
  @inline(__always)
  func guess(_ head: UInt64, _ header: Header) -> Int {
    // Safe: `row` stays within 0...last.
    let rows = unsafe self.rows
    let last = Int(header.rowCount) - 1
    let distance = (head - header.firstHead).multipliedFullWidth(by: header.scale).high
    var row = distance < UInt64(last) ? Int(truncatingIfNeeded: distance) : last
    for _ in 0..<2 {
      let found = unsafe rows[row].head
      if found < head {
        let step = (head - found).multipliedFullWidth(by: header.scale).high
        if step <= Self.walkLimit { break }
        row = step < UInt64(last - row) ? row + Int(truncatingIfNeeded: step) : last
      } else {
        let step = (found - head).multipliedFullWidth(by: header.scale).high
        if step <= Self.walkLimit { break }
        row = step < UInt64(row) ? row - Int(truncatingIfNeeded: step) : 0
      }
    }
    return row
  }

  /// Up to this many rows, a walk is faster than a jump.
  private static var walkLimit: UInt64 { 3 }

  /// Like `lowerBound`, when `first` is the first row with the wanted head: whole keys decide.
  @inline(never)
  private func lowerBoundAmongEqual(
    _ first: Int, _ head: UInt64, _ key: RawSpan, _ prefixLength: Int
  ) -> Int {
    let wanted = key.extracting(droppingFirst: prefixLength)
    if suffix(first).compare(wanted) >= 0 { return first }
    var low = first + 1
    // Safe: `low + step` and `middle` are below `rowCount` where they are read.
    var step = 1
    while unsafe low + step < rowCount && rows[low + step].head == head { step *= 2 }
    var high = min(low + step, rowCount)
    while low < high {
      let middle = (low + high) >> 1
      let isBelow =
        unsafe rows[middle].head == head
        ? suffix(middle).compare(wanted) < 0 : rows[middle].head < head
      if isBelow { low = middle + 1 } else { high = middle }
    }
    return low
  }

  // MARK: - Prefetching

  /// The position of `key` between the keys of `row` and of the previous row, from 0 to 1; nil when
  /// heads do not determine it.
  @inline(__always)
  func position(of key: RawSpan, before row: Int) -> Double? {
    guard row > 0 else { return nil }
    let head = Self.word(key, at: Int(header.prefixLength))
    // Safe: both are rows of the block.
    let low = unsafe rows[row - 1].head
    let high = unsafe rows[row].head
    guard low < high, low <= head, head <= high else { return nil }
    return Double(head &- low) / Double(high &- low)
  }

  /// Prefetches the lines of the header and of the rows around `row`, which is a guess.
  @inline(__always)
  func prefetch(around row: Int) {
    // Safe: prefetching reads nothing.
    unsafe OndolEngine.prefetch(base)
    let guess = unsafe base + (Self.rowsOffset &+ row &* MemoryLayout<Row>.stride)
    unsafe OndolEngine.prefetch(guess - 40)
    unsafe OndolEngine.prefetch(guess + 40)
  }

  /// Prefetches the first lines of the value of `row`; the processor fetches the rest of a long
  /// one.
  @inline(__always)
  func prefetchValue(_ row: Int) {
    let range = valueRange(row)
    let end = min(range.upperBound, range.lowerBound &+ 512)
    var offset = range.lowerBound
    while offset < end {
      unsafe OndolEngine.prefetch(base + offset)
      offset &+= 64
    }
  }

  // MARK: - Comparing

  @inline(__always)
  private func suffixEquals(_ row: Int, _ key: RawSpan, from prefixLength: Int) -> Bool {
    let range = suffixRange(row)
    guard range.count == key.byteCount - prefixLength else { return false }
    // The heads are equal already.
    guard range.count > 8 else { return true }
    return unsafe Self.equal(
      base + range.lowerBound + 8, key, at: prefixLength + 8, count: range.count - 8)
  }

  @inline(__always)
  private func prefixEquals(_ key: RawSpan, _ prefixLength: Int) -> Bool {
    let word = Self.word(key, at: 0)
    if prefixLength < 8 {
      return prefixLength == 0 || (word ^ header.prefixWord) >> UInt64(64 - 8 * prefixLength) == 0
    }
    guard word == header.prefixWord else { return false }
    return unsafe Self.equal(
      base + prefixOffset + 8, key, at: 8, count: prefixLength - 8)
  }

  /// The order of `key` relative to the prefix: 0 when it begins with it.
  @inline(__always)
  private func comparePrefix(_ key: RawSpan, _ prefixLength: Int) -> Int {
    guard key.byteCount >= 8 else { return comparePrefixBytes(key, prefixLength) }
    if prefixLength == 0 { return 0 }
    let shift = UInt64(max(0, 64 - 8 * prefixLength))
    let word = Self.word(key, at: 0) >> shift
    let wanted = header.prefixWord >> shift
    if word != wanted { return word < wanted ? -1 : 1 }
    return prefixLength <= 8 ? 0 : comparePrefixBytes(key, prefixLength)
  }

  @inline(never)
  private func comparePrefixBytes(_ key: RawSpan, _ prefixLength: Int) -> Int {
    key.extracting(first: min(prefixLength, key.byteCount)).compare(prefix())
  }

  /// Whether the `count` bytes at `bytes` equal those of `key` at `offset`, which must have them.
  /// Both have eight more before them, already found equal.
  @inline(__always)
  private static func equal(
    _ bytes: UnsafeRawPointer, _ key: RawSpan, at offset: Int, count: Int
  ) -> Bool {
    // Safe: the caller has compared the lengths; the last load may reach into the eight bytes
    // before.
    var index = 0
    while index + 8 <= count {
      let left = unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      let right = unsafe key.unsafeLoadUnaligned(
        fromUncheckedByteOffset: offset + index, as: UInt64.self)
      if left != right { return false }
      index += 8
    }
    guard index < count else { return true }
    let left = unsafe bytes.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
    let right = unsafe key.unsafeLoadUnaligned(
      fromUncheckedByteOffset: offset + count - 8, as: UInt64.self)
    return left == right
  }

  /// The eight bytes of `key` from `offset` on as a number with the same order, with zeros after
  /// its end.
  @inline(__always)
  static func word(_ key: RawSpan, at offset: Int) -> UInt64 {
    let rest = key.byteCount - offset
    if rest >= 8 {
      // Safe: at least eight bytes are left.
      return unsafe UInt64(
        bigEndian: key.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
    }
    if rest <= 0 { return 0 }
    if key.byteCount >= 8 {
      // Safe: there are eight bytes before the end; those before `offset` are shifted out.
      let last = unsafe UInt64(
        bigEndian: key.unsafeLoadUnaligned(
          fromUncheckedByteOffset: key.byteCount - 8, as: UInt64.self))
      return last << UInt64(64 - 8 * rest)
    }
    var word: UInt64 = 0
    for index in 0..<rest { word = word << 8 | UInt64(key.byte(at: offset + index)) }
    return word << UInt64(64 - 8 * rest)
  }
}
