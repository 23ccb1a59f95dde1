// The directory that receives a backup or salvaged data. Every file is synced when the next one
// begins. The names are synced before the superblock's name, which makes the directory a database.

/// Files being written into a new directory. One thread at a time may use it.
final class BackupTarget: Sendable {
  private struct State: Sendable {
    var file: (any File)?
    var offset: UInt64 = 0
  }

  let directory: any Directory
  private let state = Guarded(State())

  /// Creates the directory, unless it exists and is empty.
  init(at path: String, in fileSystem: any FileSystem) throws(EngineError) {
    directory = try fileSystem.openDirectory(at: path, create: true)
    guard try directory.list().isEmpty else { throw .notEmpty(path: path) }
  }

  func take(_ piece: BackupPiece) throws(EngineError) {
    try state.withLock { (state) throws(EngineError) in
      switch piece {
      case .file(let name, _):
        try state.file?.sync()
        if name == Superblock.name { try secureNames() }
        state.file = try directory.create(name)
        state.offset = 0
      case .bytes(let bytes):
        try state.file?.write(bytes.bytes, at: state.offset)
        state.offset += UInt64(bytes.count)
      }
    }
  }

  /// Makes the names so far survive a power cut, including the directory's own.
  func secureNames() throws(EngineError) {
    try directory.sync()
    try directory.syncName()
  }

  /// Makes everything survive a power cut.
  func finish() throws(EngineError) {
    try state.withLock { (state) throws(EngineError) in
      try state.file?.sync()
      try directory.sync()
    }
  }

  /// Removes every file of a database, superblock first: none existed before.
  func removeAll() {
    try? directory.remove(Superblock.name)
    for name in (try? directory.list()) ?? [] where FileNumber.mayBeOfFile(name) {
      try? directory.remove(name)
    }
    try? directory.sync()
  }
}
