// Bytes for a new file. They are collected in a chunk, so that the file gets few and large writes.

/// Writes a file from its start to its end.
struct ChunkedOutput {
  /// The size in bytes at which a chunk goes to the file.
  static let chunkBytes = 256 << 10

  private let file: any File
  /// Bytes not yet written to the file, which has `written` already.
  var bytes: [UInt8]
  private(set) var written: UInt64 = 0

  /// An output that begins with `header`, to a file that is new and empty.
  init(_ file: any File, header: [UInt8]) {
    self.file = file
    bytes = header
  }

  /// The position of the next byte.
  var position: UInt64 { written + UInt64(bytes.count) }

  /// Adds bytes. They go directly to the file when they are as long as a chunk.
  mutating func append(_ piece: [UInt8]) throws(EngineError) {
    if piece.count < Self.chunkBytes {
      bytes += piece
      return try flushChunk()
    }
    try flush()
    try file.write(piece.bytes, at: written)
    written += UInt64(piece.count)
  }

  /// Writes the collected bytes, once they fill a chunk.
  mutating func flushChunk() throws(EngineError) {
    if bytes.count >= Self.chunkBytes { try flush() }
  }

  /// Writes all collected bytes.
  mutating func flush() throws(EngineError) {
    try file.write(bytes.bytes, at: written)
    written += UInt64(bytes.count)
    // The memory for one long row is not kept.
    bytes.removeAll(keepingCapacity: bytes.count <= 4 * Self.chunkBytes)
  }
}
