// Loses one page of one file, as a device does when a block of it goes bad, at every place of every
// file of a killed database, and counts the acknowledged commits afterwards. Either all exist, or
// opening or reading reports damage. Fewer commits without an error are never correct.

internal import OndolEngine

package struct LostPageTest: Sendable {
  /// How the database ended.
  package enum Ending: String, Sendable, CaseIterable {
    case killed
    /// Killed, reopened, and killed after the recovery.
    case killedAfterRecovery
    /// The same with commits in between.
    case killedAfterMoreCommits
    case closed
  }

  /// The bytes that replace a lost page.
  package enum Rest: String, Sendable, CaseIterable {
    case zeros
    case garbage
  }

  package struct Report: Sendable {
    /// The number of lost pages, and of those that were reported as damaged.
    package var pages = 0
    package var said = 0
    package var violations: [String] = []
  }

  private static let path = DocumentSubject.path
  private static let commits = 140

  private let seed: UInt64

  package init(seed: UInt64) {
    self.seed = seed
  }

  /// Loses each page in turn.
  package func run(_ ending: Ending, _ rest: Rest) throws -> Report {
    let (files, commits) = try make(ending)
    var report = Report()
    for name in files.keys.sorted() {
      let bytes = files[name] ?? []
      for start in stride(from: 0, to: bytes.count, by: pageSize) {
        let end = min(start + pageSize, bytes.count)
        // Bytes that were never written are no loss.
        guard bytes[start..<end].contains(where: { $0 != 0 }) else { continue }
        var damaged = files
        damaged[name]?.replaceSubrange(start..<end, with: filler(rest, end - start, at: start))
        report.pages += 1
        let place = "SEED=\(seed), \(ending.rawValue), \(rest.rawValue) at \(start) of \(name)"
        try judge(damaged, commits, place, &report)
      }
    }
    return report
  }

  private func filler(_ rest: Rest, _ count: Int, at start: Int) -> [UInt8] {
    var random = SeededRandom(seed: SeededRandom.derive(seed, start))
    return rest == .zeros ? [UInt8](repeating: 0, count: count) : random.bytes(count)
  }

  // MARK: - The database

  private static func key(_ number: Int) -> [UInt8] {
    [0, 0, UInt8(0x10 * (1 + number % 3)), 0, UInt8(number >> 8), UInt8(number & 0xff)]
  }

  private func value(_ number: Int) -> [UInt8] {
    var random = SeededRandom(seed: SeededRandom.derive(seed, number))
    return random.bytes(number % 9 == 0 ? 1_500 : 100 + random.below(300))
  }

  private func open(
    _ fileSystem: SimulatedFileSystem, _ executor: SimulationExecutor
  ) async throws(EngineError) -> Engine {
    var options = EngineOptions()
    options.shardCount = 2
    options.memtableSize = 24 << 10
    options.logSize = 24 << 10
    options.firstPrewrittenSize = 16 << 10
    options.segmentSize = 8 << 10
    options.blockSize = 1 << 10
    options.valueThreshold = 1 << 10
    options.manifestSize = 4 << 10
    let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
    return try await Engine.open(at: Self.path, options: options, environment: world.environment)
  }

  private func write(_ numbers: Range<Int>, to engine: Engine) async throws {
    for number in numbers {
      var batch = Batch()
      batch.put(Self.key(number).bytes, value(number).bytes)
      _ = try await engine.commit(batch, durability: .power)
    }
  }

  /// The files, and the number of acknowledged commits.
  private func make(_ ending: Ending) throws -> ([String: [UInt8]], Int) {
    let first = SimulatedFileSystem()
    var left = try SimulationExecutor.run(seed: seed) { executor in
      let engine = try await open(first, executor)
      try await write(0..<Self.commits, to: engine)
      if ending == .closed { try await engine.close() }
      return first.kill()
    }
    var commits = Self.commits
    if ending == .killedAfterRecovery || ending == .killedAfterMoreCommits {
      let more = ending == .killedAfterMoreCommits ? 12 : 0
      let second = left
      left = try SimulationExecutor.run(seed: seed) { executor in
        let engine = try await open(second, executor)
        try await engine.synchronize()
        try await write(Self.commits..<(Self.commits + more), to: engine)
        return second.kill()
      }
      commits += more
    }
    let storage = left.storage
    let names = storage.names(in: Self.path).filter { $0 != "LOCK" && $0 != "RESERVE" }
    let files = names.map { ($0, storage.contents(of: $0, in: Self.path) ?? []) }
    return (Dictionary(uniqueKeysWithValues: files), commits)
  }

  // MARK: - Afterwards

  /// The result of reading a damaged database.
  private enum Look {
    /// A number of consecutive commits exist.
    case count(Int)
    /// Opening or reading reported damage.
    case refused
    case unreadable
  }

  private func judge(
    _ files: [String: [UInt8]], _ commits: Int, _ place: String, _ report: inout Report
  ) throws {
    let disk = SimulatedFileSystem(storage: HostileSample.disk(of: files))
    var counts: [Int] = []
    for _ in 0..<2 {
      switch try look(for: commits, on: disk, place, &report) {
      case .count(let count): counts.append(count)
      case .unreadable: return report.said += 1
      case .refused:
        report.said += 1
        return refuseRemoval(files, disk.storage, place, &report)
      }
    }
    if counts != [commits, commits] {
      report.violations.append("\(place): of \(commits) commits there are \(counts)")
    }
  }

  private func look(
    for commits: Int, on disk: SimulatedFileSystem, _ place: String, _ report: inout Report
  ) throws -> Look {
    let isOpen = Guarded(false)
    let found: Result<[Bool], EngineError> = try SimulationExecutor.run(seed: seed) { executor in
      do throws(EngineError) {
        let engine = try await open(disk, executor)
        isOpen.withLock { $0 = true }
        return .success(try await survivors(of: commits, in: engine))
      } catch {
        return .failure(error)
      }
    }
    switch found {
    case .success(let isThere):
      let count = isThere.prefix { $0 }.count
      if isThere[count...].contains(true) {
        report.violations.append("\(place): commit \(count) is missing before others")
      }
      return .count(count)
    case .failure(let error):
      if !error.isAboutDamage { report.violations.append("\(place): \(error)") }
      return isOpen.withLock { $0 } ? .unreadable : .refused
    }
  }

  /// Finds the existing commits, and closes the database.
  private func survivors(
    of commits: Int, in engine: Engine
  ) async throws(EngineError) -> [Bool] {
    var isThere: [Bool] = []
    do throws(EngineError) {
      for number in 0..<commits {
        isThere.append(try await engine.snapshot().get(Self.key(number)) == value(number))
      }
    } catch {
      // Closing may meet the same damage.
      try? await engine.close()
      throw error
    }
    try await engine.close()
    return isThere
  }

  /// A refused database keeps its files, because someone may salvage some of them.
  private func refuseRemoval(
    _ files: [String: [UInt8]], _ storage: SimulatedStorage, _ place: String,
    _ report: inout Report
  ) {
    let names = Set(storage.names(in: Self.path))
    let gone = files.keys.filter { !names.contains($0) && FileClass(name: $0) == .log }
    if !gone.isEmpty { report.violations.append("\(place): \(gone.sorted()) are gone") }
  }
}

extension EngineError {
  fileprivate var isAboutDamage: Bool {
    switch self {
    case .corrupt, .notADatabase, .needsNewerVersion, .poisoned: true
    default: false
    }
  }
}
