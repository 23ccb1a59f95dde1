// How much of which value file the rows of a segment lead to. The manifest adds it up, and so knows
// what of a value file is alive without reading it.

/// What a segment holds of a value file. All segments together hold what of the file is alive.
package struct ValueReference: Sendable, Equatable {
  package var file: FileNumber
  /// Bytes of the records that the segment's pointers lead to.
  package var bytes: UInt64
}

/// Adds up the references of a segment being written, or read to be verified.
struct ValueReferenceSums {
  private var bytes: [FileNumber: UInt64] = [:]

  mutating func add(_ pointer: ValuePointer) {
    // Wraps only in files that cannot be; the sum is compared, nothing rests on it.
    bytes[pointer.file, default: 0] &+= pointer.recordLength
  }

  /// By number of file.
  var references: [ValueReference] {
    bytes.sorted { $0.key < $1.key }.map { ValueReference(file: $0.key, bytes: $0.value) }
  }
}

extension ValuePointer {
  /// Bytes that the record takes in its file.
  var recordLength: UInt64 { UInt64(ValueFileFormat.recordHeaderLength) + UInt64(storedLength) }
}
