// Directories and files that wrap others and change the behaviour of only a few calls. Every call
// is forwarded here, including those with a default implementation: a wrapper without it would
// bypass the wrapped file system's own implementation.

/// A directory that wraps another.
package protocol ForwardingDirectory: Directory {
  var base: any Directory { get }
}

extension ForwardingDirectory {
  package var path: String { base.path }
  package var keyring: Keyring? { base.keyring }
  package var heldRoom: Int { base.heldRoom }

  package func list() throws(EngineError) -> [String] { try base.list() }

  package func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    try base.open(name, access: access)
  }

  package func openForReads(_ name: String, held: Bool) throws(EngineError) -> any File {
    try base.openForReads(name, held: held)
  }

  package func create(_ name: String) throws(EngineError) -> any File { try base.create(name) }

  package func remove(_ name: String) throws(EngineError) { try base.remove(name) }

  package func sync() throws(EngineError) { try base.sync() }

  package func syncName() throws(EngineError) { try base.syncName() }

  package func lock(owner: String) throws(EngineError) -> any DirectoryLock {
    try base.lock(owner: owner)
  }

  package func freeBytes() -> UInt64? { base.freeBytes() }

  package func watch(
    _ concerns: @escaping @Sendable (String) -> Bool
  ) -> (any DirectoryWatch)? {
    base.watch(concerns)
  }

  package func close() { base.close() }
}

/// A file that wraps another.
package protocol ForwardingFile: File {
  var base: any File { get }
}

extension ForwardingFile {
  package var name: String { base.name }

  package func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    try base.read(at: offset, count: count)
  }

  package func readAtOnce(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]? {
    try base.readAtOnce(at: offset, count: count)
  }

  package func willRead(at offset: UInt64, count: Int) { base.willRead(at: offset, count: count) }

  package func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    try base.write(bytes, at: offset)
  }

  package func willSync(_ range: Range<UInt64>) { base.willSync(range) }

  package func reserve(_ range: Range<UInt64>) throws(EngineError) -> Bool {
    try base.reserve(range)
  }

  package func sync() throws(EngineError) { try base.sync() }

  package func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    try base.writeSynced(bytes, at: offset)
  }

  package func size() throws(EngineError) -> UInt64 { try base.size() }

  package func giveBack(behind length: UInt64) { base.giveBack(behind: length) }
}
