// The smallest store that keeps its promises: all rows in memory, one log, a new log at every open.
// It exists to be broken in known ways, to show that the crash test notices.

import OndolEngine
import OndolTestKit

final class TinyStore: CrashSubject {
  /// The store's mistake.
  enum Mistake: Sendable, CaseIterable {
    case none
    /// A commit is acknowledged before it is synced.
    case forgetsToSync
    /// Recovery does not check whether a frame is complete.
    case trustsTheTail
    /// The new log's name is not synced before the old log goes.
    case forgetsTheName
    /// Recovery continues in the old log and serves its content, synced or not.
    case servesWhatIsNotSaved
    /// Each row of a commit is a frame of its own.
    case splitsCommits
    /// A failed sync is repeated, and its success believed.
    case retriesSync
  }

  private struct State {
    var rows: Rows = [:]
    var sequence: UInt64 = 0
    var end: UInt64 = 0
    var isClosed = false
    /// A write or a sync failed, and the store writes no more.
    var isPoisoned = false
    /// Whether a task writes or syncs. Others wait for their turn, because either lets other steps
    /// happen in between, and a sync after a failed one would succeed without having saved
    /// anything.
    var isWriting = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Guarded<State>
  private let log: any File
  private let lock: any DirectoryLock
  private let mistake: Mistake

  private init(_ state: State, _ log: any File, _ lock: any DirectoryLock, _ mistake: Mistake) {
    self.state = Guarded(state)
    self.log = log
    self.lock = lock
    self.mistake = mistake
  }

  // MARK: - Opening

  static func open(_ environment: Environment, mistake: Mistake) throws(EngineError) -> TinyStore {
    let directory = try environment.fileSystem.openDirectory(at: "/db", create: true)
    try directory.syncName()
    let lock = try directory.lock(owner: "test")
    let numbers = try directory.list().compactMap { Int($0.dropFirst("LOG-".count)) }.sorted()
    var state = State()
    // A log newer than a complete one was being created when the power went.
    var source: (number: Int, file: any File)?
    for number in numbers {
      let file = try directory.open("LOG-\(number)", access: .readWrite)
      let read = try replay(file, mistake: mistake)
      if read.isWhole || mistake == .servesWhatIsNotSaved || source == nil {
        state = read.state
        source = (number, file)
      }
    }
    if mistake == .servesWhatIsNotSaved, let source {
      return TinyStore(state, source.file, lock, mistake)
    }
    let log = try rewrite(&state, as: (numbers.last ?? 0) + 1, in: directory, mistake: mistake)
    for number in numbers { try directory.remove("LOG-\(number)") }
    return TinyStore(state, log, lock, mistake)
  }

  /// A new log, which begins with all rows and the mark that it is complete.
  private static func rewrite(
    _ state: inout State, as number: Int, in directory: any Directory, mistake: Mistake
  ) throws(EngineError) -> any File {
    let log = try directory.create("LOG-\(number)")
    let rows = state.rows.sorted { $0.key.lexicographicallyPrecedes($1.key) }
      .map { Change(key: $0.key, value: $0.value) }
    let frame = Self.frame(sequence: state.sequence, changes: rows)
    try log.write(frame.bytes, at: 0)
    state.end = UInt64(frame.count)
    try log.sync()
    if mistake != .forgetsTheName { try directory.sync() }
    return log
  }

  private static func replay(
    _ file: any File, mistake: Mistake
  ) throws(EngineError) -> (state: State, isWhole: Bool) {
    let bytes = try file.read(at: 0, count: Int(try file.size()))
    var state = State()
    var reader = ByteReader(bytes.bytes)
    while !reader.isAtEnd {
      do throws(MalformedBytes) {
        let checksum: UInt32 = try reader.littleEndian()
        let payload = try reader.lengthPrefixed()
        guard mistake == .trustsTheTail || checksum == crc32c(payload, continuing: 1) else { break }
        try apply(payload, to: &state)
      } catch {
        break
      }
      state.end = UInt64(reader.offset)
    }
    return (state, state.end > 0)
  }

