// What the console knows of the database without being asked: the last commits, and a minute of
// measurements. One for all pages; streams are woken by it.

import Foundation
import Ondol
import OndolEngine

/// Watches the database for all streams.
final class Monitor: Sendable {
  /// Commits that are remembered.
  static let remembered = 1_000
  /// Documents of remembered commits, and bytes that they have about, beyond which the oldest go.
  private static let rememberedDocuments = 20_000
  /// Measurements that are kept, one a second.
  private static let measured = 60

  private struct State: Sendable {
    var commits: [SeenCommit] = []
    var documentCount = 0
    /// The number of the first of `commits`, counted from when the console began.
    var first = 0
    /// The version since which every commit is among them.
    var knownSince: Version
    var tap: CommitTap?
    var waiting: [Int: AsyncStream<Void>.Continuation] = [:]
    var next = 0
    var samples: [JSON] = []
    var work: Task<Void, Never>?
    var isClosed = false
  }

  private let state: Guarded<State>
  let database: Database
  private let files: Guarded<[JSON]> = Guarded([])

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

  private func take(_ commit: SeenCommit) {
    let waiting = state.withLock { state in
      state.commits.append(commit)
      state.documentCount += commit.documentCount
      while state.commits.count > Self.remembered
        || state.documentCount > Self.rememberedDocuments && state.commits.count > 1
      {
        let oldest = state.commits.removeFirst()
        state.documentCount -= oldest.documentCount
        state.knownSince = oldest.version
        state.first += 1
      }
      return Array(state.waiting.values)
    }
    for continuation in waiting { continuation.yield() }
  }

  /// Wakes all streams.
  func poke() {
    for continuation in state.withLock({ Array($0.waiting.values) }) { continuation.yield() }
  }

  // MARK: - Streams

  /// Something that yields whenever there may be news, until the console is closed.
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

  /// How many commits there have been.
  var position: Int { state.withLock { $0.first + $0.commits.count } }

  /// The commits from a position on; nil when some of them are forgotten.
  func commits(from position: Int) -> [SeenCommit]? {
    state.withLock { state in
      guard position >= state.first else { return nil }
      return Array(state.commits[(position - state.first)...])
    }
  }

  // MARK: - Changes

  /// The changes behind a commit, oldest first, and whether there are more.
  func changes(
    since token: ChangeToken, atMost limit: Int, below path: String?
  ) async throws -> ([JSON], Bool) {
    guard let version = database.version(of: token) else {
      throw ConsoleFailure.wrong("the token is of another database")
    }
    let (commits, isKnown) = state.withLock { state in
      (state.commits.filter { $0.version > version }, version >= state.knownSince)
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
      throw ConsoleFailure(400, "outOfRange", "the commits behind this token are known no more")
    }
    var changes: [JSON] = []
    for commit in commits {
      guard let change = json(commit, path) else { continue }
      if changes.count == limit { return (changes, true) }
      changes.append(change)
    }
    return (changes, false)
  }

  /// The newest changes that are known, oldest first.
  func newestChanges(atMost limit: Int, below path: String?) async throws -> [JSON] {
    var changes: [JSON] = []
    for commit in state.withLock({ $0.commits }).reversed() where changes.count < limit {
      if let change = json(commit, path) { changes.append(change) }
    }
    return changes.reversed()
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
    var kinds: [String: (count: Int, bytes: Int)] = [:]
    for file in DatabaseFiles.all(in: database.directory) {
      kinds[file.kind, default: (0, 0)].count += 1
      kinds[file.kind, default: (0, 0)].bytes += file.bytes
    }
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
      "files": .list(
        kinds.sorted { $0.key < $1.key }.map {
          [
            "kind": .text($0.key), "count": .number($0.value.count),
            "bytes": .number($0.value.bytes),
          ]
        }),
    ]
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

  /// Bytes of memory that the process has; 0 where the system does not say it so.
  static var processBytes: Int {
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else {
      return 0
    }
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * 4_096
  }
}
