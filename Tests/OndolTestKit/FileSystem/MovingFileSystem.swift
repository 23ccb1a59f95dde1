// The files of a working writer, as a reader beside it meets them: each look comes at a later
// moment of the writer's life than the one before, and a long read takes its pages at different
// moments. The life is a recording, so a seed repeats everything.

package import OndolEngine

/// A recorded life, only for reading.
package final class MovingFileSystem: FileSystem {
  fileprivate struct State {
    var place: Int
    var random: SeededRandom
    var writes = 0
  }

  private let pictures: [Picture]
  private let pace: Int
  fileprivate let state: Guarded<State>

  /// - Parameters:
  ///   - pictures: the disk before each of the writer's operations.
  ///   - place: the picture it begins with.
  ///   - pace: one of this many looks at the files finds another picture.
  package init(_ pictures: [Picture], from place: Int, pace: Int, seed: UInt64) {
    self.pictures = pictures
    self.pace = pace
    state = Guarded(State(place: place, random: SeededRandom(seed: seed)))
  }

  /// Whether the life has ended.
  package var isAtEnd: Bool { state.withLock { $0.place == pictures.count - 1 } }

  /// The writer's note at this time.
  package var note: Int { pictures[state.withLock { $0.place }].note }

  /// Attempts to change something, all of which fail.
  package var writes: Int { state.withLock { $0.writes } }

  /// Lets some time pass.
  package func move(by operations: Int) {
    state.withLock { $0.place = min(pictures.count - 1, $0.place + operations) }
  }

  /// The disk at this moment.
  fileprivate func look() -> SimulatedStorage {
    let place = state.withLock { state in
      if state.random.below(pace) == 0 { state.place = min(pictures.count - 1, state.place + 1) }
      return state.place
    }
    return pictures[place].storage
  }

  fileprivate func refuse(_ operation: SystemCall, _ file: String) -> EngineError {
    state.withLock { $0.writes += 1 }
    return .io(
      operation: operation, file: file, offset: nil, errno: SimulatedFileSystem.inputOutputError)
  }

  package func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory {
    if create { throw refuse("mkdir", path) }
    return MovingDirectory(path: path, of: self)
  }
}

private final class MovingDirectory: Directory {
  let path: String
  private let fileSystem: MovingFileSystem

  init(path: String, of fileSystem: MovingFileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  func list() -> [String] { fileSystem.look().names(in: path) }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    if access == .readWrite { throw fileSystem.refuse("open for writing", name) }
    guard let number = fileSystem.look().directories[path]?.current[name] else {
      throw .io(
        operation: "open", file: name, offset: nil, errno: SimulatedFileSystem.noSuchFile)
    }
    return MovingFile(name: name, number: number, of: fileSystem)
  }

  func create(_ name: String) throws(EngineError) -> any File {
    throw fileSystem.refuse("create", name)
  }

  func remove(_ name: String) throws(EngineError) { throw fileSystem.refuse("remove", name) }
  func sync() throws(EngineError) { throw fileSystem.refuse("sync", path) }
  func syncName() throws(EngineError) { throw fileSystem.refuse("sync", path) }

  func lock(owner: String) throws(EngineError) -> any DirectoryLock {
    throw fileSystem.refuse("lock", path)
  }
}

private final class MovingFile: File {
  private static let page = 4096

  let name: String
  private let number: Int
  private let fileSystem: MovingFileSystem

  init(name: String, number: Int, of fileSystem: MovingFileSystem) {
    self.name = name
    self.number = number
    self.fileSystem = fileSystem
  }

  /// Page after page, each at a moment of its own.
  func read(at offset: UInt64, count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let start = Int(offset) + bytes.count
      let length = min(count - bytes.count, Self.page - start % Self.page)
      let piece = fileSystem.look().files[number]?.current.read(at: start, count: length) ?? []
      bytes += piece
      if piece.count < length { break }
    }
    return bytes
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    throw fileSystem.refuse("write", name)
  }

  func sync() throws(EngineError) { throw fileSystem.refuse("sync", name) }

  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    throw fileSystem.refuse("write", name)
  }

  func size() -> UInt64 { UInt64(fileSystem.look().files[number]?.current.size ?? 0) }
}
