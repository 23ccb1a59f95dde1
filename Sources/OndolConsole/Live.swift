// The stream of changes: one for each page, for everything that the page shows. It goes as fast as
// the page reads, and each event has everything since the one before. So a fast writer costs a page
// frames but no memory, and a slow page never delays a commit.

import Foundation
import Ondol
import OndolEngine
import OndolJSON

/// Counts the open streams, to limit them.
final class StreamCount: Sendable {
  static let most = 8
  private let count = Guarded(0)

  var isFull: Bool { count.withLock { $0 >= Self.most } }

  func enter() -> Ending {
    count.withLock { $0 += 1 }
    return Ending { [count] in count.withLock { $0 -= 1 } }
  }
}

/// Makes all streams write something, which reveals the ones that have no reader.
final class Nudges: Sendable {
  private let number = Guarded(0)

  var count: Int { number.withLock { $0 } }

  func add() { number.withLock { $0 += 1 } }
}

extension ConsoleHandler {
  /// Opens a stream.
  func live(_ text: String) async throws -> ConsoleResponse {
    let padded = text.replacing("-", with: "+").replacing("_", with: "/")
    let padding = String(repeating: "=", count: (4 - padded.utf8.count % 4) % 4)
    guard text.utf8.count <= 64 << 10, let data = Data(base64Encoded: padded + padding) else {
      throw ConsoleFailure.wrong("\"watch\" is not base 64")
    }
    guard let list = try JSONReader.read(Array(data), .plain).array, list.count <= 16 else {
      throw ConsoleFailure.wrong("\"watch\" is a list of at most 16")
    }
    var watches: [any LiveWatch] = []
    for element in list {
      guard let members = element.map else { throw ConsoleFailure.wrong("a watch is an object") }
      do {
        watches.append(try watch(members))
      } catch {
        // A watch that is wrong reports that to its reader, and does not affect the others.
        guard let id = members["id"]?.string else { throw error }
        watches.append(WrongWatch(id: id, failure: ConsoleFailure(any: error)))
      }
    }
    guard Set(watches.map(\.id)).count == watches.count else {
      throw ConsoleFailure.wrong("two watches have one id")
    }
    // The server notices that a page is gone when it writes to it.
    for _ in 0..<20 where streams.isFull {
      nudges.add()
      monitor.poke()
      try await Task.sleep(for: .milliseconds(25))
    }
    guard !streams.isFull else {
      var failure = ConsoleFailure(429, "resourceExhausted", "eight pages are watching already")
      failure.retryAfter = 5
      throw failure
    }
    let stream = LiveStream(self, watches, streams.enter())
    return ConsoleResponse(
      200, Self.headers("text/event-stream"), ConsoleBody { try await stream.next() })
  }

  private func watch(_ values: [String: Value]) throws -> any LiveWatch {
    let common = ["id", "kind", "since"]
    let kind = values["kind"]?.string ?? ""
    let known: [String: [String]] = [
      "query": AskedQuery.names, "document": ["path"], "collections": ["below"],
      "tree": ["path", "limit"], "storage": ["prefix"], "feed": ["path"], "indexes": [],
      "statistics": [], "tasks": [],
    ]
    guard let names = known[kind] else {
      throw ConsoleFailure.wrong("there is no watch \"\(kind)\"")
    }
    let members = try Members(values, known: common + names)
    let id = try members.needed("id")
    switch kind {
    case "query": return QueryWatch(id: id, asked: try AskedQuery(members, in: database))
    case "feed":
      let path = try members.text("path").flatMap { $0.isEmpty ? nil : $0 }
      let since = try members.text("since").flatMap { ChangeToken($0) }
      return FeedWatch(id: id, path: path, since: since ?? database.newestToken)
    case "document":
      let reference = database.document(try members.needed("path"))
      return StateWatch(id: id, concern: .document(reference.path)) { _ in
        ["document": .document(try await reference.getDocument())]
      }
    case "collections":
      let below = try members.text("below")
      return StateWatch(id: id, concern: .documents) { try await $0.collections(below: below) }
    case "tree":
      let path = try members.text("path") ?? ""
      let limit = try members.number("limit", in: 1...1_000) ?? 100
      return StateWatch(id: id, concern: .tree) {
        try await $0.tree(path, limit: limit, after: nil)
      }
    case "storage":
      let prefix = try members.text("prefix") ?? ""
      return StateWatch(id: id, concern: .storage) {
        try await $0.storage(prefix, limit: 200, page: nil)
      }
    case "indexes":
      return StateWatch(id: id, concern: .always) {
        .declarations(try await $0.database.declarations())
      }
    case "statistics":
      return StateWatch(id: id, concern: .always) { $0.monitor.samples.last ?? [:] }
    default: return StateWatch(id: id, concern: .always) { $0.tasks.json }
    }
  }
}

