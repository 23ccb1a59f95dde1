// Files in memory, for databases that need no disk. They use the same engine, format and rules, and
// leave nothing behind when the process ends.

internal import OndolPlatform

/// Directories that exist as long as this value does.
package final class MemoryFileSystem: FileSystem {
  private let directories = Guarded<[String: MemoryDirectory]>([:])

  package init() {}

  package func openDirectory(
    at path: String, create: Bool
  ) throws(EngineError) -> any Directory {
    try directories.withLock { directories throws(EngineError) in
      if let directory = directories[path] { return directory }
      guard create else {
        throw .io(operation: "open", file: path, offset: nil, errno: ENOENT)
      }
      let directory = MemoryDirectory(path: path)
      directories[path] = directory
      return directory
    }
  }
}

private final class MemoryDirectory: Directory {
  let path: String
  private let files = Guarded<[String: MemoryFile]>([:])
  /// The lock that is held.
  private let holder = Guarded<ObjectIdentifier?>(nil)

  init(path: String) {
    self.path = path
  }

  func list() -> [String] {
    files.withLock { Array($0.keys) }
  }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    guard let file = files.withLock({ $0[name] }) else {
      throw .io(operation: "open", file: name, offset: nil, errno: ENOENT)
    }
    return file
  }

  func create(_ name: String) throws(EngineError) -> any File {
    let file = MemoryFile(name: name)
    let isNew = files.withLock { files in
      guard files[name] == nil else { return false }
      files[name] = file
      return true
    }
    guard isNew else { throw .io(operation: "open", file: name, offset: nil, errno: EEXIST) }
    return file
  }

  func remove(_ name: String) throws(EngineError) {
    guard files.withLock({ $0.removeValue(forKey: name) }) != nil else {
      throw .io(operation: "unlink", file: name, offset: nil, errno: ENOENT)
    }
  }

  func sync() {}
  func syncName() {}

  func lock(owner: String) throws(EngineError) -> any DirectoryLock {
    let lock = Lock(directory: self)
    let isTaken = holder.withLock { holder in
      guard holder == nil else { return true }
      holder = ObjectIdentifier(lock)
      return false
    }
    guard !isTaken else { throw .inUse(path: path, holder: "this process") }
    return lock
  }

  /// It is released only once, or when it is no longer referenced. A lock that is released twice
  /// must not free the next holder's lock.
  private final class Lock: DirectoryLock {
    private let directory: MemoryDirectory

    init(directory: MemoryDirectory) {
      self.directory = directory
    }

    deinit { release() }

    func release() {
      let me = ObjectIdentifier(self)
      directory.holder.withLock { holder in
        if holder == me { holder = nil }
      }
    }
  }
}

private final class MemoryFile: File {
  let name: String
  private let bytes = Guarded<[UInt8]>([])

  init(name: String) {
    self.name = name
  }

  func read(at offset: UInt64, count: Int) -> [UInt8] {
    bytes.withLock { bytes in
      guard let start = Int(exactly: offset), start < bytes.count else { return [] }
      // A copy. An array of all bytes would share the file's storage until it is written again.
      return bytes.bytes.extracting(start..<(start + min(bytes.count - start, count))).array
    }
  }

  func write(_ new: RawSpan, at offset: UInt64) {
    let copy = new.array
    // As with `pwrite`, writing nothing does not extend the file.
    if copy.isEmpty { return }
    bytes.withLock { bytes in
      let start = Int(offset)
      let end = start + copy.count
      if bytes.count < start { bytes += [UInt8](repeating: 0, count: start - bytes.count) }
      bytes.replaceSubrange(start..<min(end, bytes.count), with: copy)
    }
  }

  func sync() {}

  func giveBack(behind length: UInt64) {
    bytes.withLock { bytes in
      if UInt64(bytes.count) > length { bytes = Array(bytes[..<Int(length)]) }
    }
  }

  func writeSynced(_ new: RawSpan, at offset: UInt64) {
    write(new, at: offset)
  }

  func size() -> UInt64 {
    bytes.withLock { UInt64($0.count) }
  }
}
