// A segment's filter in memory, at the start of a cache line so that each question touches one; or,
// where memory is short, the arithmetic of one that is read in parts, which lie in slots of their
// own and come and go like blocks. A part has as many lines as fit into a page.

/// A loaded filter, or the measure of one in parts. A plain reference: its owner calls `free` at
/// the end.
@safe struct FilterBits: BitwiseCopyable, @unchecked Sendable {
  // Safe to share: not written after init.
  private let base: UnsafeMutableRawPointer?
  private let lines: Int

  /// No filter: every key may be there.
  static var none: FilterBits { unsafe FilterBits(base: nil, lines: 0) }

  /// A filter in parts, which are asked by `mayContain(_:in:)`; by itself it says that every key
  /// may be there.
  init(linesInParts lines: Int) {
    unsafe self.init(base: nil, lines: lines)
  }

  private init(base: UnsafeMutableRawPointer?, lines: Int) {
    unsafe self.base = base
    self.lines = lines
  }

  /// A copy of `bytes`, whose count is a multiple of the line's.
  init(_ bytes: RawSpan) {
    precondition(bytes.byteCount % Filter.lineBytes == 0, "a filter of broken lines")
    lines = bytes.byteCount / Filter.lineBytes
    let memory = unsafe BlockMemory.allocate(bytes.byteCount)
    // Safe: both have as many bytes.
    unsafe bytes.withUnsafeBytes { source in
      unsafe UnsafeMutableRawBufferPointer(start: memory, count: source.count).copyMemory(
        from: source)
    }
    unsafe base = memory
  }

  /// Bytes in memory.
  var byteCount: Int { unsafe base == nil ? 0 : lines * Filter.lineBytes }

  /// How many parts there are; none of a filter that is whole.
  var partCount: Int {
    unsafe base == nil ? (lines + Filter.partLines - 1) / Filter.partLines : 0
  }

  /// The part that is asked for the key with this hash.
  func part(of hash: UInt64) -> Int { Filter.line(hash, of: lines) / Filter.partLines }

  /// As `mayContain`, asking the hash's part, which is in `block`.
  func mayContain(_ hash: UInt64, in block: Block) -> Bool {
    let start = Filter.line(hash, of: lines) % Filter.partLines * Filter.lineBytes
    let mixed = Filter.mix(hash)
    let part = block.value(0)
    for probe in 0..<Filter.probes {
      let bit = Filter.bit(mixed, probe)
      if part.byte(at: start + (bit >> 3)) & (1 << UInt8(bit & 7)) == 0 { return false }
    }
    return true
  }

  /// False when no key with this hash was put in.
  @inline(__always)
  func mayContain(_ hash: UInt64) -> Bool {
    guard let base = unsafe base, lines > 0 else { return true }
    // Safe: a line's number is below `lines`, a bit's below 512.
    let line = unsafe base + Filter.line(hash, of: lines) * Filter.lineBytes
    let mixed = Filter.mix(hash)
    for probe in 0..<Filter.probes {
      let bit = Filter.bit(mixed, probe)
      if unsafe line.load(fromByteOffset: bit >> 3, as: UInt8.self) & (1 << UInt8(bit & 7)) == 0 {
        return false
      }
    }
    return true
  }

  func free() {
    if let base = unsafe base { unsafe BlockMemory.free(base, byteCount) }
  }
}
