// Uploads a large content to a store. The content arrives in pieces, each of which is a part, and
// is never held as a whole. The store has the parts before any commit names them.

/// Receives one large content into its permanent location. It serves one caller at a time.
package protocol ContentWriter: Sendable {
  /// Adds the bytes in `piece`: `ContentFileWriter.pieceLength` of them, or fewer in the last
  /// piece. A later call may throw its failure.
  func write(_ piece: Range<Int>, of bytes: [UInt8]) async throws(EngineError)

  /// Makes everything survive a power cut, at the latest together with the commit that names it,
  /// and returns its location.
  func finish() async throws(EngineError) -> ContentLocation

  /// Removes what was written.
  func abandon() async
}

/// Uploads one content to a store.
final class ContentPartsWriter: ContentWriter {
  private struct State: Sendable {
    var length: UInt64 = 0
    var checksums: [UInt32] = []
    /// When the row was written that keeps the parts from being considered abandoned.
    var noted: Int64?
  }

  private let parts: RemoteParts
  private let id: [UInt8]
  private let state = Guarded(State())
  private let now: @Sendable () -> Int64

  /// Microseconds after which an upload renews its row.
  private static let renewal: Int64 = 300_000_000

  init(_ parts: RemoteParts, now: @escaping @Sendable () -> Int64) {
    precondition(ContentFileWriter.pieceLength == ContentPart.length, "a piece is a part")
    self.parts = parts
    self.now = now
    id = parts.makeID()
  }

  package func write(_ piece: Range<Int>, of bytes: [UInt8]) async throws(EngineError) {
    precondition(piece.count <= ContentPart.length, "a piece too long")
    if piece.isEmpty { return }
    let (length, noted) = state.withLock { ($0.length, $0.noted) }
    precondition(length % UInt64(ContentPart.length) == 0, "a piece behind the last")
    guard UInt64(piece.count) <= ContentFrame.largestContent - length else {
      throw .tooLarge(
        bytes: Int(clamping: length + UInt64(piece.count)),
        limit: Int(ContentFrame.largestContent))
    }
    let now = now()
    if let noted {
      if now - noted >= Self.renewal {
        try await parts.renewUpload(id, length: length, .process)
        state.withLock { $0.noted = now }
      }
    } else {
      // Recorded before the call, because the store may perform a call that throws.
      state.withLock { $0.noted = now }
      try await parts.beginUpload(id)
    }
    let part = Array(bytes[piece])
    try await parts.put(id, part: Int(length / UInt64(ContentPart.length)), part)
    let salt = ContentPartsPlace.salt(of: id)
    let frames = ContentFrame.count(ofContent: UInt64(part.count))
    let checksums = (0..<frames).map { frame in
      let place = ContentFrame.range(frame, ofContent: part.count)
      return ContentFrame.checksum(
        part.bytes.extracting(place), salt: salt, offset: length + UInt64(place.lowerBound))
    }
    state.withLock { state in
      state.length += UInt64(part.count)
      state.checksums += checksums
    }
  }

  package func finish() async throws(EngineError) -> ContentLocation {
    let place = state.withLock { state in
      ContentPartsPlace(id: id, length: state.length, checksums: state.checksums)
    }
    do throws(EngineError) {
      try await parts.confirm(id, length: place.length)
    } catch {
      await abandon()
      throw error
    }
    return .parts(place)
  }

  package func abandon() async {
    let (length, noted) = state.withLock { ($0.length, $0.noted) }
    if noted != nil { await parts.abandon(id, length: length) }
  }
}
