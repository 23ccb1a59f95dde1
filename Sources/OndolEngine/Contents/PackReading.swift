// Reads packs: one content by its location, or all entries from the start, to find what is still
// live in a pack.

/// Reads one entry.
struct PackReading {
  private let place: PackPlace
  private let file: any File
  private let seal: FileSeal?
  private let mayBlock: Bool

  /// An entry up to this size is read as a whole, whichever part of it is requested.
  private static let shortEntry = 256 << 10

  init(_ place: PackPlace, file: any File, seal: FileSeal? = nil, mayBlock: Bool) {
    self.place = place
    self.file = file
    self.seal = seal
    self.mayBlock = mayBlock
  }

  /// The bytes of the content in `range`, which must not be empty.
  func content(in range: Range<Int>) throws(EngineError) -> [UInt8] {
    let isWhole = range.count == Int(place.length) || Int(place.entryLength) <= Self.shortEntry
    let frameCount = ContentFrame.count(ofContent: UInt64(place.length))
    let headLength =
      isWhole
      ? Int(place.entryLength)
      : PackFormat.headLength(frames: frameCount, isSealed: seal != nil)
    let head = try file.take(at: place.offset, count: headLength, mayBlock: mayBlock)
    let entry = try checked(head)
    let first = range.lowerBound / ContentFrame.length
    let last = (range.upperBound - 1) / ContentFrame.length
    let start = entry.frames[first].start
    let end = entry.frames[last].start + entry.frames[last].storedLength
    let stored =
      isWhole
      ? head
      : try file.take(
        at: place.offset + UInt64(start), count: end - start, mayBlock: mayBlock)
    let content = try restored(
      first...last, of: entry, in: stored.bytes, startingAt: isWhole ? 0 : start)
    let lower = range.lowerBound - ContentFrame.range(first, ofContent: entry.length).lowerBound
    if lower == 0, range.count == content.count { return content }
    return Array(content[lower..<(lower + range.count)])
  }

  private func checked(_ head: [UInt8]) throws(EngineError) -> PackEntry {
    do throws(MalformedBytes) {
      let entry = try PackEntry(
        head.bytes, salt: place.salt, offset: place.offset, seal: seal)
      guard entry.length == Int(place.length), entry.entryLength == Int(place.entryLength) else {
        throw MalformedBytes(at: 0, "the entry is not the one that its row names")
      }
      return entry
    } catch {
      throw corrupt(error, from: 0)
    }
  }

  /// The frames in their original form. `stored` begins at `start` of the entry.
  private func restored(
    _ wanted: ClosedRange<Int>, of entry: PackEntry, in stored: RawSpan, startingAt start: Int
  ) throws(EngineError) -> [UInt8] {
    var content: [UInt8] = []
    content.reserveCapacity(wanted.count * ContentFrame.length)
    for index in wanted {
      let frame = entry.frames[index]
      let place = frame.start - start
      do throws(MalformedBytes) {
        try entry.appendRaw(
          index, from: stored.extracting(place..<(place + frame.storedLength)),
          salt: self.place.salt, offset: self.place.offset + UInt64(frame.start), seal: seal,
          to: &content)
      } catch {
        throw corrupt(error, from: frame.start)
      }
    }
    return content
  }

  private func corrupt(_ error: MalformedBytes, from start: Int) -> EngineError {
    .corrupt(
      file: file.name, offset: place.offset + UInt64(start + error.offset), reason: error.reason)
  }
}

/// Iterates over a pack's entries in file order. It skips bytes that are not an entry, which a
/// crash, a full disk or damage may have left.
struct PackWalk {
  /// An entry and its location.
  struct Found: Sendable {
    var digest: [UInt8]
    var place: PackPlace
  }

  private let file: any File
  private let number: FileNumber
  private let salt: UInt64
  private let seal: FileSeal?
  private let end: UInt64
  private var offset = UInt64(DataFileHeader.length)
  private var window: [UInt8] = []
  private var windowStart: UInt64 = 0

  private static let windowLength = 256 << 10
  private static let longestHead = PackFormat.headLength(
    frames: ContentFrame.count(ofContent: UInt64(PackFormat.largestContent)), isSealed: true)

  init(
    _ file: any File, number: FileNumber, salt: UInt64, seal: FileSeal? = nil
  ) throws(EngineError) {
    self.file = file
    self.seal = seal
    self.number = number
    self.salt = salt
    end = try file.size()
  }

  /// The next entry with a valid head; nil at the end. Its frames are not examined.
  mutating func next() throws(EngineError) -> Found? {
    while offset < end {
      if let entry = try entryHere() {
        let place = PackPlace(
          pack: number, salt: salt, offset: offset, length: UInt32(entry.length),
          entryLength: UInt32(entry.entryLength))
        offset = PackFormat.aligned(offset + UInt64(entry.entryLength))
        return Found(digest: entry.digest, place: place)
      }
      offset += PackFormat.alignment
    }
    return nil
  }

  private mutating func entryHere() throws(EngineError) -> PackEntry? {
    let wanted = min(UInt64(Self.longestHead), end - offset)
    if offset < windowStart || offset + wanted > windowStart + UInt64(window.count) {
      window = try file.read(
        at: offset, count: Int(min(UInt64(Self.windowLength), end - offset)))
      windowStart = offset
    }
    let start = Int(offset - windowStart)
    guard start < window.count else { return nil }
    let bytes = window.bytes.extracting(droppingFirst: start)
    guard bytes.byteCount >= 4, bytes.byte(at: 0) == PackFormat.entryMagic[0],
      bytes.byte(at: 1) == PackFormat.entryMagic[1]
    else { return nil }
    do throws(MalformedBytes) {
      let entry = try PackEntry(bytes, salt: salt, offset: offset, seal: seal)
      return offset + UInt64(entry.entryLength) <= end ? entry : nil
    } catch {
      return nil
    }
  }
}
