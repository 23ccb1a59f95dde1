// Reads the bytes of a path: all at once, in a range, into a file, or piece by piece. A read opens
// a content, so the bytes do not change and stay stored while they are read, whatever happens to
// the path.

internal import OndolEngine
public import OndolFoundation

extension StorageReference {
  /// All bytes of the object here.
  ///
  /// - Parameter maxSize: the most bytes that the caller has room for.
  /// - Throws: `.notFound` when there is no object; `.resourceExhausted` when it is longer than
  ///   `maxSize`; `.dataLoss`, naming the file and the holders of the content, when its bytes are
  ///   damaged; `.cancelled`.
  /// - Complexity: O(bytes), all of them in memory.
  public func data(maxSize: Int) async throws(DatabaseError) -> Data {
    try await open().data(maxSize: maxSize, named: fullPath)
  }

  /// The bytes of the object here, or some of them, piece by piece: at most a megabyte at a time,
  /// and each piece is read on request. All of them belong to the object as it is when the first
  /// piece is requested.
  ///
  ///     for try await chunk in photo.bytes(in: 0..<65_536) { … }
  ///
  /// - Parameter range: the positions of the bytes; a range that goes beyond the end stops there.
  ///   All bytes when nil.
  public func bytes(in range: Range<Int>? = nil) -> StorageBytes {
    StorageBytes(range) { () throws(DatabaseError) in try await open() }
  }

  /// Writes the bytes of the object here to a file, and replaces an existing one. No reader sees
  /// part of it: the new file appears only when all its bytes are on the device.
  ///
  /// - Parameters:
  ///   - path: the file's path.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Throws: `.notFound` when there is no object, or no such directory; `.permissionDenied` or
  ///   `.resourceExhausted` when the file cannot be written; otherwise as `data(maxSize:)`. After
  ///   an error, the old file is still there.
  /// - Complexity: O(bytes), about a megabyte of them in memory.
  public func write(
    toFile path: String, progress: (StorageProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    let reader = try await open()
    var writer = try await LocalFileWriter.make(path, in: database)
    do throws(DatabaseError) {
      var offset = 0
      progress(StorageProgress(completedBytes: 0, totalBytes: reader.length))
      while offset < reader.length {
        try refuseWhenCancelled("nothing was written")
        let piece = offset..<min(reader.length, offset + ContentReader.pieceLength)
        try await writer.write(try await reader.read(piece))
        offset = piece.upperBound
        progress(StorageProgress(completedBytes: offset, totalBytes: reader.length))
      }
      try await writer.finish()
    } catch {
      await writer.abandon()
      throw error
    }
  }

  /// Writes the bytes of the object here to a file, like `write(toFile:)` with its path.
  ///
  /// - Parameters:
  ///   - url: the file's URL.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Throws: `.invalidArgument` when the URL is not a file's; otherwise as with a path.
  /// - Complexity: O(bytes), about a megabyte of them in memory.
  public func write(
    toFile url: URL, progress: (StorageProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    guard url.isFileURL else {
      throw DatabaseError(.invalidArgument, "\(url) is not a file's URL", path: fullPath)
    }
    try await write(toFile: url.path, progress: progress)
  }

  /// Opens the content of the object here.
  func open() async throws(DatabaseError) -> ContentReader {
    // Another put may come between the two checks, and the old content be reclaimed.
    while true {
      let metadata = try await readMetadata()
      guard let digest = metadata.sha256 else { throw StorageCondition.missing(fullPath) }
      if let reader = try await database.contents.reader(of: digest) { return reader }
      guard try await readMetadata().generation != metadata.generation else {
        throw DatabaseError(
          .dataLoss, "the bytes of the object are lost: \(digest.hex)", path: fullPath)
      }
    }
  }
}

/// The bytes of a content, piece by piece.
///
/// Each iterator reads from the beginning, independently. An iterator keeps the content stored
/// while it reads.
public struct StorageBytes: AsyncSequence, Sendable {
  /// A piece of at most a megabyte, never empty.
  public typealias Element = [UInt8]
  /// The errors of reading.
  public typealias Failure = DatabaseError

  private let range: Range<Int>?
  private let open: @Sendable () async throws(DatabaseError) -> ContentReader

  init(
    _ range: Range<Int>?, open: @escaping @Sendable () async throws(DatabaseError) -> ContentReader
  ) {
    self.range = range
    self.open = open
  }

  /// Begins reading.
  public func makeAsyncIterator() -> Iterator { Iterator(range: range, open: open) }

  /// Reads the pieces.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let range: Range<Int>?
    fileprivate let open: @Sendable () async throws(DatabaseError) -> ContentReader
    private var reader: ContentReader?
    private var offset = 0

    fileprivate init(
      range: Range<Int>?,
      open: @escaping @Sendable () async throws(DatabaseError) -> ContentReader
    ) {
      self.range = range
      self.open = open
      offset = range?.lowerBound ?? 0
    }

    /// The next piece; nil at the end, or when the task is cancelled.
    ///
    /// - Throws: `.invalidArgument` when the range begins before the first byte; otherwise as
    ///   `StorageReference.data(maxSize:)`.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(DatabaseError) -> [UInt8]? {
      if Task.isCancelled { return nil }
      guard offset >= 0 else {
        throw DatabaseError(.invalidArgument, "a range of bytes must begin at 0 or later")
      }
      let reader: ContentReader
      if let opened = self.reader {
        reader = opened
      } else {
        reader = try await open()
        self.reader = reader
      }
      let end = Swift.min(reader.length, range?.upperBound ?? .max)
      guard offset < end else { return nil }
      let piece = offset..<(offset + Swift.min(ContentReader.pieceLength, end - offset))
      offset = piece.upperBound
      return try await reader.read(piece)
    }
  }
}