  // MARK: - Frames

  private static func frame(sequence: UInt64, changes: [Change]) -> [UInt8] {
    var payload: [UInt8] = []
    payload.appendVarint(sequence)
    payload.appendVarint(changes.count)
    for change in changes {
      payload.appendVarint(change.key.count)
      payload.append(contentsOf: change.key)
      payload.appendVarint(change.value.map { $0.count + 1 } ?? 0)
      payload.append(contentsOf: change.value ?? [])
    }
    var frame: [UInt8] = []
    frame.appendLittleEndian(crc32c(payload.bytes, continuing: 1))
    frame.appendVarint(payload.count)
    return frame + payload
  }

  private static func apply(_ payload: RawSpan, to state: inout State) throws(MalformedBytes) {
    var reader = ByteReader(payload)
    let sequence = try reader.varint()
    for _ in 0..<(try reader.count(atMost: 1 << 20)) {
      let key = try reader.lengthPrefixed().array
      let length = try reader.count(atMost: 1 << 24)
      state.rows[key] = length == 0 ? nil : try reader.take(length - 1).array
    }
    state.sequence = sequence
  }

  // MARK: - Use

  func commit(
    _ changes: [Change], _ durability: Durability
  ) async throws(EngineError) -> CommitPlace {
    let sequence = try await inTurn { () throws(EngineError) in
      let sequence = try write(changes)
      if durability == .power, mistake != .forgetsToSync { try syncLog() }
      return sequence
    }
    return CommitPlace(sequence: sequence, time: Int64(sequence))
  }

  /// Writes a commit, whose turn has come, and makes it visible.
  private func write(_ changes: [Change]) throws(EngineError) -> UInt64 {
    let (sequence, start) = state.withLock { ($0.sequence + 1, $0.end) }
    var end = start
    let pieces = mistake == .splitsCommits ? changes.map { [$0] } : [changes]
    for piece in pieces {
      let frame = Self.frame(sequence: sequence, changes: piece)
      try log.write(frame.bytes, at: end)
      end += UInt64(frame.count)
    }
    return state.withLock { [sequence, end] state in
      (state.sequence, state.end) = (sequence, end)
      for change in changes { state.rows[change.key] = change.value }
      return sequence
    }
  }

  private func takeTurn() async {
    await withCheckedContinuation { turn in
      let isFree = state.withLock { state in
        if state.isWriting { state.waiting.append(turn) }
        defer { state.isWriting = true }
        return !state.isWriting
      }
      if isFree { turn.resume() }
    }
  }

  private func endTurn() {
    state.withLock { state in
      state.isWriting = !state.waiting.isEmpty
      return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
    }?.resume()
  }

  func contents() async throws(EngineError) -> (sequence: UInt64, rows: Rows) {
    state.withLock { ($0.sequence, $0.rows) }
  }

  func synchronize() async throws(EngineError) { try await sync() }

  func flush() async throws(EngineError) { try await sync() }

  func settle() async throws(EngineError) { try await sync() }

  func close() async throws(EngineError) {
    defer {
      state.withLock { $0.isClosed = true }
      lock.release()
    }
    try await sync()
  }

  private func sync() async throws(EngineError) {
    try await inTurn { () throws(EngineError) in try syncLog() }
  }

  private func syncLog() throws(EngineError) {
    do throws(EngineError) {
      try log.sync()
    } catch {
      guard mistake == .retriesSync else { throw error }
      try log.sync()
    }
  }

  /// Runs `work` when no other task works, and refuses everything after a failure.
  private func inTurn<R>(
    _ work: () throws(EngineError) -> R
  ) async throws(EngineError) -> R {
    await takeTurn()
    defer { endTurn() }
    let (isClosed, isPoisoned) = state.withLock { ($0.isClosed, $0.isPoisoned) }
    if isClosed { throw .closed }
    if isPoisoned { throw .poisoned(reason: "an earlier failure") }
    do throws(EngineError) {
      return try work()
    } catch {
      state.withLock { $0.isPoisoned = true }
      throw error
    }
  }
}
