// Finds the blocks of a segment without its index, which may be damaged, or encrypted with a
// missing key. The blocks are adjacent, each ends in a trailer, and its checksum reveals where it
// began. Only the file's salt is needed.

/// The location of a data block, and its length including the trailer.
struct SalvageBlock {
  var offset: UInt64
  var length: Int
}

/// Iterates over the blocks in a section of a segment file.
struct BlockWalk {
  struct Found {
    var place: SalvageBlock
    /// Nil if no valid block ends in the first possible trailer.
    var kind: BlockKind?
  }

  private let file: any File
  private let salt: UInt64
  private let seal: FileSeal?
  private let end: UInt64
  /// Where the next block begins.
  private(set) var offset: UInt64
  private var window: [UInt8] = []
  private var windowStart: UInt64
  /// The possible trailer positions in the window, from the next block on.
  private var trailers: ArraySlice<Int> = []

  /// The number of trailers tried for a block before it is considered damaged.
  private static let attempts = 16
  private static let windowLength: UInt64 = 1 << 20
  /// No segment is nearly this long.
  private static let longestWindow: UInt64 = 1 << 30

  init(_ file: any File, _ stretch: Range<UInt64>, salt: UInt64, seal: FileSeal?) {
    self.file = file
    self.salt = salt
    self.seal = seal
    offset = stretch.lowerBound
    windowStart = offset
    end = stretch.upperBound
  }

  /// The next block, valid or not; nil if there are no more trailers.
  mutating func next() throws(EngineError) -> Found? {
    while true {
      let start = Int(offset - windowStart)
      let candidates = trailers.prefix(Self.attempts)
      if let last = candidates.first(where: { isBlock(from: start, to: $0) }) {
        let kind = BlockKind(rawValue: window[last + 5])
        return take(start, behind: last, kind)
      }
      if candidates.count < Self.attempts, try readOn() { continue }
      guard let first = candidates.first else { return nil }
      return take(start, behind: first, nil)
    }
  }

  private mutating func take(_ start: Int, behind trailer: Int, _ kind: BlockKind?) -> Found {
    let length = trailer + StoredBlock.trailerLength - start
    let place = SalvageBlock(offset: offset, length: length)
    offset += UInt64(length)
    trailers = trailers.drop { $0 < start + length }
    return Found(place: place, kind: kind)
  }

  /// Reads more bytes after the next block's beginning. Returns false at the end.
  private mutating func readOn() throws(EngineError) -> Bool {
    let held = windowStart + UInt64(window.count)
    guard held < end, offset < end else { return false }
    let wanted = max(Self.windowLength, 2 * (held - offset))
    guard wanted <= Self.longestWindow else { return false }
    let bytes = try file.read(at: offset, count: Int(min(wanted, end - offset)))
    guard offset + UInt64(bytes.count) > held else { return false }
    (window, windowStart) = (bytes, offset)
    trailers = possibleTrailers()[...]
    return true
  }

  /// The possible trailer positions: the codec, kind, cipher and zeros there are valid.
  private func possibleTrailers() -> [Int] {
    let mark = seal == nil ? 0 : StoredBlock.sealedMark
    let bytes = window.bytes
    var places: [Int] = []
    var place = 0
    while place + StoredBlock.trailerLength <= bytes.byteCount {
      let kind = bytes.byte(at: place + 5)
      if kind == 1 || kind == 2, bytes.byte(at: place + 4) <= 1,
        bytes.byte(at: place + 6) == UInt8(mark & 0xff),
        bytes.byte(at: place + 7) == UInt8(mark >> 8),
        (12..<16).allSatisfy({ bytes.byte(at: place + $0) == 0 })
      {
        places.append(place)
      }
      place += 1
    }
    return places
  }

  private func isBlock(from start: Int, to trailer: Int) -> Bool {
    guard start <= trailer, let kind = BlockKind(rawValue: window[trailer + 5]) else {
      return false
    }
    let block = window.bytes.extracting(start..<(trailer + StoredBlock.trailerLength))
    if let seal {
      return (try? StoredBlock.unsealed(block, salt: salt, offset: offset, by: seal)) != nil
    }
    return (try? StoredBlock.Opened(block, kind: kind, salt: salt, offset: offset)) != nil
  }
}
