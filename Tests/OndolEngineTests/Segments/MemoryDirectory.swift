// Files that are arrays: enough of a file system to write a segment and to damage it.

import OndolEngine
import Synchronization

/// A directory in memory.
final class MemoryDirectory: OndolEngine.Directory {
  private let files = Guarded<[String: MemoryFile]>([:])
  let path = "memory"

  func file(_ name: String) -> MemoryFile? { files.withLock { $0[name] } }

  func put(_ bytes: [UInt8], as name: String) {
    files.withLock { $0[name] = MemoryFile(name: name, bytes) }
  }

  func list() throws(EngineError) -> [String] { files.withLock { Array($0.keys) } }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    guard let file = file(name) else {
      throw .io(operation: "open", file: name, offset: nil, errno: 2)
    }
    return file
  }

  func create(_ name: String) throws(EngineError) -> any File {
    let file = MemoryFile(name: name, [])
    files.withLock { $0[name] = file }
    return file
  }

  func remove(_ name: String) throws(EngineError) {
    files.withLock { _ = $0.removeValue(forKey: name) }
  }

  func sync() throws(EngineError) {}
  func syncName() throws(EngineError) {}

  func lock(owner: String) throws(EngineError) -> any DirectoryLock {
    throw .inUse(path: path, holder: "")
  }
}

/// A file in memory.
final class MemoryFile: File {
  let name: String
  private let storage: Guarded<[UInt8]>
  private let readCount = Atomic<Int>(0)

  init(name: String, _ bytes: [UInt8]) {
    self.name = name
    storage = Guarded(bytes)
  }

  var bytes: [UInt8] { storage.withLock { $0 } }
  var reads: Int { readCount.load(ordering: .relaxed) }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    readCount.add(1, ordering: .relaxed)
    return storage.withLock { bytes in
      guard offset < UInt64(bytes.count) else { return [] }
      return Array(bytes[Int(offset)...].prefix(count))
    }
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    let new = bytes.array
    storage.withLock { bytes in
      let end = Int(offset) + new.count
      if bytes.count < end { bytes += [UInt8](repeating: 0, count: end - bytes.count) }
      bytes.replaceSubrange(Int(offset)..<end, with: new)
    }
  }

  func sync() throws(EngineError) {}

  func writeSynced(_ new: RawSpan, at offset: UInt64) throws(EngineError) {
    try write(new, at: offset)
  }
  func size() throws(EngineError) -> UInt64 { UInt64(bytes.count) }
}
