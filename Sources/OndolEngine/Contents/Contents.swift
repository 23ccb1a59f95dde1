// Contents: bytes that are named by their digest and stored outside the rows, in packs and in files
// of their own. The engine's side keeps the bytes and knows their location. The layer above writes
// rows that record which contents exist and what refers to them. A content is stored if, and only
// if, a row has its location (see ContentLocation).
//
// Everything depends on this order: write the bytes, sync, and only then make the commit with the
// row that names them. So the bytes exist for every state that the log can restore after a power
// cut. Removal uses the reverse order: make the commit that removes the row, sync, and only then
// release the bytes.

internal import Synchronization

/// The contents of an open database.
package final class Contents: Sendable {
  let storage: Storage
  let writer: PackWriter
  let files: OpenContentFiles
  /// The first file number of this session. A file with a smaller one existed before.
  package let firstNumber: FileNumber
  /// Whether the data of the previous session is known to be on the device.
  private let isReady = Atomic(false)
  /// Files that nothing names, and whose removal failed when they were released.
  let unremoved = Guarded<[ContentFile]>([])
  /// The number of running copies. No file may be removed during one.
  let copies = Atomic(0)
  /// The error for every attempt to store bytes outside of rows when that is impossible.
  private let refusal: EngineError?
  /// The location of the bytes if a store has the rows.
  package let parts: RemoteParts?
  /// Threads that write large contents. A few serve all writers.
  private let workers: [any Worker]
  private let writersBegun = Atomic(0)

  private static let workerCount = 4

  init(_ storage: Storage, refusal: EngineError?, parts: RemoteParts?) {
    self.storage = storage
    self.parts = parts
    self.refusal = refusal
    firstNumber = storage.manifest.numbers.next
    files = OpenContentFiles(directory: storage.directory, identity: storage.identity)
    writer = PackWriter(
      directory: storage.directory, identity: storage.identity,
      environment: storage.environment, options: storage.options,
      numbers: storage.manifest.numbers)
    workers = (0..<Self.workerCount).map { number in
      storage.environment.threads.makeWorker(named: "ondol-content-\(number)", for: .contents)
    }
  }

  // MARK: - Writing

  /// Whether a content of this length is kept in the row with its location.
  package func isInline(length: Int) -> Bool { length <= storage.options.inlineContentSize }

  /// The most bytes of a content that goes into a row or a pack.
  package var packedLimit: Int {
    max(
      storage.options.inlineContentSize,
      min(storage.options.packedContentSize, PackFormat.largestContent))
  }

  /// A content prepared for a pack of this database.
  func draft(_ content: [UInt8], _ digest: [UInt8]) -> PackEntryDraft {
    PackEntryDraft(content, digest: digest, compress: storage.options.compress)
  }

  /// Stores a content of at most `packedLimit` bytes. It survives a power cut once this returns,
  /// and is kept until `decide`.
  ///
  /// Throws `.noSpace` without any change if the disk is full.
  package func append(
    _ content: [UInt8], digest: [UInt8]
  ) async throws(EngineError) -> ContentLocation {
    if isInline(length: content.count) { return .inline(content) }
    try await makeReady()
    let draft = draft(content, digest)
    do throws(EngineError) {
      return .pack(try await writer.append([draft])[0])
    } catch {
      throw error.forCommitters
    }
  }

  /// Begins one large content, in a file of its own or in parts on a store.
  package func beginLarge() async throws(EngineError) -> any ContentWriter {
    if let parts {
      return ContentPartsWriter(parts, now: storage.environment.now)
    }
    return try await makeFile()
  }

  /// Begins a file for one large content.
  package func makeFile() async throws(EngineError) -> ContentFileWriter {
    try await makeReady()
    let begun = writersBegun.wrappingAdd(1, ordering: .relaxed).oldValue
    let worker = workers[Int(begun.magnitude) % workers.count]
    do throws(EngineError) {
      return try await worker.perform { () throws(EngineError) in
        try ContentFileWriter(of: self, worker: worker)
      }
    } catch {
      throw error.forCommitters
    }
  }

  /// Reports that a commit names the bytes stored at this location.
  package func decide(_ location: ContentLocation) {
    if case .pack(let place) = location { writer.decide(place, isNamed: true) }
  }

  /// Releases bytes that no commit will ever name.
  package func discard(_ location: ContentLocation) {
    switch location {
    case .inline, .away: break
    case .pack(let place): writer.decide(place, isNamed: false)
    case .file(let place):
      storage.maintenance.enqueue { self.removeFile(place.file, length: place.length) }
    case .parts(let place): parts?.discard(place.id, length: place.length)
    }
  }

  /// Removes the file of a content that nothing names. The reclaimer removes it later if this
  /// fails.
  func removeFile(_ number: FileNumber, length: UInt64) {
    do throws(EngineError) {
      try storage.directory.remove(number.contentFileName)
    } catch {
      if error.isMissingFile { return }
      let file = ContentFile(kind: .content, number: number, sizeBytes: length)
      unremoved.withLock { $0.append(file) }
    }
  }

  func makeReady() async throws(EngineError) {
    if let refusal { throw refusal }
    if storage.sequencer.isClosing { throw .closed }
    try storage.sequencer.refuseAfterFailure()
    if isReady.load(ordering: .acquiring) { return }
    try await storage.perform { _ in }
    isReady.store(true, ordering: .releasing)
  }

  // MARK: - Reading

  /// The bytes of a content in `range`. Every frame is verified.
  ///
  /// - Throws: `.corrupt` if a frame differs from what was written; `.wouldBlock` if bytes must
  ///   come from the device and the call may not block; `.io` with `ENOENT` if the content was
  ///   moved after its location was read.
  /// - Complexity: one `pread`, or two for a part of a long entry of a pack.
  package func read(
    _ location: ContentLocation, _ range: Range<Int>, mayBlock: Bool
  ) throws(EngineError) -> [UInt8] {
    precondition(
      range.lowerBound >= 0 && UInt64(range.upperBound) <= location.length,
      "a range outside the content")
    if range.isEmpty { return [] }
    switch location {
    case .inline(let bytes):
      return range.count == bytes.count ? bytes : Array(bytes[range])
    case .pack(let place):
      let pack = try files.pack(place.pack, salt: place.salt)
      let reading = PackReading(place, file: pack.file, seal: pack.seal, mayBlock: mayBlock)
      return try reading.content(in: range)
    case .file(let place):
      let content = try files.contentFile(place)
      return try place.content(
        in: range, of: content.file, seal: content.seal, mayBlock: mayBlock)
    case .parts(let place):
      guard let parts else {
        throw .corrupt(
          file: storage.directory.path, offset: 0, reason: "a content that only a store has")
      }
      guard mayBlock else { throw .wouldBlock }
      return try place.content(in: range, of: parts.store)
    case .away:
      throw .corrupt(
        file: storage.directory.path, offset: 0, reason: "a content that is elsewhere")
    }
  }

  /// The path of the file that contains exactly this content's bytes, if there is one.
  package func path(of location: ContentLocation) -> String? {
    guard case .file(let place) = location, !place.isSealed else { return nil }
    return storage.directory.path + "/" + place.file.contentFileName
  }

  /// Runs `body`, which may block, on a thread for cold reads.
  package func readBlocking<R: Sendable, E: Error>(
    _ body: @escaping @Sendable () throws(E) -> R
  ) async throws(E) -> R {
    try await storage.views.current.reads.perform { (_) throws(E) in try body() }
  }

  /// The same for work that may wait for a server. A caller that waits too long or is cancelled
  /// receives an error.
  package func readPatiently<R: Sendable>(
    _ body: @escaping @Sendable () throws(EngineError) -> R
  ) async throws(EngineError) -> R {
    try await storage.views.current.reads.perform(failingWith: { $0 }) {
      (_) throws(EngineError) in try body()
    }
  }

  func close() async {
    await writer.close()
    for worker in workers { await worker.stop() }
  }
}

