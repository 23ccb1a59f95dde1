// Files whose writes take a while: around each, others get on, as they do while a thread waits for
// a device. Without it whatever a step does would happen at once, and what goes wrong between two
// looks at shared state with a write between them would never be seen.

internal import OndolEngine

/// A file system whose writes and syncs let the executor's other steps run.
struct InterleavingFileSystem: FileSystem {
  private let base: any FileSystem
  private let executor: SimulationExecutor

  init(_ base: any FileSystem, _ executor: SimulationExecutor) {
    self.base = base
    self.executor = executor
  }

  func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory {
    InterleavingDirectory(try base.openDirectory(at: path, create: create), executor)
  }
}

extension SimulationExecutor {
  /// Does what blocks.
  fileprivate func blocking(_ work: () throws(EngineError) -> Void) throws(EngineError) {
    interleave()
    defer { interleave() }
    try work()
  }
}

private final class InterleavingDirectory: Directory {
  private let base: any Directory
  private let executor: SimulationExecutor

  init(_ base: any Directory, _ executor: SimulationExecutor) {
    self.base = base
    self.executor = executor
  }

  var path: String { base.path }

  func list() throws(EngineError) -> [String] { try base.list() }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    InterleavingFile(try base.open(name, access: access), executor)
  }

  func create(_ name: String) throws(EngineError) -> any File {
    InterleavingFile(try base.create(name), executor)
  }

  func remove(_ name: String) throws(EngineError) { try base.remove(name) }

  func sync() throws(EngineError) {
    try executor.blocking { () throws(EngineError) in try base.sync() }
  }

  func syncName() throws(EngineError) { try base.syncName() }

  func lock(owner: String) throws(EngineError) -> any DirectoryLock { try base.lock(owner: owner) }
}

private final class InterleavingFile: File {
  private let base: any File
  private let executor: SimulationExecutor

  init(_ base: any File, _ executor: SimulationExecutor) {
    self.base = base
    self.executor = executor
  }

  var name: String { base.name }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    try base.read(at: offset, count: count)
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    executor.interleave()
    defer { executor.interleave() }
    try base.write(bytes, at: offset)
  }

  func reserve(_ range: Range<UInt64>) throws(EngineError) -> Bool { try base.reserve(range) }

  func sync() throws(EngineError) {
    try executor.blocking { () throws(EngineError) in try base.sync() }
  }

  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    executor.interleave()
    defer { executor.interleave() }
    try base.writeSynced(bytes, at: offset)
  }

  func size() throws(EngineError) -> UInt64 { try base.size() }

  func giveBack(behind length: UInt64) { base.giveBack(behind: length) }
}
