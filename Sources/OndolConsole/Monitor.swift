// What the console keeps of the database before any page asks: the last commits, and a minute of
// measurements. One monitor serves all pages and wakes their streams.

import Foundation
import Ondol
import OndolEngine

/// Watches the database for all streams.
final class Monitor: Sendable {
  /// The number of remembered commits.
  static let remembered = 1_000
  /// The largest number of documents in the remembered commits, and their approximate bytes. Beyond
  /// it, the monitor forgets the oldest commits.
  private static let rememberedDocuments = 20_000
  /// The number of kept measurements, one a second.
  private static let measured = 60

  private struct State: Sendable {
    /// The last commits. Commit N, counted from the start of the console, is at N modulo the
    /// length, so that keeping another moves none.
    var commits = [SeenCommit?](repeating: nil, count: Monitor.remembered)
    var documentCount = 0
    /// The range of numbers that are kept.
    var first = 0
    var end = 0
    /// Whether the streams were woken since one of them last looked.
    var isTold = false
    /// The list contains every commit since this version.
    var knownSince: Version
    var tap: CommitTap?
    var waiting: [Int: AsyncStream<Void>.Continuation] = [:]
    var next = 0
    var samples: [JSON] = []
    var work: Task<Void, Never>?
    var isClosed = false

    /// The commits from a number on.
    func commits(from number: Int) -> [SeenCommit] {
      (number..<max(number, end)).compactMap { commits[$0 % Monitor.remembered] }
    }
  }

  private let state: Guarded<State>
  let database: Database
  private let files = Guarded(ListedFiles())

  init(_ database: Database) {
    self.database = database
    state = Guarded(State(knownSince: database.newestPoint.version))
    let tap = database.tapCommits { [weak self] commit in self?.take(commit) }
    state.withLock { $0.tap = tap }
    measure()
    let work = Task { [weak self] in
      while !Task.isCancelled {
        try? await Task.sleep(for: .seconds(1))
        guard let self else { return }
        measure()
        poke()
      }
    }
    state.withLock { $0.work = work }
  }

  func close() {
    let (waiting, work) = state.withLock { state in
      state.isClosed = true
      state.tap = nil
      return (Array(state.waiting.values), state.work)
    }
    work?.cancel()
    for continuation in waiting { continuation.finish() }
  }