extension ContentFilePlace {
  /// The bytes of the content in `range`, which must not be empty; `file` is the content's file.
  func content(
    in range: Range<Int>, of file: any File, seal: FileSeal? = nil, mayBlock: Bool
  ) throws(EngineError) -> [UInt8] {
    guard isSealed == (seal != nil) else {
      throw .corrupt(file: file.name, offset: 0, reason: FileSeal.unsealed.reason)
    }
    let first = range.lowerBound / ContentFrame.length
    let last = (range.upperBound - 1) / ContentFrame.length
    let length = Int(clamping: length)
    let start = Self.stored(first, ofContent: length, isSealed: isSealed).lowerBound
    let end = Self.stored(last, ofContent: length, isSealed: isSealed).upperBound
    let bytes = try file.take(at: start, count: Int(end - start), mayBlock: mayBlock)
    var opened: [UInt8] = []
    for frame in first...last {
      let part = Self.stored(frame, ofContent: length, isSealed: isSealed)
      let stored = bytes.bytes.extracting(
        Int(part.lowerBound - start)..<Int(part.upperBound - start))
      let offset = part.lowerBound
      guard ContentFrame.checksum(stored, salt: salt, offset: offset) == checksums[frame] else {
        throw .corrupt(
          file: file.name, offset: offset, reason: "the checksum of a frame does not match")
      }
      guard let seal else { continue }
      do throws(MalformedBytes) {
        try seal.open(stored, .piece, at: offset, appendingTo: &opened)
      } catch {
        throw .corrupt(file: file.name, offset: offset, reason: error.reason)
      }
    }
    let content = seal == nil ? bytes : opened
    if range.count == content.count { return content }
    let base = first * ContentFrame.length
    return Array(content[(range.lowerBound - base)..<(range.upperBound - base)])
  }
}

extension File {
  /// The bytes at `offset`. All of them must exist.
  func take(at offset: UInt64, count: Int, mayBlock: Bool) throws(EngineError) -> [UInt8] {
    let bytes: [UInt8]
    if mayBlock {
      bytes = try read(at: offset, count: count)
    } else {
      guard let found = try readAtOnce(at: offset, count: count) else { throw .wouldBlock }
      bytes = found
    }
    guard bytes.count == count else {
      throw .corrupt(
        file: name, offset: offset, reason: "the file ends within what is stored there")
    }
    return bytes
  }
}
