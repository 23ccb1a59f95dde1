// A filter that is read in parts. The file has one checksum for all of it, which is verified when
// the segment is opened; what is read again later is compared with checksums of the parts that were
// made then, of eight bytes for each page of the filter. In an encrypted file each page is sealed
// by itself, so that it can be read by itself.

/// Where the parts of a filter are, and what they must be.
struct FilterParts: Sendable {
  private let offset: UInt64
  private let length: Int
  private let checksums: [UInt64]
  private let seal: FileSeal?
  /// What its pages are sealed as.
  private let unit: SealedUnit
  /// Bytes of a part in the file.
  private let storedPart: Int

  private static let partBytes = Filter.partLines * Filter.lineBytes

  /// For the filter whose bytes in the file, found to be sound, are these, at `offset`.
  init(
    _ bytes: RawSpan, at offset: UInt64, salt: UInt64, seal: FileSeal? = nil,
    as unit: SealedUnit = .filter
  ) {
    self.offset = offset
    self.unit = unit
    self.seal = seal
    length = bytes.byteCount
    storedPart = Self.storedPart(isSealed: seal != nil)
    var checksums: [UInt64] = []
    for start in stride(from: 0, to: bytes.byteCount, by: storedPart) {
      let end = min(start + storedPart, bytes.byteCount)
      checksums.append(
        Self.checksum(bytes.extracting(start..<end), at: offset + UInt64(start), salt))
    }
    self.checksums = checksums
  }

  /// Bytes that this takes.
  var byteCount: Int { checksums.count * MemoryLayout<UInt64>.stride }

  /// Where part number `part` is in the file.
  func range(_ part: Int) -> Range<UInt64> {
    let start = part * storedPart
    let end = min(start + storedPart, length)
    return (offset + UInt64(start))..<(offset + UInt64(end))
  }

  /// Whether `bytes` are those of part number `part`.
  func isPart(_ part: Int, _ bytes: RawSpan, salt: UInt64) -> Bool {
    Self.checksum(bytes, at: range(part).lowerBound, salt) == checksums[part]
  }

  /// Bytes of the filter, of which part number `part` is stored as `bytes`.
  func opened(_ part: Int, _ bytes: [UInt8]) throws(MalformedBytes) -> [UInt8] {
    guard let seal else { return bytes }
    return try Self.opened(bytes.bytes, as: unit, at: range(part).lowerBound, by: seal)
  }

  /// Lines of a filter that is stored in so many bytes.
  static func lineCount(stored length: Int, isSealed: Bool) -> Int {
    guard isSealed else { return length / Filter.lineBytes }
    let part = storedPart(isSealed: true)
    let tags = (length + part - 1) / part * SealFormat.tagLength
    return max(0, length - tags) / Filter.lineBytes
  }

  // MARK: - Sealed filters

  private static func storedPart(isSealed: Bool) -> Int {
    isSealed ? partBytes + SealFormat.tagLength : partBytes
  }

  /// Whether a filter can be stored in so many bytes.
  static func canBe(_ length: UInt64, isSealed: Bool) -> Bool {
    let last = length % UInt64(storedPart(isSealed: isSealed))
    let tag = UInt64(isSealed && last > 0 ? SealFormat.tagLength : 0)
    return last >= tag && (last - tag) % UInt64(Filter.lineBytes) == 0
  }

  /// A filter as it is stored at `offset` of a sealed file.
  static func sealed(
    _ filter: [UInt8], as unit: SealedUnit, at offset: UInt64, by seal: FileSeal
  ) -> [UInt8] {
    var stored: [UInt8] = []
    for start in stride(from: 0, to: filter.count, by: partBytes) {
      let place = stored.count
      stored += filter[start..<min(start + partBytes, filter.count)]
      seal.seal(&stored, from: place, unit, at: offset + UInt64(place))
    }
    return stored
  }

  /// The filter that is stored so, all of it or a part from its beginning on.
  static func opened(
    _ stored: RawSpan, as unit: SealedUnit, at offset: UInt64, by seal: FileSeal
  ) throws(MalformedBytes) -> [UInt8] {
    var filter: [UInt8] = []
    filter.reserveCapacity(stored.byteCount)
    for start in stride(from: 0, to: stored.byteCount, by: storedPart(isSealed: true)) {
      let end = min(start + storedPart(isSealed: true), stored.byteCount)
      try seal.open(
        stored.extracting(start..<end), unit, at: offset + UInt64(start),
        appendingTo: &filter)
    }
    return filter
  }

  private static func checksum(_ bytes: RawSpan, at offset: UInt64, _ salt: UInt64) -> UInt64 {
    seededChecksum(contextSeed(salt: salt, offset: offset), bytes)
  }
}
