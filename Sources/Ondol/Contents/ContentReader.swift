// Reads one content: stage 3 of the read path for bytes outside the rows. Bytes in the system's
// cache are read on the caller, which keeps its actor. Others are read on the engine's thread for
// cold reads. Packs are rewritten while they are read, so when a place is gone the reader looks up
// the location again.

internal import OndolEngine

/// A content that is open for reading. It stays stored while this object exists.
final class ContentReader: Sendable {
  /// Bytes of the content.
  let length: Int
  private let location: Guarded<ContentLocation>
  private let use: ContentUse
  /// Decrypts the stored bytes, when the reference has a key.
  private let seal: ContentSeal?
  /// On a store, keeps other processes from removing the bytes.
  private let base: HeldBase?
  private let store: ContentStore

  var digest: BlobDigest { use.digest }

  init(
    _ location: ContentLocation, use: ContentUse, seal: ContentSeal?, base: HeldBase?,
    store: ContentStore
  ) {
    length = seal?.length ?? Int(clamping: location.length)
    self.seal = seal
    self.location = Guarded(location)
    self.use = use
    self.base = base
    self.store = store
  }

  /// The path of a file with exactly the content's bytes, if there is one.
  var filePath: String? { seal != nil ? nil : store.contents.path(of: location.withLock { $0 }) }

  /// Whether the content has a file of its own that is encrypted.
  var isSealedFile: Bool {
    if case .file(let place) = location.withLock({ $0 }) { place.isSealed } else { false }
  }

  /// The bytes in `range`, all of them checked.
  ///
  /// - Throws: `.outOfRange` when the content has no such bytes; `.dataLoss` when they are damaged,
  ///   naming the file, the byte and the holders of the content.
  /// - Complexity: O(bytes), with up to 64 KiB more on either side, and one or two system calls.
  func read(_ range: Range<Int>) async throws(DatabaseError) -> [UInt8] {
    guard range.lowerBound >= 0, range.upperBound <= length else {
      throw DatabaseError(
        .outOfRange, "the content has \(length) bytes, and \(range) is outside")
    }
    guard let seal else { return try await readStored(range) }
    let frames = seal.frames(of: range)
    let stored = try await readStored(seal.stored(frames))
    guard let bytes = seal.open(stored, frames, range) else {
      throw DatabaseError(
        .permissionDenied, "the key in the reference does not open the content \(digest.hex)")
    }
    return bytes
  }

  /// Stored bytes in a range.
  private func readStored(_ range: Range<Int>) async throws(DatabaseError) -> [UInt8] {
    var attempts = 0
    while true {
      let place = location.withLock { $0 }
      do throws(EngineError) {
        return try await read(place, range)
      } catch {
        // It may have moved meanwhile; each move is a commit. A move by another process is visible
        // only after a refresh. Parts may be gone for a process that was away for longer than the
        // data it reads is kept.
        attempts += 1
        guard error.isMissingFile || place.isInParts, attempts < Self.mostAttempts else {
          throw await store.explained(error, of: digest)
        }
        if store.engine.hasOtherWriters { _ = try? await store.engine.refresh() }
        guard let now = try await store.location(of: digest), now != place else {
          throw await store.explained(error, of: digest)
        }
        location.withLock { $0 = now }
      }
    }
  }

  private static let mostAttempts = 16

  private func read(
    _ place: ContentLocation, _ range: Range<Int>
  ) async throws(EngineError) -> [UInt8] {
    let contents = store.contents
    do throws(EngineError) {
      return try contents.read(place, range, mayBlock: false)
    } catch {
      guard error == .wouldBlock else { throw error }
    }
    return try await contents.readPatiently { () throws(EngineError) in
      try contents.read(place, range, mayBlock: true)
    }
  }
}

extension ContentStore {
  /// The engine's error about a content, with the content's holders.
  func explained(_ error: EngineError, of digest: BlobDigest) async -> DatabaseError {
    var explained = DatabaseError(error)
    guard explained.code == .dataLoss || explained.code == .notFound else { return explained }
    explained.code = .dataLoss
    let holders = try? await read { (rows) throws(DatabaseError) in
      try rows.holderNames(of: digest, atMost: Self.mostNamed)
    }
    let names = holders.map { $0.isEmpty ? "nobody" : $0.joined(separator: ", ") } ?? "?"
    explained.message = "the content \(digest.hex), held by \(names): \(explained.message)"
    return explained
  }

  /// The most holders that an error names.
  private static let mostNamed = 8
}
