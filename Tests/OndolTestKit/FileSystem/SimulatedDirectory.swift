// Handles of the simulated file system. They hold no state except their identity: everything else
// is in the storage, so a picture of the storage is a picture of everything.

internal import OndolEngine

final class SimulatedDirectory: Directory {
  let path: String
  private let fileSystem: SimulatedFileSystem

  init(path: String, of fileSystem: SimulatedFileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  func list() throws(EngineError) -> [String] {
    try fileSystem.state.withLock { [path] (state) throws(EngineError) in
      try state.admit(.read, path)
      return state.storage.names(in: path)
    }
  }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    let number = try fileSystem.state.withLock { [path] (state) throws(EngineError) in
      guard let number = state.storage.directories[path]?.current[name] else {
        throw EngineError.io(
          operation: "open", file: name, offset: nil, errno: SimulatedFileSystem.noSuchFile)
      }
      try state.admit(.open, name)
      try state.takeDescriptor(for: name)
      return number
    }
    return SimulatedFile(name: name, number: number, access: access, of: fileSystem)
  }

  func create(_ name: String) throws(EngineError) -> any File {
    let number = try fileSystem.state.withLock { [path] (state) throws(EngineError) in
      guard state.storage.directories[path]?.current[name] == nil else {
        throw EngineError.io(
          operation: "create", file: name, offset: nil, errno: SimulatedFileSystem.fileExists)
      }
      try state.admit(.create, name)
      try state.claim(bytes: state.capacity == nil ? 0 : 1, for: name, at: nil)
      try state.takeDescriptor(for: name)
      let number = state.storage.makeNumber()
      state.storage.files[number] = StoredFile()
      state.storage.directories[path]?.make(
        .add(name, file: number), operation: state.operations)
      return number
    }
    return SimulatedFile(name: name, number: number, access: .readWrite, of: fileSystem)
  }

  func freeBytes() -> UInt64? {
    fileSystem.state.withLock { state in
      state.capacity.map { UInt64(max(0, $0 - state.storage.used)) }
    }
  }

  func remove(_ name: String) throws(EngineError) {
    try fileSystem.state.withLock { [path] (state) throws(EngineError) in
      guard state.storage.directories[path]?.current[name] != nil else {
        throw EngineError.io(
          operation: "remove", file: name, offset: nil, errno: SimulatedFileSystem.noSuchFile)
      }
      try state.admit(.remove, name)
      state.storage.directories[path]?.make(.remove(name), operation: state.operations)
    }
  }

  func sync() throws(EngineError) {
    try fileSystem.state.withLock { [path] (state) throws(EngineError) in
      // A journal keeps names, so that a failed sync of them may be repeated, unlike that of a
      // file's bytes.
      try state.admit(.syncDirectory, path)
      if state.sabotage?.ignores(.syncDirectory, of: .other) == true { return }
      state.storage.directories[path]?.sync()
    }
  }

  func syncName() throws(EngineError) {
    try fileSystem.state.withLock { [path] (state) throws(EngineError) in
      try state.admit(.syncDirectory, path)
      if state.sabotage?.ignores(.syncDirectory, of: .other) == true { return }
      state.storage.directories[path]?.isNameDurable = true
    }
  }

  func lock(owner: String) throws(EngineError) -> any DirectoryLock {
    let number = try fileSystem.state.withLock { [path] (state) throws(EngineError) in
      if let lock = state.storage.directories[path]?.lock {
        throw EngineError.inUse(path: path, holder: lock.owner)
      }
      let number = state.storage.makeNumber()
      state.storage.directories[path]?.lock = (owner, number)
      return number
    }
    return SimulatedLock(number: number, path: path, of: fileSystem)
  }
}

final class SimulatedLock: DirectoryLock {
  private let number: Int
  private let path: String
  private let fileSystem: SimulatedFileSystem

  init(number: Int, path: String, of fileSystem: SimulatedFileSystem) {
    self.number = number
    self.path = path
    self.fileSystem = fileSystem
  }

  deinit { release() }

  func release() {
    fileSystem.state.withLock { [number, path] state in
      if state.storage.directories[path]?.lock?.number == number {
        state.storage.directories[path]?.lock = nil
      }
    }
  }
}

final class SimulatedFile: File {
  private static let badDescriptor: Int32 = 9
  private static let tooLarge: Int32 = 27
  private static let largestFile = 1 << 40