/// The parts that commits since the last look may have changed.
struct News: Sendable {
  var commits: [SeenCommit] = []
  /// Whether everything may have changed.
  var isAll = false
}

/// A part of the database that a page shows.
protocol LiveWatch: Sendable {
  var id: String { get }
  /// Whether the watch has not yet reported everything that it knows.
  var isBehind: Bool { get }

  /// Returns the event for the news; nil if there is none.
  mutating func event(after news: News, for handler: ConsoleHandler) async throws -> LiveEvent?
}

/// A watch whose description is wrong.
struct WrongWatch: LiveWatch {
  let id: String
  let failure: ConsoleFailure
  let isBehind = false

  mutating func event(after news: News, for handler: ConsoleHandler) async throws -> LiveEvent? {
    throw failure
  }
}

struct LiveEvent: Sendable {
  var name: String
  var data: JSON
}

/// A state that is sent whole when it changes.
struct StateWatch: LiveWatch {
  enum Concern: Sendable {
    case document(String)
    case documents
    case tree
    case storage
    case always
  }

  let id: String
  let concern: Concern
  let read: @Sendable (ConsoleHandler) async throws -> JSON
  private var told: [UInt8]?
  private var cost = Duration.zero
  private(set) var isDue = true
  private var last = ContinuousClock.now

  init(
    id: String, concern: Concern, _ read: @escaping @Sendable (ConsoleHandler) async throws -> JSON
  ) {
    self.id = id
    self.concern = concern
    self.read = read
  }

  mutating func event(after news: News, for handler: ConsoleHandler) async throws -> LiveEvent? {
    isDue = isDue || isConcerned(news)
    // The longer a read takes, the less often it is repeated, so that watching never becomes most
    // of the work.
    guard isDue, told == nil || ContinuousClock.now - last >= cost * 9 else { return nil }
    isDue = false
    last = .now
    let bytes = try await read(handler).behind(["watch": .text(id)]).bytes
    cost = .now - last
    last = .now
    guard bytes != told else { return nil }
    told = bytes
    return LiveEvent(name: "state", data: .written(bytes))
  }

  var isBehind: Bool { isDue }

  private func isConcerned(_ news: News) -> Bool {
    if news.isAll || news.commits.contains(where: { !$0.isKnown }) { return true }
    switch concern {
    case .always: return true
    case .tree: return news.commits.contains(where: \.changesTree)
    case .storage: return news.commits.contains { $0.touched.storage }
    case .documents: return news.commits.contains { !$0.touched.documents.isEmpty }
    case .document(let path):
      return news.commits.contains { $0.touched.documents.contains { "\($0)" == path } }
    }
  }
}

/// The feed of commits.
struct FeedWatch: LiveWatch {
  /// The largest number of commits in an event. A person cannot read more in the time, and the
  /// earlier ones are only counted.
  private static let told = 50

  let id: String
  let path: String?
  var since: ChangeToken
  private(set) var isBehind = false
  /// The position after the reported commits, once it is known.
  private var position: Int?

  init(id: String, path: String?, since: ChangeToken) {
    self.id = id
    self.path = path
    self.since = since
  }

  mutating func event(after news: News, for handler: ConsoleHandler) async throws -> LiveEvent? {
    if !handler.database.isReadOnly {
      if position == nil, let version = handler.database.version(of: since) {
        position = handler.monitor.position(behind: version)
        if position == nil, !handler.database.keepsChanges {
          // These commits are forgotten, so they are only counted.
          let behind = handler.database.newestPoint.version.rawValue &- version.rawValue
          position = handler.monitor.position - Int(truncatingIfNeeded: behind & 0xffff_ffff)
        }
      }
      if let position { return newest(from: position, handler) }
    }
    let newest = handler.database.newestToken
    guard newest != since else { return nil }
    let (changes, isMore) = try await handler.monitor.changes(
      since: since, atMost: 200, below: path)
    isBehind = isMore
    guard let last = changes.last else { return nil }
    if case .object(let members) = last, case .text(let token)? = members.first?.value,
      let token = ChangeToken(token)
    {
      since = token
    } else {
      since = newest
    }
    return LiveEvent(name: "changes", data: ["watch": .text(id), "changes": .list(changes)])
  }

  /// The newest commits that this process saw.
  private mutating func newest(from place: Int, _ handler: ConsoleHandler) -> LiveEvent? {
    let (commits, passed, end) = handler.monitor.newest(
      from: place, atMost: path == nil ? Self.told : Monitor.remembered)
    position = end
    isBehind = false
    let all = commits.compactMap { handler.monitor.json($0, path) }
    let changes = Array(all.suffix(Self.told))
    // Nothing knows whether the forgotten commits changed anything below the path.
    let skipped = (path == nil ? passed : 0) + all.count - changes.count
    guard !changes.isEmpty || skipped > 0 else { return nil }
    return LiveEvent(
      name: "changes",
      data: [
        "watch": .text(id), "changes": .list(changes),
        "skipped": skipped > 0 ? .number(skipped) : nil,
      ])
  }
}

