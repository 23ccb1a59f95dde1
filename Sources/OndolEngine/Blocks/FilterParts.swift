// A filter that is read in parts. The file has one checksum for all of it, which is verified when
// the segment is opened. Parts that are read again later are compared with checksums of eight bytes
// for each page of the filter, which were computed then. In an encrypted file each page is sealed
// separately, so that it can be read separately.

/// The locations of a filter's parts, and their checksums.
struct FilterParts: Sendable {
  private let offset: UInt64
  private let length: Int
  private let checksums: [UInt64]
  private let seal: FileSeal?
  /// The kind of unit as which its pages are sealed.
  private let unit: SealedUnit
  /// Bytes of a part in the file.
  private let storedPart: Int

  private static let partBytes = Filter.partLines * Filter.lineBytes

  /// For the filter with these stored bytes, which are verified, at `offset`.
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

  /// Its memory in bytes.
  var byteCount: Int { checksums.count * MemoryLayout<UInt64>.stride }

  /// The position in the file of part number `part`.
  func range(_ part: Int) -> Range<UInt64> {
    let start = part * storedPart
    let end = min(start + storedPart, length)
    return (offset + UInt64(start))..<(offset + UInt64(end))
  }

  /// Whether `bytes` are those of part number `part`.
  func isPart(_ part: Int, _ bytes: RawSpan, salt: UInt64) -> Bool {
    Self.checksum(bytes, at: range(part).lowerBound, salt) == checksums[part]
  }

  /// Bytes of the filter from the stored bytes of part number `part`.
  func opened(_ part: Int, _ bytes: [UInt8]) throws(MalformedBytes) -> [UInt8] {
    guard let seal else { return bytes }
    return try Self.opened(bytes.bytes, as: unit, at: range(part).lowerBound, by: seal)
  }

  /// Lines of a filter with this stored length.
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

  /// Whether a filter can have this stored length.
  static func canBe(_ length: UInt64, isSealed: Bool) -> Bool {
    let last = length % UInt64(storedPart(isSealed: isSealed))
    let tag = UInt64(isSealed && last > 0 ? SealFormat.tagLength : 0)
    return last >= tag && (last - tag) % UInt64(Filter.lineBytes) == 0
  }

  /// The stored form of a filter at `offset` of a sealed file.
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

  /// The filter with this stored form, all of it or a part from its beginning on.
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