  /// Keeps a commit, on the committer's thread. It wakes the streams once, and not again until one
  /// of them looks. So even beside a page, a commit costs no more than keeping it.
  private func take(_ commit: SeenCommit) {
    let waiting = state.withLock { state in
      while state.end - state.first >= Self.remembered
        || state.documentCount > Self.rememberedDocuments && state.end > state.first
      {
        let place = state.first % Self.remembered
        if let oldest = state.commits[place] {
          state.documentCount -= oldest.documentCount
          state.knownSince = oldest.version
        }
        state.commits[place] = nil
        state.first += 1
      }
      state.commits[state.end % Self.remembered] = commit
      state.documentCount += commit.documentCount
      state.end += 1
      guard !state.isTold, !state.waiting.isEmpty else {
        return [AsyncStream<Void>.Continuation]()
      }
      state.isTold = true
      return Array(state.waiting.values)
    }
    for continuation in waiting { continuation.yield() }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Wakes all streams.
  func poke() {
    for continuation in state.withLock({ Array($0.waiting.values) }) { continuation.yield() }
  }

  // MARK: - Streams

  /// A sequence that yields whenever there may be news, until the console is closed.
  func wakeups() -> AsyncStream<Void> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let number = state.withLock { state -> Int? in
        guard !state.isClosed else { return nil }
        state.next += 1
        state.waiting[state.next] = continuation
        return state.next
      }
      guard let number else { return continuation.finish() }
      continuation.onTermination = { [weak self] _ in
        self?.state.withLock { _ = $0.waiting.removeValue(forKey: number) }
      }
    }
  }

  /// The number of commits so far.
  var position: Int { state.withLock { $0.end } }

  /// A stream's look: the commits from a position on, and the position after them. It has no
  /// commits if they are more than `limit`, if they have ten times as many documents, or if some
  /// are forgotten.
  func look(
    from position: Int, atMost limit: Int
  ) -> (commits: [SeenCommit]?, last: SeenCommit?, end: Int) {
    state.withLock { state in
      state.isTold = false
      guard state.end > position else { return ([], nil, state.end) }
      let last = state.commits[(state.end - 1) % Self.remembered]
      guard position >= state.first, state.end - position <= limit else {
        return (nil, last, state.end)
      }
      let commits = state.commits(from: position)
      let isLong = commits.reduce(0) { $0 + $1.documentCount } > limit * 10
      return (isLong ? nil : commits, last, state.end)
    }
  }

  /// The newest commits from a position on, at most `limit`, the number of commits in between, and
  /// the position after all of them.
  func newest(from position: Int, atMost limit: Int) -> (
    commits: [SeenCommit], skipped: Int, end: Int
  ) {
    state.withLock { state in
      let first = max(position, state.first, state.end - limit)
      return (state.commits(from: first), first - position, state.end)
    }
  }

  /// The position after the commit of a version; nil if later commits are forgotten.
  func position(behind version: Version) -> Int? {
    state.withLock { state in
      guard version >= state.knownSince else { return nil }
      return state.end
        - state.commits(from: state.first).reversed().prefix {
          $0.version > version
        }.count
    }
  }

  // MARK: - Changes

  /// The changes after a commit, oldest first, and whether there are more.
  func changes(
    since token: ChangeToken, atMost limit: Int, below path: String?
  ) async throws -> ([JSON], Bool) {
    guard let version = database.version(of: token) else {
      throw ConsoleFailure.wrong("the token belongs to another database")
    }
    let (commits, isKnown) = state.withLock { state in
      (
        state.commits(from: state.first).filter { $0.version > version },
        version >= state.knownSince
      )
    }
    if database.keepsChanges, !isKnown || database.isReadOnly {
      var changes: [JSON] = []
      var last = token
      while true {
        let (kept, isEnd) = try await database.keptChanges(since: last, atMost: 200)
        for change in kept {
          last = change.token
          guard let json = JSON.change(change, below: path, isCut: false) else { continue }
          if changes.count == limit { return (changes, true) }
          changes.append(json)
        }
        if isEnd { return (changes, false) }
      }
    }
    guard isKnown || database.isReadOnly else {
      throw ConsoleFailure(400, "outOfRange", "the commits after this token are no longer known")
    }
    var changes: [JSON] = []
    for commit in commits {
      guard let change = json(commit, path) else { continue }
      if changes.count == limit { return (changes, true) }
      changes.append(change)
    }
    return (changes, false)
  }

  /// The number of kept commits to search for the newest changes, and for those below a path.
  private static let searched = (all: 2_000, below: 20_000)

  /// The newest known changes, oldest first: those that this process saw, and if they are fewer
  /// than requested, the kept ones.
  func newestChanges(atMost limit: Int, below path: String?) async throws -> [JSON] {
    var changes: [JSON] = []
    for commit in newest(from: 0, atMost: Self.remembered).commits.reversed()
    where changes.count < limit {
      if let change = json(commit, path) { changes.append(change) }
    }
    guard changes.count < limit, database.keepsChanges else { return changes.reversed() }
    return try await database.newestKeptChanges(
      among: path == nil ? Self.searched.all : Self.searched.below, atMost: limit
    ) { JSON.change($0, below: path, isCut: false) }
  }

  func json(_ commit: SeenCommit, _ path: String?) -> JSON? {
    guard let (change, isCut) = commit.change(in: database, atMost: JSON.changesOfCommit * 2) else {
      return nil
    }
    return .change(change, below: path, isCut: isCut)
  }

  // MARK: - Measurements

  var samples: [JSON] { state.withLock { $0.samples } }

  private func measure() {
    let sample = sample()
    state.withLock { state in
      state.samples.append(sample)
      if state.samples.count > Self.measured { state.samples.removeFirst() }
    }
  }

  private func sample() -> JSON {
    let metrics = database.metrics
    let time = (try? Timestamp(microsecondsSince1970: database.wallClock)).map { JSON.time($0) }
    return [
      "time": time, "commits": .number(metrics.commits),
      "commitLatency": .list(metrics.commitLatency.map { .number($0) }),
      "blockLoads": .number(metrics.blockLoads), "blockEvictions": .number(metrics.blockEvictions),
      "cachedBytes": .number(metrics.cachedBytes), "memoryBytes": .number(metrics.memoryBytes),
      "fileBytes": .number(Int(clamping: metrics.fileBytes)),
      "reclaimableBytes": .number(Int(clamping: metrics.reclaimableBytes)),
      "runs": .number(metrics.runs), "delayedCommits": .number(metrics.delayedCommits),
      "delay": .seconds(metrics.delay),
      "compactionBytesRead": .number(Int(clamping: metrics.compactionBytesRead)),
      "compactionBytesWritten": .number(Int(clamping: metrics.compactionBytesWritten)),
      "pinnedBytes": .number(Int(clamping: metrics.pinnedBytes)),
      "oldestReadAge": .seconds(metrics.oldestReadAge),
      "oldestReadOwners": .texts(metrics.oldestReadOwners),
      "listeners": .number(metrics.listeners), "pendingChanges": .number(metrics.pendingChanges),
      "damage": .texts(metrics.damage), "processBytes": .number(DatabaseFiles.processBytes),
      "files": listedFiles(),
    ]
  }

  private struct ListedFiles: Sendable {
    var json = JSON.list([])
    var due: ContinuousClock.Instant?
  }

  /// The files by kind. The longer it takes to list many files, the less often they are listed.
  private func listedFiles() -> JSON {
    let start = ContinuousClock.now
    let known = files.withLock { $0 }
    if let due = known.due, start < due { return known.json }
    var kinds: [String: (count: Int, bytes: Int)] = [:]
    for file in DatabaseFiles.all(in: database.directory) {
      kinds[file.kind, default: (0, 0)].count += 1
      kinds[file.kind, default: (0, 0)].bytes += file.bytes
    }
    let json = JSON.list(
      kinds.sorted { $0.key < $1.key }.map {
        [
          "kind": .text($0.key), "count": .number($0.value.count),
          "bytes": .number($0.value.bytes),
        ]
      })
    let end = ContinuousClock.now
    files.withLock { $0 = ListedFiles(json: json, due: end + (end - start) * 200) }
    return json
  }
}

/// The files of a database, as its directory lists them.
enum DatabaseFiles {
  struct Listed {
    var name: String
    var kind: String
    var bytes: Int
  }

  static func all(in directory: String?) -> [Listed] {
    guard let directory,
      let walk = FileManager.default.enumerator(
        at: URL(filePath: directory), includingPropertiesForKeys: [.fileSizeKey])
    else { return [] }
    var files: [Listed] = []
    for case let url as URL in walk {
      guard let values = try? url.resourceValues(forKeys: [.fileSizeKey, .isRegularFileKey]),
        values.isRegularFile ?? false, files.count < 100_000
      else { continue }
      files.append(
        Listed(
          name: url.lastPathComponent, kind: kind(url.pathExtension), bytes: values.fileSize ?? 0))
    }
    return files.sorted { $0.name < $1.name }
  }

  private static func kind(_ suffix: String) -> String {
    switch suffix {
    case "log": "log"
    case "pack", "content": "contents"
    case "values", "value": "values"
    case "segment", "seg", "rows": "rows"
    default: "other"
    }
  }

  /// The process's memory in bytes; 0 if the system does not report it.
  static var processBytes: Int {
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else {
      return 0
    }
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * 4_096
  }
}
