// How much of which value file the rows of a segment refer to. The manifest sums these references,
// and so knows the live part of a value file without reading it.

/// A segment's live part of a value file. All segments together have the file's live part.
package struct ValueReference: Sendable, Equatable {
  package var file: FileNumber
  /// Bytes of the records that the segment's pointers lead to.
  package var bytes: UInt64
}

/// Sums the references of a segment that is being written, or read for verification.
struct ValueReferenceSums {
  private var bytes: [FileNumber: UInt64] = [:]

  mutating func add(_ pointer: ValuePointer) {
    // Wraps only in impossible files; the sum is only compared.
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
