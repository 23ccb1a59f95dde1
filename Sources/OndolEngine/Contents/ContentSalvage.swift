// Contents of a damaged database: read by the places that its rows still tell, or found in its
// files, where packs say themselves what is in them. Nothing is changed there.

/// What can be read of contents in a directory.
package final class ContentSalvage: Sendable {
  private let directory: any Directory

  /// Bytes of a file that are read at once.
  private static let piece = 1 << 20

  package init(at path: String, environment: Environment) throws(EngineError) {
    directory = try environment.fileSystem.openDirectory(at: path, create: false)
  }

  /// The bytes of a content in `range`, as `Contents.read`. Blocks.
  package func read(
    _ location: ContentLocation, _ range: Range<Int>
  ) throws(EngineError) -> [UInt8] {
    if range.isEmpty { return [] }
    switch location {
    case .inline(let bytes):
      return Array(bytes[range])
    case .pack(let place):
      let file = try directory.open(place.pack.packName, access: .readOnly)
      return try PackReading(place, file: file, mayBlock: true).content(in: range)
    case .file(let place):
      let file = try directory.open(place.file.contentFileName, access: .readOnly)
      return try place.content(in: range, of: file, mayBlock: true)
    }
  }

  /// Shows every entry of every pack whose head is sound, and where it is. Packs that cannot be
  /// read are passed over. Blocks.
  package func forEachEntry(
    _ visit: (_ digest: [UInt8], ContentLocation) -> Void
  ) throws(EngineError) {
    for number in try directory.list().compactMap({ FileNumber.parse($0, suffix: ".pack") }) {
      guard let file = try? directory.open(number.packName, access: .readOnly),
        let salt = try? DataFileHeader.find(.pack, in: file)?.salt,
        var walk = try? PackWalk(file, number: number, salt: salt)
      else { continue }
      while let entry = try? walk.next() { visit(entry.digest, .pack(entry.place)) }
    }
  }

  /// The files that have one content each. Blocks.
  package func contentFiles() throws(EngineError) -> [String] {
    try directory.list().filter { FileNumber.parse($0, suffix: ".content") != nil }
  }

  /// Shows all bytes of a file, piece by piece. Nothing says whether they are right. Blocks.
  package func forEachPiece(
    of name: String, _ visit: ([UInt8]) -> Void
  ) throws(EngineError) {
    let file = try directory.open(name, access: .readOnly)
    var offset: UInt64 = 0
    while case let bytes = try file.read(at: offset, count: Self.piece), !bytes.isEmpty {
      visit(bytes)
      offset += UInt64(bytes.count)
    }
  }

  /// Some of a file's bytes; none at its end. Blocks.
  package func piece(of name: String, at offset: UInt64) throws(EngineError) -> [UInt8] {
    try directory.open(name, access: .readOnly).read(at: offset, count: Self.piece)
  }
}
