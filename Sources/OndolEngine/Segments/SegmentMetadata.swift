// What the manifest knows of a segment: enough to route reads and to pick compactions without
// opening the file, and enough to notice when the file is not the one that was written.

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
  /// Rows, tombstones among them.
  package var entries: UInt64
  package var tombstones: UInt64
  /// Bytes of keys and values before prefixes are dropped and blocks compressed.
  package var rawBytes: UInt64
  package var minSequence: SequenceNumber
  package var maxSequence: SequenceNumber
  /// The value files that its rows point into, by number.
  package var valueReferences: [ValueReference] = []

  /// All that is added up over segments.
  var amounts: [UInt64] {
    [sizeBytes, entries, tombstones, rawBytes] + valueReferences.map(\.bytes)
  }
}

/// How a segment is written. Readers take whatever they find.
struct SegmentOptions: Sendable {
  /// Bytes of a data block before compression. A row that is larger gets a block of its own.
  var blockSize = 8 << 10
  /// Whether blocks that LZ4 makes an eighth smaller are stored compressed.
  var compress = true
  /// Bits of filter for each key; 0 leaves the filter out.
  var bitsPerKey = 10
}
