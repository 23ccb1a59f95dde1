// The packs and content files that reads keep open, up to a limit. An open file remains readable
// after its name is removed, so a removal needs no coordination with this class. A reader that
// tries to open a file too late finds it missing, and looks up the content's current location
// again.

/// An open file of contents, and what decrypts its entries.
struct OpenContentFile: Sendable {
  let file: any File
  let seal: FileSeal?
}

/// Keeps a limited number of files open.
final class OpenContentFiles: Sendable {
  private struct State: Sendable {
    var files: [FileNumber: OpenContentFile] = [:]
    /// The file opened earliest comes first.
    var order: [FileNumber] = []
  }

  private let directory: any Directory
  private let identity: DatabaseIdentity
  private let limit: Int
  private let state = Guarded(State())

  init(directory: any Directory, identity: DatabaseIdentity, limit: Int = 128) {
    self.directory = directory
    self.identity = identity
    self.limit = limit
  }

  /// The pack. Its header must have this salt.
  func pack(_ number: FileNumber, salt: UInt64) throws(EngineError) -> OpenContentFile {
    try file(number) { () throws(EngineError) in
      let file = try directory.openForReads(number.packName, held: false)
      let seal = directory.keyring?.seal(pack: number, salt: salt)
      let header = DataFileHeader(
        kind: .pack, number: number, salt: salt, identity: identity, shard: 0,
        isSealed: seal != nil)
      guard try file.read(at: 0, count: DataFileHeader.length) == header.encode() else {
        throw .corrupt(
          file: file.name, offset: 0, reason: "the header is not the one that was written")
      }
      return OpenContentFile(file: file, seal: seal)
    }
  }

  /// The file of one content. It must have this length.
  func contentFile(_ place: ContentFilePlace) throws(EngineError) -> OpenContentFile {
    try file(place.file) { () throws(EngineError) in
      let file = try directory.openForReads(place.file.contentFileName, held: false)
      let size = try file.size()
      guard size == place.storedLength else {
        throw .corrupt(
          file: file.name, offset: min(size, place.storedLength),
          reason: "the file has \(size) bytes, and the content has \(place.storedLength)")
      }
      let keyring = place.isSealed ? directory.keyring : nil
      return OpenContentFile(
        file: file, seal: keyring?.seal(content: place.file, salt: place.salt))
    }
  }

  /// Closes a file once its readers are finished.
  func forget(_ number: FileNumber) {
    let file = state.withLock { state -> OpenContentFile? in
      state.order.removeAll { $0 == number }
      return state.files.removeValue(forKey: number)
    }
    withExtendedLifetime(file) {}
  }

  private func file(
    _ number: FileNumber, open: () throws(EngineError) -> OpenContentFile
  ) throws(EngineError) -> OpenContentFile {
    if let file = state.withLock({ $0.files[number] }) { return file }
    let file = try open()
    // Closed outside the lock.
    let closed = state.withLock { state -> OpenContentFile? in
      guard state.files.updateValue(file, forKey: number) == nil else { return nil }
      state.order.append(number)
      guard state.order.count > limit else { return nil }
      return state.files.removeValue(forKey: state.order.removeFirst())
    }
    withExtendedLifetime(closed) {}
    return file
  }
}
