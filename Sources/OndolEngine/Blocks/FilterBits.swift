// A segment's filter in memory, at the start of a cache line so that each lookup touches one. If
// memory is short, it is only the arithmetic of a filter that is read in parts, which are in slots
// of their own and are loaded and evicted like blocks. A part has as many lines as fit into a page.
// A whole filter is read at its first use, which most opens never reach: the only run of a shard is
// searched without it.

internal import Synchronization

/// A filter that is whole in memory once it has been loaded, or the measure of one in parts. A
/// plain reference: its owner calls `free` at the end.
@safe struct FilterBits: BitwiseCopyable, @unchecked Sendable {
  // Safe to share: the lines are written before their address, and not changed afterwards.
  private let address: UnsafeMutablePointer<Atomic<UInt>>?
  private let lines: Int

  /// No filter: every key may be present.
  static var none: FilterBits { FilterBits(linesInParts: 0) }

  /// A filter in parts, which `mayContain(_:in:)` checks; by itself it returns that every key may
  /// be present.
  init(linesInParts lines: Int) {
    unsafe address = nil
    self.lines = lines
  }

  /// A filter that `load` brings; until then every key may be present.
  init(linesToLoad lines: Int) {
    let address = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: 1)
    unsafe address.initialize(to: Atomic(0))
    unsafe self.address = address
    self.lines = lines
  }

  /// A filter of a copy of `bytes`, whose count is a multiple of the line's.
  init(_ bytes: RawSpan) {
    self.init(linesToLoad: bytes.byteCount / Filter.lineBytes)
    load(bytes)
  }

  /// Loads a copy of `bytes`, which must be as many as in all lines. At most once.
  func load(_ bytes: RawSpan) {
    precondition(bytes.byteCount == lines * Filter.lineBytes, "a filter of broken lines")
    guard let address = unsafe address else { return }
    let memory = unsafe BlockMemory.allocate(bytes.byteCount)
    // Safe: both have as many bytes.
    unsafe bytes.withUnsafeBytes { source in
      unsafe UnsafeMutableRawBufferPointer(start: memory, count: source.count).copyMemory(
        from: source)
    }
    let previous = unsafe address.pointee.exchange(UInt(bitPattern: memory), ordering: .releasing)
    precondition(previous == 0, "loaded twice")
  }

  private var base: UnsafeMutableRawPointer? {
    @inline(__always)
    get {
      guard let address = unsafe address else { return nil }
      // Safe: it is 0 or the address of the lines, which stay until the end.
      return unsafe UnsafeMutableRawPointer(
        bitPattern: address.pointee.load(ordering: .acquiring))
    }
  }

  /// Whether it is to be whole in memory and has not been loaded yet.
  var isToLoad: Bool {
    @inline(__always)
    get { unsafe lines > 0 && address != nil && base == nil }
  }

  /// Bytes of all lines.
  var lineBytes: Int { lines * Filter.lineBytes }

  /// Bytes in memory.
  var byteCount: Int { unsafe base == nil ? 0 : lineBytes }

  /// The number of parts; 0 for a whole filter.
  var partCount: Int {
    unsafe address == nil ? (lines + Filter.partLines - 1) / Filter.partLines : 0
  }

  /// The part that contains the bits of this hash.
  func part(of hash: UInt64) -> Int { Filter.line(hash, of: lines) / Filter.partLines }

  /// Like `mayContain`, with the hash's part, which is in `block`.
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

  /// False when no key with this hash was added.
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
    unsafe address?.deallocate()
  }
}
