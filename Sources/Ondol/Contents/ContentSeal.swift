// The bytes of a content that was put for a collection with a key of its own. They are sealed under
// a key that only the reference contains. The sealed bytes are stored, like any content, for all
// code that keeps, moves, checks and copies contents. The digest is that of the sealed bytes, so
// even guessing the content does not reveal that it is stored.
//
// The content is cut into frames of 64 KiB, the last of which is the remainder. An empty content
// has one empty frame. Each frame is sealed by AES-256-GCM and followed by its tag of 16 bytes. The
// nonce is the number of the frame from 0 (8 bytes, low byte first), and 1 in the last frame, 0 in
// all others (4 bytes). So no frame opens in another's place, and none can be cut off. A key seals
// one content, once, so nonces need not be random.

internal import OndolEngine

/// Seals one content, and opens it.
struct ContentSeal: Sendable {
  private let cipher: GaloisCipher
  /// Bytes of the content.
  let length: Int
  private let frameCount: Int
  /// Bytes of the sealed content.
  let storedLength: Int

  /// - Returns: nil when no sealed content can have that many bytes.
  init?(_ key: BlobKey, length: Int) {
    let most = Int(ContentFrame.largestContent)
    guard (0...most).contains(length) else { return nil }
    frameCount = max(1, ContentFrame.count(ofContent: UInt64(length)))
    storedLength = length + frameCount * SealFormat.tagLength
    guard storedLength <= most else { return nil }
    cipher = GaloisCipher(keyBytes: key.bytes)
    self.length = length
  }

  private func nonce(_ frame: Int) -> SealNonce {
    SealNonce(place: UInt64(frame), extra: frame + 1 == frameCount ? 1 : 0)
  }

  /// The sealed form of the content.
  func seal(_ content: [UInt8]) -> [UInt8] {
    precondition(content.count == length, "another content")
    var sealed: [UInt8] = []
    sealed.reserveCapacity(storedLength)
    for frame in 0..<frameCount {
      let start = sealed.count
      sealed.append(content.bytes.extracting(ContentFrame.range(frame, ofContent: length)))
      cipher.seal(&sealed, from: start, nonce: nonce(frame), context: [])
    }
    return sealed
  }

  /// The frames that contain these bytes of the content. An empty range has no frames; the range of
  /// an empty content has the only frame.
  func frames(of range: Range<Int>) -> Range<Int> {
    if length == 0 { return 0..<1 }
    guard let last = range.last else { return 0..<0 }
    return range.lowerBound / ContentFrame.length..<last / ContentFrame.length + 1
  }

  /// The positions of frames in the sealed content.
  func stored(_ frames: Range<Int>) -> Range<Int> {
    guard let first = frames.first, let last = frames.last else { return 0..<0 }
    let start = ContentFrame.sealedRange(first, ofContent: length).lowerBound
    return start..<ContentFrame.sealedRange(last, ofContent: length).upperBound
  }

  /// The bytes of the content in a range, from the frames that contain them; nil when one was not
  /// sealed under this key, or is not the expected frame.
  func open(_ stored: [UInt8], _ frames: Range<Int>, _ range: Range<Int>) -> [UInt8]? {
    var opened: [UInt8] = []
    opened.reserveCapacity(stored.count)
    let start = self.stored(frames).lowerBound
    for frame in frames {
      let place = ContentFrame.sealedRange(frame, ofContent: length)
      guard place.upperBound - start <= stored.count,
        cipher.open(
          stored.bytes.extracting((place.lowerBound - start)..<(place.upperBound - start)),
          nonce: nonce(frame), context: [], appendingTo: &opened)
      else { return nil }
    }
    let base = frames.lowerBound * ContentFrame.length
    return range.count == opened.count
      ? opened : Array(opened[(range.lowerBound - base)..<(range.upperBound - base)])
  }
}