  let name: String
  private let number: Int
  private let access: FileAccess
  private let fileSystem: SimulatedFileSystem

  init(name: String, number: Int, access: FileAccess, of fileSystem: SimulatedFileSystem) {
    self.name = name
    self.number = number
    self.access = access
    self.fileSystem = fileSystem
  }

  deinit {
    fileSystem.state.withLock { $0.openFiles -= 1 }
  }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    try fileSystem.state.withLock { [name, number] (state) throws(EngineError) in
      try state.admit(.read, name, at: offset)
      guard offset < UInt64(Self.largestFile) else { return [] }
      return state.storage.files[number]?.current.read(at: Int(offset), count: count) ?? []
    }
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    guard access == .readWrite else { throw failure("write", offset, Self.badDescriptor) }
    guard offset < UInt64(Self.largestFile) else { throw failure("write", offset, Self.tooLarge) }
    let copy = bytes.array
    try fileSystem.state.withLock { [name, number] (state) throws(EngineError) in
      do throws(EngineError) {
        try state.admit(.write, name, at: offset)
      } catch {
        if state.hasPower, state.hasDoneHalf {
          state.storage.files[number]?.write(
            Array(copy.prefix(copy.count / 2)), at: Int(offset), operation: state.operations)
        }
        throw error
      }
      let end = Int(offset) + copy.count
      let room = state.room(in: number)
      // As on a disk, the part that still fits is written.
      let fitting = copy.isEmpty ? 0 : max(0, min(end, room) - Int(offset))
      state.storage.files[number]?.write(
        Array(copy.prefix(fitting)), at: Int(offset), operation: state.operations)
      if fitting < copy.count {
        throw failure("write", offset, SimulatedFileSystem.noSpace)
      }
    }
  }

  func reserve(_ range: Range<UInt64>) throws(EngineError) -> Bool {
    guard access == .readWrite else {
      throw failure("reserve", range.lowerBound, Self.badDescriptor)
    }
    guard range.upperBound < UInt64(Self.largestFile) else {
      throw failure("reserve", range.lowerBound, Self.tooLarge)
    }
    return try fileSystem.state.withLock { [name, number] (state) throws(EngineError) in
      guard state.canReserve else { return false }
      try state.admit(.reserve, name, at: range.lowerBound)
      let end = Int(range.upperBound)
      guard end <= state.room(in: number) else {
        throw failure("reserve", range.lowerBound, SimulatedFileSystem.noSpace)
      }
      let reserved = state.storage.files[number]?.reserved ?? 0
      state.storage.files[number]?.reserved = max(reserved, end)
      return true
    }
  }

  func sync() throws(EngineError) {
    try fileSystem.state.withLock { [name, number] (state) throws(EngineError) in
      do throws(EngineError) {
        try state.admit(.sync, name)
      } catch {
        // A sync that fails without power loses nothing by itself. Any other leaves clean pages
        // that the disk does not have.
        if state.hasPower { state.storage.files[number]?.forgetUnsynced() }
        throw error
      }
      if state.sabotage?.ignores(.sync, of: FileClass(name: name)) == true { return }
      state.storage.files[number]?.sync()
    }
  }

  /// Two operations, so that a power cut can come between the write and its sync.
  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    let count = bytes.byteCount
    try write(bytes, at: offset)
    try fileSystem.state.withLock { [name, number] (state) throws(EngineError) in
      let range = Int(offset)..<(Int(offset) + count)
      do throws(EngineError) {
        try state.admit(.sync, name, at: offset)
      } catch {
        if state.hasPower { state.storage.files[number]?.forgetUnsynced(in: range) }
        throw error
      }
      if state.sabotage?.ignores(.sync, of: FileClass(name: name)) == true { return }
      state.storage.files[number]?.sync(range)
    }
  }

  func size() throws(EngineError) -> UInt64 {
    try fileSystem.state.withLock { [name, number] (state) throws(EngineError) in
      try state.admit(.read, name)
      return UInt64(state.storage.files[number]?.current.size ?? 0)
    }
  }

  private func failure(_ operation: SystemCall, _ offset: UInt64, _ errno: Int32) -> EngineError {
    .io(operation: operation, file: name, offset: offset, errno: errno)
  }
}
