// A segment's filter in memory, at the start of a cache line so that each question touches one.

/// A loaded filter. A plain reference: its owner calls `free` at the end.
@safe struct FilterBits: BitwiseCopyable, @unchecked Sendable {
  // Safe to share: not written after init.
  private let base: UnsafeMutableRawPointer?
  private let lines: Int

  /// No filter: every key may be there.
  static var none: FilterBits { unsafe FilterBits(base: nil, lines: 0) }

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

  var byteCount: Int { lines * Filter.lineBytes }

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
