// A file system in memory that can lose power. It stands in for the disk wherever the engine's
// files are not the point of a test, and it is the stage of the crash tests: each operation has a
// number, power can be cut before any of them, and what is left afterwards follows the rules in
// PowerCut.swift.

package import OndolEngine

/// The disk as it was before an operation.
package struct Picture: Sendable {
  package var storage: SimulatedStorage
  /// The number of the operation that came next.
  package var operation: Int
  package var kind: OperationKind
  package var file: String
  /// What the test had noted by then, see `note(_:)`.
  package var note: Int
}

package final class SimulatedFileSystem: FileSystem {
  static let inputOutputError: Int32 = 5
  static let noSuchFile: Int32 = 2
  static let fileExists: Int32 = 17
  static let noSpace: Int32 = 28
  static let tooManyOpenFiles: Int32 = 24

  struct State: Sendable {
    var storage: SimulatedStorage
    var operations = 0
    var counts: [OperationKind: Int] = [:]
    var cutAt: Int?
    var hasPower = true
    var sabotage: Sabotage?
    var faults: [Fault] = []
    /// The first operation that failed by one of them.
    var struck: String?
    /// Whether the last one to fail has done half of it.
    var hasDoneHalf = false
    /// Bytes that all files together may take.
    var capacity: Int?
    /// Files that are open, the most that ever were, and how many may be.
    var openFiles = 0
    var mostOpenFiles = 0
    var fileLimit: Int?
    var canReserve = true
    var note = 0
    var keepsPictures = false
    var pictures: [Picture] = []
  }

  let state: Guarded<State>

  /// A file system over `storage`, by default an empty one.
  package init(storage: SimulatedStorage = SimulatedStorage(), sabotage: Sabotage? = nil) {
    state = Guarded(State(storage: storage, sabotage: sabotage))
  }

  package func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory {
    try state.withLock { (state) throws(EngineError) in
      guard state.storage.directories[path] == nil else {
        return try state.admit(.open, path)
      }
      guard create else {
        throw EngineError.io(
          operation: "open", file: path, offset: nil, errno: Self.noSuchFile)
      }
      try state.admit(.create, path)
      state.storage.directories[path] = StoredDirectory()
    }
    return SimulatedDirectory(path: path, of: self)
  }

  // MARK: - For tests

  /// The disk as programs see it now.
  package var storage: SimulatedStorage { state.withLock { $0.storage } }

  /// Operations so far, without reads.
  package var operations: Int { state.withLock { $0.operations } }

  package func count(of kind: OperationKind) -> Int { state.withLock { $0.counts[kind] ?? 0 } }

  /// Lets the power go before the operation with this number; every later one fails with `EIO`.
  package func cutPower(before operation: Int) {
    state.withLock { $0.cutAt = operation }
  }

  package var hasPower: Bool { state.withLock { $0.hasPower } }

  /// What failed first by a fault, and where.
  package var struck: String? { state.withLock { $0.struck } }

  /// Lays `faults` over the operations from now on.
  package func inject(_ faults: [Fault]) {
    state.withLock { $0.faults = faults }
  }

  /// The faults that lie over the operations, with what is left of their counts.
  package var faults: [Fault] { state.withLock { $0.faults } }

  /// Gives the disk so many bytes; no bound when nil. What is there already stays.
  package func setCapacity(_ bytes: Int?) {
    state.withLock { $0.capacity = bytes }
  }

  package var capacity: Int? { state.withLock { $0.capacity } }

  /// Bytes that files with a name take.
  package var used: Int { state.withLock { $0.storage.used } }

  /// Files that are open, and the most that were open at once. The lock and the directory itself do
  /// not count.
  package var openFiles: Int { state.withLock { $0.openFiles } }
  package var mostOpenFiles: Int { state.withLock { $0.mostOpenFiles } }

  /// Lets a process have so many files open; no bound when nil.
  package func setFileLimit(_ limit: Int?) {
    state.withLock { $0.fileLimit = limit }
  }

  /// Has the file system know no way to set space aside.
  package func forbidReserving() {
    state.withLock { $0.canReserve = false }
  }

  /// Keeps a picture of the disk before each numbered operation from now on: a run with pictures is
  /// as good as one run for every place at which the power can go.
  package func keepPictures() {
    state.withLock { $0.keepsPictures = true }
  }

  package func takePictures() -> [Picture] {
    state.withLock { state in
      let pictures = state.pictures
      state.pictures = []
      return pictures
    }
  }

  /// Gives later pictures this number, by which a test finds out how far it had come.
  package func note(_ note: Int) {
    state.withLock { $0.note = note }
  }

  /// The file system after a power cut now: what was not synced may be there, or not, or in part.
  package func crash(seed: UInt64) -> SimulatedFileSystem {
    SimulatedFileSystem(storage: storage.afterPowerCut(seed: seed))
  }

  /// The file system after the process was killed now: all that was written is there, and what was
  /// not synced is still at risk.
  package func kill() -> SimulatedFileSystem {
    SimulatedFileSystem(storage: storage.afterKill())
  }
}

extension SimulatedFileSystem.State {
  /// How long a file can become.
  func room(in number: Int) -> Int {
    guard let capacity else { return .max }
    let extent = storage.files[number]?.extent ?? 0
    return extent + max(0, capacity - storage.used)
  }

  /// Throws where so many bytes are no more to be had.
  func claim(bytes: Int, for file: String, at offset: UInt64?) throws(EngineError) {
    guard let capacity, storage.used + bytes > capacity else { return }
    throw .io(
      operation: "create", file: file, offset: offset, errno: SimulatedFileSystem.noSpace)
  }

  /// Counts a file that is opened; throws where no more may be.
  mutating func takeDescriptor(for file: String) throws(EngineError) {
    if let fileLimit, openFiles >= fileLimit {
      throw .io(
        operation: "open", file: file, offset: nil, errno: SimulatedFileSystem.tooManyOpenFiles)
    }
    openFiles += 1
    mostOpenFiles = max(mostOpenFiles, openFiles)
  }

  /// Counts an operation, and throws where it must fail.
  mutating func admit(
    _ kind: OperationKind, _ file: String, at offset: UInt64? = nil
  ) throws(EngineError) {
    if kind.isNumbered, hasPower, let cutAt, operations >= cutAt {
      hasPower = false
    }
    guard hasPower else {
      throw EngineError.io(
        operation: SystemCall("\(kind.rawValue) without power"), file: file, offset: offset,
        errno: SimulatedFileSystem.inputOutputError)
    }
    counts[kind, default: 0] += 1
    let number = operations
    if kind.isNumbered {
      if keepsPictures {
        pictures.append(
          Picture(storage: storage, operation: operations, kind: kind, file: file, note: note))
      }
      operations += 1
    }
    let fileClass = FileClass(name: file)
    for index in faults.indices
    where faults[index].strikes(kind, of: fileClass, number: number) {
      struck = struck ?? "\(kind.rawValue) of \(file)"
      hasDoneHalf = faults[index].isShort
      throw EngineError.io(
        operation: kind == .syncDirectory ? "fsync" : SystemCall(kind.rawValue), file: file,
        offset: offset, errno: faults[index].errno)
    }
  }
}
