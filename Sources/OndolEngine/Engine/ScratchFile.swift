// Intermediate rows of a read that has more of them than its memory holds. They go to one file
// beside the database, which loses its name as soon as it is there: the system frees its bytes when
// the read ends, however it ends. Only a power cut or a kill between the two calls leaves the name,
// and the next open removes it. In an encrypted database the file is encrypted with a key that
// nothing stores a part of, so nobody can read what a disk keeps of it.

internal import Synchronization

/// A file of pieces that exists as long as this object.
package final class ScratchFile: Sendable {
  /// Where a piece is. Only this process knows it, so a piece needs no header.
  package struct Piece: Sendable {
    fileprivate let offset: UInt64
    fileprivate let length: Int
    fileprivate let checksum: UInt32
  }

  private let file: any File
  private let seal: FileSeal?
  private let end = Guarded<UInt64>(0)

  /// Makes the file and removes its name. Blocks.
  fileprivate init(of storage: Storage) throws(EngineError) {
    let (directory, number) = (storage.directory, storage.manifest.allocate())
    let file = try directory.create(number.scratchName)
    try directory.remove(number.scratchName)
    self.file = file
    seal = directory.keyring?.seal(
      .scratch, number: number, salt: storage.environment.random())
  }

  /// Writes a piece after the others. Blocks.
  ///
  /// Throws `.noSpace` when the disk is full.
  package func append(_ piece: consuming [UInt8]) throws(EngineError) -> Piece {
    let length = piece.count + (seal == nil ? 0 : SealFormat.tagLength)
    let offset = end.withLock { end in
      defer { end += UInt64(length) }
      return end
    }
    seal?.seal(&piece, from: 0, .piece, at: offset)
    do throws(EngineError) {
      try file.write(piece.bytes, at: offset)
    } catch {
      throw error.forCommitters
    }
    return Piece(offset: offset, length: length, checksum: crc32c(piece.bytes))
  }

  /// The bytes of a piece. Blocks.
  package func read(_ piece: Piece) throws(EngineError) -> [UInt8] {
    let bytes = try file.read(at: piece.offset, count: piece.length)
    do throws(MalformedBytes) {
      guard bytes.count == piece.length, crc32c(bytes.bytes) == piece.checksum else {
        throw MalformedBytes(at: 0, "intermediate rows are not as they were written")
      }
      guard let seal else { return bytes }
      var opened: [UInt8] = []
      opened.reserveCapacity(bytes.count)
      try seal.open(bytes.bytes, .piece, at: piece.offset, appendingTo: &opened)
      return opened
    } catch {
      throw EngineError(error, in: file.name, from: piece.offset)
    }
  }
}

extension Engine {
  /// A file for the intermediate rows of one read; nil for a database that has no files of its own:
  /// in memory, on a store, or open for reading only. Blocks.
  package func makeScratchFile() throws(EngineError) -> ScratchFile? {
    if isClosed.load(ordering: .relaxed) { throw .closed }
    guard follower == nil, remote == nil,
      !(storage.environment.fileSystem is MemoryFileSystem)
    else { return nil }
    return try ScratchFile(of: storage)
  }
}
