// Work in the background that a page requested: one task at a time, which outlives the page that
// started it.

import Ondol
import OndolEngine
import OndolJSON

/// A task's result.
struct TaskOutcome: Sendable {
  var findings: [Finding]?
  var result: [(name: String, value: JSON?)] = []
}

/// The tasks, newest first.
final class TaskList: Sendable {
  private struct Entry: Sendable {
    var id: String
    var kind: String
    var title: String
    var state = "running"
    var started: Timestamp
    var ended: Timestamp?
    var completed = 0
    var total = 0
    var unit: String
    var outcome: TaskOutcome?
    var failure: ConsoleFailure?
    var work: Task<Void, Never>?

    var json: JSON {
      [
        "id": .text(id), "kind": .text(kind), "title": .text(title), "state": .text(state),
        "started": .time(started), "ended": ended.map { .time($0) },
        "progress": [
          "completed": .number(completed), "total": .number(total), "unit": .text(unit),
        ],
        "findings": outcome?.findings.map { .list($0.prefix(1_000).map { .finding($0) }) },
        "result": outcome.map { $0.result.isEmpty ? .null : .object($0.result) },
        "error": failure?.json,
      ]
    }
  }

  private struct State: Sendable {
    var entries: [Entry] = []
    var next = 1
    var poke: (@Sendable () -> Void)?
  }

  private static let kept = 20
  private let state = Guarded(State())
  private let database: Database

  init(_ database: Database) {
    self.database = database
  }

  /// Called after every change.
  var poke: (@Sendable () -> Void)? {
    get { state.withLock { $0.poke } }
    set { state.withLock { $0.poke = newValue } }
  }

  var json: JSON { ["tasks": .list(state.withLock { $0.entries.map(\.json) })] }

  /// Starts a task and returns it.
  func start(
    _ kind: String, _ title: String, unit: String,
    _ body: @escaping @Sendable (@escaping @Sendable (Int, Int) -> Void) async throws -> TaskOutcome
  ) throws -> JSON {
    let now = try Timestamp(microsecondsSince1970: database.wallClock)
    let json = try state.withLock { state in
      guard !state.entries.contains(where: { $0.state == "running" }) else {
        throw ConsoleFailure(
          409, "failedPrecondition", "another task is running; wait for it or cancel it")
      }
      let id = "t\(state.next)"
      state.next += 1
      var entry = Entry(id: id, kind: kind, title: title, started: now, unit: unit)
      entry.work = Task { [self] in
        do {
          let outcome = try await body { completed, total in
            self.change(id) { entry in
              entry.completed = completed
              entry.total = total
            }
          }
          end(id, "done") { $0.outcome = outcome }
        } catch {
          let failure = ConsoleFailure(any: error)
          if failure.code == "cancelled" || Task.isCancelled {
            end(id, "cancelled") { _ in }
          } else {
            end(id, "failed") { $0.failure = failure }
          }
        }
      }
      state.entries.insert(entry, at: 0)
      if state.entries.count > Self.kept { state.entries.removeLast() }
      return entry.json
    }
    poke?()
    return ["task": json]
  }

  private func change(_ id: String, _ body: (inout Entry) -> Void) {
    let poke = state.withLock { state in
      if let index = state.entries.firstIndex(where: { $0.id == id }) {
        body(&state.entries[index])
      }
      return state.poke
    }
    poke?()
  }

  private func end(_ id: String, _ name: String, _ body: (inout Entry) -> Void) {
    let now = try? Timestamp(microsecondsSince1970: database.wallClock)
    change(id) { entry in
      if entry.state == "running" { entry.state = name }
      entry.ended = now
      entry.work = nil
      body(&entry)
    }
  }

  func cancel(_ id: String) throws -> JSON {
    let work = state.withLock { state in
      state.entries.first { $0.id == id && $0.state == "running" }?.work
    }
    guard let work else { throw ConsoleFailure(404, "notFound", "no such task is running") }
    work.cancel()
    return [:]
  }

  func cancelAll() {
    for work in state.withLock({ $0.entries.compactMap(\.work) }) { work.cancel() }
  }
}

extension ConsoleHandler {
  func startTask(_ body: [UInt8], _ mayWrite: () throws -> Void) async throws -> JSON {
    let members = try Members(
      body, known: ["kind", "depth", "bytesPerSecond", "collection", "group", "name"])
    let kind = try members.needed("kind")
    let database = database
    if kind != "verify" { try mayWrite() }
    switch kind {
    case "verify":
      let name = try members.text("depth") ?? "full"
      guard let depth = VerificationDepth(rawValue: name) else {
        throw ConsoleFailure.wrong("\"depth\" is structure, blocks or full")
      }
      return try tasks.start(kind, "Verify (\(name))", unit: "bytes") { progress in
        let findings = try await database.verify(depth: depth) { now in
          progress(Int(clamping: now.completedBytes), Int(clamping: now.totalBytes))
        }
        return TaskOutcome(findings: findings)
      }
    case "compact":
      let speed = try members.number("bytesPerSecond", in: 1...Int(Int32.max) * 1_000)
      return try tasks.start(kind, "Compact", unit: "bytes") { progress in
        try await database.compact(bytesPerSecond: speed) { now in
          progress(Int(clamping: now.completedBytes), Int(clamping: now.totalBytes))
        }
        return TaskOutcome()
      }
    case "reclaim":
      return try tasks.start(kind, "Reclaim", unit: "bytes") { _ in
        let (contents, bytes) = try await database.storage.reclaim()
        return TaskOutcome(
          result: [("contents", .number(contents)), ("bytes", .number(bytes))])
      }
    case "rebuildIndex":
      let group = try members.text("group")
      let collection = try group ?? members.needed("collection")
      let name = try members.needed("name")
      guard
        try await database.declarations().indexes.contains(where: {
          $0.collection == collection && $0.information.name == name
            && $0.isOfGroup == (group != nil)
        })
      else { throw ConsoleFailure(404, "notFound", "there is no such index") }
      let title = "Rebuild index \(name) of \(collection)"
      return try tasks.start(kind, title, unit: "documents") { progress in
        let show = { (now: IndexProgress) in progress(now.documents, now.total) }
        if let group {
          _ = try await database.rebuildIndex(ofGroup: group, named: name, progress: show)
        } else {
          let path = try CollectionPath(Self.path(ofPattern: collection))
          _ = try await database.rebuildIndexes(of: path, named: [name], progress: show)
        }
        return TaskOutcome()
      }
    default: throw ConsoleFailure.wrong("there is no task \"\(kind)\"")
    }
  }
}