/// A stream's events, in order.
actor LiveStream {
  /// The shortest time between two looks, and the one for commits that come faster than a person
  /// can read them.
  private static let pace = (quiet: Duration.milliseconds(50), busy: Duration.milliseconds(250))
  /// The number of commits between two looks from which on they count as that fast.
  private static let busy = 10
  /// The number of commits between two looks from which on the stream no longer examines each one's
  /// changes.
  private static let mostNews = 200
  /// The pause of a busy stream, as a multiple of the duration of its look, and at most.
  private static let rest = (factor: 19, most: Duration.seconds(2))
  private static let beat = Duration.seconds(10)

  private let handler: ConsoleHandler
  private var watches: [any LiveWatch]
  private let place: Ending
  private var position: Int
  private var wakeups: AsyncStream<Void>.Iterator
  private var isFirst = true
  /// The newest commit that every watch has processed.
  private var told: ChangeToken?
  private var toldVersion: Version?
  private var versionTime = ContinuousClock.now
  private var last = ContinuousClock.now
  /// The earliest time of the next look.
  private var due = ContinuousClock.now
  private var nudges: Int

  init(_ handler: ConsoleHandler, _ watches: [any LiveWatch], _ place: Ending) {
    self.handler = handler
    self.watches = watches
    self.place = place
    position = handler.monitor.position
    nudges = handler.nudges.count
    wakeups = handler.monitor.wakeups().makeAsyncIterator()
  }

  /// Returns the next events as text; nil when the console is closed.
  func next() async throws -> [UInt8]? {
    while !Task.isCancelled {
      if !isFirst, !watches.contains(where: \.isBehind) {
        var wakeups = wakeups
        guard await wakeups.next(isolation: self) != nil else { return nil }
        self.wakeups = wakeups
      }
      let rest = due - ContinuousClock.now
      if !isFirst, rest > .zero { try await Task.sleep(for: rest) }
      // A watch that has not reported everything does not wait to be woken.
      guard !handler.monitor.isClosed else { return nil }
      let start = ContinuousClock.now
      let (events, count) = await events()
      if count > Self.busy {
        due = .now + max(Self.pace.busy, min(Self.rest.most, (.now - start) * Self.rest.factor))
      } else if count > 0 || !events.isEmpty || watches.contains(where: \.isBehind) {
        due = .now + Self.pace.quiet
      }
      var text = events
      if text.isEmpty, nudges != handler.nudges.count || .now - last >= Self.beat {
        text = Array(": beat\n\n".utf8)
      }
      nudges = handler.nudges.count
      guard !text.isEmpty else { continue }
      last = .now
      return text
    }
    return nil
  }

  /// Returns the news as text, and the number of commits.
  private func events() async -> ([UInt8], Int) {
    var news = News(isAll: isFirst)
    let look = handler.monitor.look(from: position, atMost: Self.mostNews)
    let count = look.end - position
    position = look.end
    news.commits = look.commits ?? []
    news.isAll = news.isAll || look.commits == nil
    let token = look.last?.token(in: handler.database)
    var events: [LiveEvent] = []
    let point = handler.database.newestPoint
    if toldVersion != point.version, isFirst || .now - versionTime >= .milliseconds(250) {
      toldVersion = point.version
      versionTime = .now
      events.append(
        LiveEvent(
          name: "version",
          data: ["version": .digits(point.version.rawValue), "time": .time(point.time)]))
    }
    isFirst = false
    var index = 0
    while index < watches.count {
      var watch = watches[index]
      do {
        if let event = try await watch.event(after: news, for: handler) { events.append(event) }
        watches[index] = watch
        index += 1
      } catch {
        let failure = ConsoleFailure(any: error)
        events.append(
          LiveEvent(name: "problem", data: ["watch": .text(watch.id), "error": failure.json]))
        watches.remove(at: index)
      }
    }
    // The token belongs to a commit that every watch has processed, and to a writer's own commit. A
    // step from another process has no time of its own.
    if let token, !handler.database.isReadOnly { told = token }
    let isBehind = watches.contains(where: \.isBehind)
    var bytes: [UInt8] = []
    for (index, event) in events.enumerated() {
      bytes += "event: \(event.name)\n".utf8
      if let told, index == events.count - 1, !isBehind { bytes += "id: \(told)\n".utf8 }
      bytes += "data: ".utf8
      bytes += event.data.bytes
      bytes += "\n\n".utf8
    }
    return (bytes, count)
  }
}
