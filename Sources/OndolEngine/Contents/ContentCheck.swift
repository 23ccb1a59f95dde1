// Reads contents for copies and checks: every location of a snapshot, and every frame of the stored
// bytes. It is separate from the read path and keeps only a piece of one content in memory.

internal import Synchronization

extension Contents {
  /// Bytes read at once.
  private static let pieceLength = 16 * ContentFrame.length

  /// Prevents the removal of any file until the result is released or ended.
  package func keepFiles() -> ContentCopy { ContentCopy(of: self) }

  /// Reads all of a content and discards the bytes.
  ///
  /// - Throws: `.corrupt` if a frame differs from what was written, `.io` if its file cannot be
  ///   read.
  package func check(_ location: ContentLocation) throws(EngineError) {
    if location.isAway { return }
    let length = Int(clamping: location.length)
    var start = 0
    while start < length {
      let end = min(length, start + Self.pieceLength)
      _ = try read(location, start..<end, mayBlock: true)
      start = end
    }
  }
}

extension Snapshot {
  /// Visits the location of each content, in the order of their digests. Blocks.
  ///
  /// - Throws: `.corrupt` if a row cannot be read, or is not a location.
  func forEachLocation(
    _ visit: (ContentLocation) throws(EngineError) -> Void
  ) throws(EngineError) {
    var (lower, upper): ([UInt8], [UInt8]) = ([], [])
    lower.appendBigEndian(ContentLocation.keyspace)
    upper.appendBigEndian(ContentLocation.keyspace + 1)
    var cursor = cursor(from: lower, to: upper)
    try cursor.seekToFirst()
    while cursor.isValid {
      let row = try cursor.value.array
      let location: ContentLocation
      do throws(MalformedBytes) {
        location = try ContentLocation(row.bytes)
      } catch {
        throw .corrupt(
          file: "the location of a content", offset: UInt64(error.offset), reason: error.reason)
      }
      try visit(location)
      try cursor.next()
    }
  }
}

/// Keeps all files of contents in place as long as it lives or until it ends.
package final class ContentCopy: Sendable {
  private let contents: Contents
  private let isOver = Atomic(false)

  fileprivate init(of contents: Contents) {
    self.contents = contents
    contents.copies.add(1, ordering: .sequentiallyConsistent)
  }

  deinit { end() }

  package func end() {
    guard !isOver.exchange(true, ordering: .relaxed) else { return }
    contents.copies.subtract(1, ordering: .sequentiallyConsistent)
  }
}
