// Bytes on their way into a new file. They gather in a chunk, so that the file sees few and large
// writes.

/// Writes a file from its start to its end.
struct ChunkedOutput {
  /// A chunk goes to the file when it has so many bytes.
  static let chunkBytes = 256 << 10

  private let file: any File
  /// Bytes not yet given to the file, which has `written` already.
  var bytes: [UInt8]
  private(set) var written: UInt64 = 0

  /// An output that begins with `header`, to a file that is new and empty.
  init(_ file: any File, header: [UInt8]) {
    self.file = file
    bytes = header
  }

  /// Where the next byte goes.
  var position: UInt64 { written + UInt64(bytes.count) }

  /// Adds bytes, which go to the file as they are when they are a chunk by themselves.
  mutating func append(_ piece: [UInt8]) throws(EngineError) {
    if piece.count < Self.chunkBytes {
      bytes += piece
      return try flushChunk()
    }
    try flush()
    try file.write(piece.bytes, at: written)
    written += UInt64(piece.count)
  }

  /// Gives the file what has gathered, once it is a chunk.
  mutating func flushChunk() throws(EngineError) {
    if bytes.count >= Self.chunkBytes { try flush() }
  }

  /// Gives the file all there is.
  mutating func flush() throws(EngineError) {
    try file.write(bytes.bytes, at: written)
    written += UInt64(bytes.count)
    // What one long row took is not kept.
    bytes.removeAll(keepingCapacity: bytes.count <= 4 * Self.chunkBytes)
  }
}
