// A file system in memory that can lose power. It replaces the disk in tests whose subject is not
// the engine's files, and it is the stage of the crash tests: each operation has a number, power
// can be cut before any of them, and PowerCut.swift has the rules for what remains.

package import OndolEngine

/// The disk before an operation.
package struct Picture: Sendable {
  package var storage: SimulatedStorage
  /// The number of the next operation.
  package var operation: Int
  package var kind: OperationKind
  package var file: String
  /// The test's note at this time, see `note(_:)`.
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
    /// The first operation that failed because of a fault.
    var struck: String?
    /// Whether the last failed operation did half of its work.
    var hasDoneHalf = false
    /// The capacity for all files together, in bytes.
    var capacity: Int?
    /// The number of open files, its maximum so far, and its limit.
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

  /// The number of operations so far, without reads.
  package var operations: Int { state.withLock { $0.operations } }

  package func count(of kind: OperationKind) -> Int { state.withLock { $0.counts[kind] ?? 0 } }

  /// Cuts the power before the operation with this number. Every later one fails with `EIO`.
  package func cutPower(before operation: Int) {
    state.withLock { $0.cutAt = operation }
  }

  package var hasPower: Bool { state.withLock { $0.hasPower } }

  /// The first operation that failed because of a fault, and its place.
  package var struck: String? { state.withLock { $0.struck } }

  /// Applies `faults` to the operations from now on.
  package func inject(_ faults: [Fault]) {
    state.withLock { $0.faults = faults }
  }

  /// The applied faults, with the rest of their counts.
  package var faults: [Fault] { state.withLock { $0.faults } }

  /// Gives the disk a capacity in bytes; no limit for nil. Existing bytes stay.
  package func setCapacity(_ bytes: Int?) {
    state.withLock { $0.capacity = bytes }
  }

  package var capacity: Int? { state.withLock { $0.capacity } }

  /// The bytes of files with a name.
  package var used: Int { state.withLock { $0.storage.used } }

  /// The number of open files, and its maximum. The lock and the directory itself do not count.
  package var openFiles: Int { state.withLock { $0.openFiles } }
  package var mostOpenFiles: Int { state.withLock { $0.mostOpenFiles } }

  /// Limits a process's open files; no limit for nil.
  package func setFileLimit(_ limit: Int?) {
    state.withLock { $0.fileLimit = limit }
  }

  /// Makes reserving space unavailable.
  package func forbidReserving() {
    state.withLock { $0.canReserve = false }
  }

  /// Keeps a picture of the disk before each numbered operation from now on. A run with pictures is
  /// as good as one run for every possible place of a power cut.
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

  /// Gives later pictures this number, which tells a test how far the run had come.
  package func note(_ note: Int) {
    state.withLock { $0.note = note }
  }

  /// The file system after a power cut now: unsynced writes may exist, or not, or in part.
  package func crash(seed: UInt64) -> SimulatedFileSystem {
    SimulatedFileSystem(storage: storage.afterPowerCut(seed: seed))
  }

  /// The file system after a kill of the process now: all writes exist, and unsynced ones are still
  /// at risk.
  package func kill() -> SimulatedFileSystem {
    SimulatedFileSystem(storage: storage.afterKill())
  }
}

extension SimulatedFileSystem.State {
  /// The largest possible length of a file.
  func room(in number: Int) -> Int {
    guard let capacity else { return .max }
    let extent = storage.isNamed(number) ? storage.files[number]?.extent ?? 0 : 0
    return extent + max(0, capacity - storage.used)
  }

  /// Throws if this many bytes are no longer available.
  func claim(bytes: Int, for file: String, at offset: UInt64?) throws(EngineError) {
    guard let capacity, storage.used + bytes > capacity else { return }
    throw .io(
      operation: "create", file: file, offset: offset, errno: SimulatedFileSystem.noSpace)
  }

  /// Counts an opened file. Throws if the limit is reached.
  mutating func takeDescriptor(for file: String) throws(EngineError) {
    if let fileLimit, openFiles >= fileLimit {
      throw .io(
        operation: "open", file: file, offset: nil, errno: SimulatedFileSystem.tooManyOpenFiles)
    }
    openFiles += 1
    mostOpenFiles = max(mostOpenFiles, openFiles)
  }

  /// Counts an operation, and throws if it must fail.
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
