// Writes a large content into a file of its own. The content arrives in pieces and is never held as
// a whole. One of a few threads writes pieces while the caller prepares the next ones. It also
// makes the device start on each piece at once, so that little work is left for the final sync. The
// file contains only the content's bytes; their checksums go into the row that names the file. In
// an encrypted database the file has a header, and each frame is encrypted and followed by its tag.

/// Writes one content into one file. It serves one caller at a time.
package final class ContentFileWriter: ContentWriter {
  /// Bytes of each piece except the last.
  package static let pieceLength = 256 << 10
  /// The most pieces in progress before the caller waits.
  private static let mostPieces = 8
  /// Bytes after which the file is synced to the device.
  private static let syncLength: UInt64 = 64 << 20

  private struct State: Sendable {
    /// Bytes that the caller has passed in.
    var length: UInt64 = 0
    var checksums: [UInt32] = []
    /// Pieces passed in but not written yet.
    var underway = 0
    var failure: EngineError?
    /// Waits until fewer pieces than this are in progress.
    var waiter: (CheckedContinuation<Void, Never>, below: Int)?
    var unsynced: UInt64 = 0
  }

  private let number: FileNumber
  private let salt: UInt64
  private let file: any File
  private let seal: FileSeal?
  private let contents: Contents
  private let worker: any Worker
  private let state = Guarded(State())

  /// Creates the file. Blocks.
  init(of contents: Contents, worker: any Worker) throws(EngineError) {
    self.contents = contents
    self.worker = worker
    number = contents.storage.manifest.allocate()
    salt = contents.storage.environment.random()
    let directory = contents.storage.directory
    seal = directory.keyring?.seal(content: number, salt: salt)
    file = try directory.create(number.contentFileName)
    guard seal != nil else { return }
    let header = DataFileHeader(
      kind: .content, number: number, salt: salt, identity: contents.storage.identity, shard: 0,
      isSealed: true)
    do throws(EngineError) {
      try file.write(header.encode().bytes, at: 0)
    } catch {
      try? directory.remove(number.contentFileName)
      throw error
    }
  }

  /// Adds the bytes in `piece`: `pieceLength` of them, or fewer in the last piece. It returns once
  /// they are on their way. A later call throws any failure that follows.
  package func write(_ piece: Range<Int>, of bytes: [UInt8]) async throws(EngineError) {
    precondition(piece.count <= Self.pieceLength, "a piece too long")
    if piece.isEmpty { return }
    await waitForRoom(Self.mostPieces)
    let offset = try state.withLock { (state) throws(EngineError) in
      if let failure = state.failure { throw failure }
      let (offset, length) = (state.length, UInt64(piece.count))
      guard length <= ContentFrame.largestContent - offset else {
        throw .tooLarge(
          bytes: Int(clamping: offset + length), limit: Int(ContentFrame.largestContent))
      }
      precondition(offset % UInt64(Self.pieceLength) == 0, "a piece behind the last")
      state.underway += 1
      state.length += length
      return offset
    }
    worker.enqueue { self.finish(piece, of: bytes, at: offset) }
  }

  /// Writes a piece, on the thread.
  private func finish(_ piece: Range<Int>, of bytes: [UInt8], at offset: UInt64) {
    var failure = state.withLock { $0.failure }
    var checksums: [UInt32] = []
    if failure == nil {
      do throws(EngineError) {
        checksums = try put(bytes.bytes.extracting(piece), at: offset)
      } catch {
        failure = error
      }
    }
    let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.failure = state.failure ?? failure
      state.checksums += checksums
      state.underway -= 1
      guard let (waiter, most) = state.waiter, state.underway < most else { return nil }
      state.waiter = nil
      return waiter
    }
    waiter?.resume()
  }

  /// Encrypts a piece and writes it.
  private func seal(
    _ piece: RawSpan, at offset: UInt64, by seal: FileSeal
  ) throws(EngineError) -> [UInt32] {
    let first = Int(offset) / ContentFrame.length
    let end = Int(offset) + piece.byteCount
    var sealed: [UInt8] = []
    var checksums: [UInt32] = []
    for frame in 0..<ContentFrame.count(ofContent: UInt64(piece.byteCount)) {
      let place = sealed.count
      let stored = ContentFilePlace.stored(first + frame, ofContent: end, isSealed: true)
      sealed.append(
        piece.extracting(ContentFrame.range(frame, ofContent: piece.byteCount)))
      seal.seal(&sealed, from: place, .piece, at: stored.lowerBound)
      checksums.append(
        ContentFrame.checksum(
          sealed.bytes.extracting(droppingFirst: place), salt: salt, offset: stored.lowerBound))
    }
    let start = ContentFilePlace.stored(first, ofContent: end, isSealed: true).lowerBound
    try write(sealed.bytes, at: start)
    return checksums
  }

  private func put(_ piece: RawSpan, at offset: UInt64) throws(EngineError) -> [UInt32] {
    if let seal { return try self.seal(piece, at: offset, by: seal) }
    try write(piece, at: offset)
    return (0..<ContentFrame.count(ofContent: UInt64(piece.byteCount))).map { frame in
      let range = ContentFrame.range(frame, ofContent: piece.byteCount)
      return ContentFrame.checksum(
        piece.extracting(range), salt: salt, offset: offset + UInt64(range.lowerBound))
    }
  }

  private func write(_ piece: RawSpan, at offset: UInt64) throws(EngineError) {
    let length = UInt64(piece.byteCount)
    try file.write(piece, at: offset)
    file.willSync(offset..<(offset + length))
    let isDue = state.withLock { state in
      state.unsynced += length
      guard state.unsynced >= Self.syncLength else { return false }
      state.unsynced = 0
      return true
    }
    if isDue { try file.sync() }
  }

  /// Waits until fewer pieces than this are in progress.
  private func waitForRoom(_ most: Int) async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        if state.underway < most { return true }
        state.waiter = (continuation, below: most)
        return false
      }
      if isFree { continuation.resume() }
    }
  }

  /// Makes everything survive a power cut, including the file's name, and returns its location.
  package func finish() async throws(EngineError) -> ContentLocation {
    await waitForRoom(1)
    do throws(EngineError) {
      try await worker.perform { [self] () throws(EngineError) in
        if let failure = state.withLock({ $0.failure }) { throw failure }
        try file.sync()
        try contents.storage.directory.sync()
      }
    } catch {
      await abandon()
      throw error
    }
    return state.withLock { state in
      .file(
        ContentFilePlace(
          file: number, salt: salt, length: state.length, checksums: state.checksums,
          isSealed: seal != nil))
    }
  }

  /// Removes what was written.
  package func abandon() async {
    await waitForRoom(1)
    let length = state.withLock { $0.length }
    await worker.perform { [self] in contents.removeFile(number, length: length) }
  }
}
