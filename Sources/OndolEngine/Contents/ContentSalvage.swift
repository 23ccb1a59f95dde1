// Contents of a damaged database. They are read from the locations that its rows still contain, or
// found in its files, where packs describe their own entries. Nothing in the database is changed.

/// The readable contents in a directory.
package final class ContentSalvage: Sendable {
  private let directory: any Directory

  package init(at path: String, environment: Environment) throws(EngineError) {
    directory = try environment.unlocked(
      try environment.fileSystem.openDirectory(at: path, create: false))
  }

  /// The bytes of a content in `range`, like `Contents.read`. Blocks.
  package func read(
    _ location: ContentLocation, _ range: Range<Int>
  ) throws(EngineError) -> [UInt8] {
    if range.isEmpty { return [] }
    switch location {
    case .inline(let bytes):
      return Array(bytes[range])
    case .pack(let place):
      let file = try directory.open(place.pack.packName, access: .readOnly)
      return try PackReading(
        place, file: file, seal: directory.keyring?.seal(pack: place.pack, salt: place.salt),
        mayBlock: true
      ).content(in: range)
    case .file(let place):
      let file = try directory.open(place.file.contentFileName, access: .readOnly)
      let keyring = place.isSealed ? directory.keyring : nil
      return try place.content(
        in: range, of: file, seal: keyring?.seal(content: place.file, salt: place.salt),
        mayBlock: true)
    case .parts:
      throw .corrupt(
        file: directory.path, offset: 0, reason: "a content that only a store has")
    case .away:
      throw .corrupt(file: directory.path, offset: 0, reason: "a content that is elsewhere")
    }
  }

  /// Visits every entry with a valid head in every pack, with its location. It skips unreadable
  /// packs. Blocks.
  package func forEachEntry(
    _ visit: (_ digest: [UInt8], ContentLocation) -> Void
  ) throws(EngineError) {
    for number in try directory.list().compactMap({ FileNumber.parse($0, suffix: ".pack") }) {
      guard let file = try? directory.open(number.packName, access: .readOnly),
        let salt = try? DataFileHeader.find(.pack, in: file)?.salt,
        var walk = try? PackWalk(
          file, number: number, salt: salt,
          seal: directory.keyring?.seal(pack: number, salt: salt))
      else { continue }
      while let entry = try? walk.next() { visit(entry.digest, .pack(entry.place)) }
    }
  }

  /// The files that have one content each. Blocks.
  package func contentFiles() throws(EngineError) -> [String] {
    try directory.list().filter { FileNumber.parse($0, suffix: ".content") != nil }
  }

  /// The file with one content and this name. Blocks.
  ///
  /// - Throws: `.corrupt` if it is encrypted and its header cannot be read.
  package func contentFile(_ name: String) throws(EngineError) -> SalvagedContentFile {
    try SalvagedContentFile(
      try directory.open(name, access: .readOnly), directory.keyring)
  }
}

/// A file with one content, of which only the name is known.
package struct SalvagedContentFile: Sendable {
  private let file: any File
  private let seal: FileSeal?

  /// Bytes read at once.
  private static let piece = 1 << 20

  fileprivate init(_ file: any File, _ keyring: Keyring?) throws(EngineError) {
    self.file = file
    guard let keyring, let number = FileNumber.parse(file.name, suffix: ".content"),
      keyring.seals(number)
    else {
      seal = nil
      return
    }
    guard let header = try DataFileHeader.find(.content, in: file), header.number == number else {
      throw .corrupt(file: file.name, offset: 0, reason: "its header cannot be read")
    }
    seal = keyring.seal(content: number, salt: header.salt)
  }

  /// Visits all bytes piece by piece. Nothing verifies them. Blocks.
  package func forEachPiece(_ visit: ([UInt8]) -> Void) throws(EngineError) {
    var offset: UInt64 = 0
    while case let bytes = try piece(at: offset), !bytes.isEmpty {
      visit(bytes)
      offset += UInt64(bytes.count)
    }
  }

  /// Some bytes of the content; empty at its end. Blocks.
  ///
  /// - Throws: `.corrupt` if they are encrypted and cannot be decrypted.
  package func piece(at offset: UInt64) throws(EngineError) -> [UInt8] {
    guard let seal else { return try file.read(at: offset, count: Self.piece) }
    // Pieces consist of whole frames, except the last piece.
    guard offset % UInt64(ContentFrame.length) == 0 else { return [] }
    let frame = Int(offset) / ContentFrame.length
    let start = ContentFilePlace.stored(frame, ofContent: .max, isSealed: true).lowerBound
    let stored = try file.read(
      at: start, count: ContentFrame.length + SealFormat.tagLength)
    if stored.isEmpty { return [] }
    var bytes: [UInt8] = []
    do throws(MalformedBytes) {
      try seal.open(stored.bytes, .piece, at: start, appendingTo: &bytes)
    } catch {
      throw .corrupt(file: file.name, offset: start, reason: error.reason)
    }
    return bytes
  }
}
