// The manifest's entry of a segment: enough to route reads and to pick compactions without opening
// the file, and enough to notice when the file is not the one that was written.

/// A finished segment, described.
package struct SegmentMetadata: Sendable, Equatable {
  package var number: FileNumber
  /// Random bits of this incarnation of the file, mixed into its checksums.
  package var salt: UInt64
  package var sizeBytes: UInt64
  package var footerChecksum: UInt64
  /// The first key. Empty in a segment without rows, as `maxKey` is.
  package var minKey: [UInt8]
  /// The last key.
  package var maxKey: [UInt8]
  /// Rows, including tombstones.
  package var entries: UInt64
  package var tombstones: UInt64
  /// Bytes of keys and values before prefixes are removed and blocks compressed.
  package var rawBytes: UInt64
  package var minSequence: SequenceNumber
  package var maxSequence: SequenceNumber
  /// The value files that its rows point into, by number.
  package var valueReferences: [ValueReference] = []
  /// The manifest's replacement for its keys when its rows are a keyed group's.
  var bounds: SealedBounds?

  /// Whether its keys are unknown, because its group's key is missing.
  var isLocked: Bool { bounds != nil && minKey.isEmpty }
  /// The keyed group of all of its rows; nil for rows outside groups.
  var group: UInt32? { bounds?.group }

  /// All amounts that are summed over segments.
  var amounts: [UInt64] {
    [sizeBytes, entries, tombstones, rawBytes] + valueReferences.map(\.bytes)
  }
}

/// The first and the last key of a segment of a keyed group, sealed under the group's key: once,
/// when the segment is written, and copied from then on.
struct SealedBounds: Sendable, Equatable {
  var group: UInt32
  var bytes: [UInt8]
}

extension SealedBounds {
  /// Seals the keys of a segment, whose rows are the group's.
  init(of segment: SegmentMetadata, in group: UInt32, by keyring: Keyring) {
    self.group = group
    bytes = []
    bytes.appendVarint(segment.minKey.count)
    bytes += segment.minKey + segment.maxKey
    keyring.seal(.bounds, number: segment.number, salt: segment.salt, group: group)?
      .seal(&bytes, from: 0, SealNonce(place: 0, extra: 0), context: [])
  }

  /// Restores the segment's keys if the group's key is available. Returns false when that key does
  /// not open them, and so is not the one with which the segment was written: from then on the
  /// group counts as one whose key is missing.
  ///
  /// - Throws: when they are not the group's.
  func open(
    _ segment: inout SegmentMetadata, by keyring: Keyring?
  ) throws(MalformedBytes) -> Bool {
    guard let keyring,
      let seal = keyring.groupSeal(
        .bounds, number: segment.number, salt: segment.salt, of: group)
    else { return true }
    var opened: [UInt8] = []
    guard
      seal.open(
        bytes.bytes, SealNonce(place: 0, extra: 0), context: [], appendingTo: &opened)
    else {
      return !keyring.groups.lockOut(
        group, because: "segment \(segment.number.rawValue) was written with another key")
    }
    var reader = ByteReader(opened.bytes)
    segment.minKey = try reader.lengthPrefixed().array
    segment.maxKey = try reader.take(reader.remaining).array
    guard KeyedGroups.group(of: segment.minKey.bytes) == group,
      KeyedGroups.group(of: segment.maxKey.bytes) == group
    else { throw MalformedBytes(at: 0, "segment \(segment.number.rawValue) is not its group's") }
    return true
  }
}

/// How a segment is written. Readers accept any of these options.
struct SegmentOptions: Sendable {
  /// Bytes of a data block before compression. A row that is larger gets a block of its own.
  var blockSize = 8 << 10
  /// Whether blocks that LZ4 makes at least an eighth smaller are stored compressed.
  var compress = true
  /// Bits of filter for each key; 0 leaves the filter out.
  var bitsPerKey = 10
}
