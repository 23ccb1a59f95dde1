// A directory that limits the number of open files. A file from `openForReads` can be read for as
// long as a caller has it, although its descriptor may be closed and opened again between two
// reads. Files of rows and contents never change, and no number is reused, so it is the same file.
// All other calls that briefly need a descriptor take one from these files if none is free.

/// A directory that keeps few files open.
final class FrugalDirectory: ForwardingDirectory {
  let base: any Directory
  private let table: OpenFileTable
  /// Whether another process writes to the directory and may remove files that are being read.
  private let isShared: Bool

  /// - Parameters:
  ///   - table: the files open for reads, of this directory and possibly of others.
  ///   - isShared: whether another process may remove files that are being read.
  init(_ base: any Directory, _ table: OpenFileTable, isShared: Bool) {
    self.base = base
    self.table = table
    self.isShared = isShared
  }

  /// Creates it with its own table for this many files.
  convenience init(_ base: any Directory, limit: Int, isShared: Bool) {
    self.init(base, OpenFileTable(limit: limit), isShared: isShared)
  }

  var heldRoom: Int { table.heldRoom }

  func openForReads(_ name: String, held: Bool) throws(EngineError) -> any File {
    let file = ReopenedFile(name, in: base, table, isShared: isShared)
    try file.open(held: held)
    return file
  }

  func list() throws(EngineError) -> [String] {
    try table.withDescriptors { () throws(EngineError) in try base.list() }
  }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    try table.withDescriptors { () throws(EngineError) in try base.open(name, access: access) }
  }

  func create(_ name: String) throws(EngineError) -> any File {
    try table.withDescriptors { () throws(EngineError) in try base.create(name) }
  }

  func syncName() throws(EngineError) {
    try table.withDescriptors { () throws(EngineError) in try base.syncName() }
  }

  func lock(owner: String) throws(EngineError) -> any DirectoryLock {
    try table.withDescriptors { () throws(EngineError) in try base.lock(owner: owner) }
  }
}

/// A file that is opened again when it is read after being closed.
private final class ReopenedFile: File {
  let name: String
  private let directory: any Directory
  private let table: OpenFileTable
  private let ticket: OpenFileTable.Ticket
  private let isShared: Bool

  init(_ name: String, in directory: any Directory, _ table: OpenFileTable, isShared: Bool) {
    self.name = name
    self.directory = directory
    self.table = table
    self.isShared = isShared
    ticket = table.makeTicket()
  }

  deinit {
    table.forget(ticket)
  }

  @discardableResult
  func open(held: Bool = false) throws(EngineError) -> any File {
    do throws(EngineError) {
      return try table.file(ticket, isHeld: held) { () throws(EngineError) in
        try directory.open(name, access: .readOnly)
      }
    } catch {
      guard isShared, error.isMissingFile else { throw error }
      throw .superseded(file: name)
    }
  }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    try open().read(at: offset, count: count)
  }

  /// Opening may wait for the device.
  func readAtOnce(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]? {
    try table.current(ticket)?.readAtOnce(at: offset, count: count)
  }

  func willRead(at offset: UInt64, count: Int) {
    table.current(ticket)?.willRead(at: offset, count: count)
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    try open().write(bytes, at: offset)
  }

  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    try open().writeSynced(bytes, at: offset)
  }

  func sync() throws(EngineError) { try open().sync() }

  func size() throws(EngineError) -> UInt64 { try open().size() }
}
