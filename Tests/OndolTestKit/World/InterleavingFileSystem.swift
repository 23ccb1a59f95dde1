// Files whose writes take time: around each, others run, as they do while a thread waits for a
// device. Without that, each step would happen at once, and a fault between two reads of shared
// state with a write between them would never show.

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
  /// Does the blocking work.
  fileprivate func blocking(_ work: () throws(EngineError) -> Void) throws(EngineError) {
    interleave()
    defer { interleave() }
    try work()
  }
}

private final class InterleavingDirectory: ForwardingDirectory {
  let base: any Directory
  private let executor: SimulationExecutor

  init(_ base: any Directory, _ executor: SimulationExecutor) {
    self.base = base
    self.executor = executor
  }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    InterleavingFile(try base.open(name, access: access), executor)
  }

  func openForReads(_ name: String, held: Bool) throws(EngineError) -> any File {
    InterleavingFile(try base.openForReads(name, held: held), executor)
  }

  func create(_ name: String) throws(EngineError) -> any File {
    InterleavingFile(try base.create(name), executor)
  }

  func sync() throws(EngineError) {
    try executor.blocking { () throws(EngineError) in try base.sync() }
  }
}

private final class InterleavingFile: ForwardingFile {
  let base: any File
  private let executor: SimulationExecutor

  init(_ base: any File, _ executor: SimulationExecutor) {
    self.base = base
    self.executor = executor
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    executor.interleave()
    defer { executor.interleave() }
    try base.write(bytes, at: offset)
  }

  func sync() throws(EngineError) {
    try executor.blocking { () throws(EngineError) in try base.sync() }
  }

  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    executor.interleave()
    defer { executor.interleave() }
    try base.writeSynced(bytes, at: offset)
  }
}
