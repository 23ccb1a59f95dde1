// Lost answers and dying servers: an acknowledged commit exists once, and a commit that was
// reported as not committed does not exist.

import OndolEngine
import OndolPostgres
import OndolPostgresTestKit
import Synchronization
import Testing

/// A writer of rows that no other writer writes, as the engine is one. After a lost answer it asks
/// for the outcome until it knows it, and continues under another origin.
private struct Writer {
  let store: any RemoteStore
  let name: UInt8
  var known: CommitPoint
  var part: Int64 = 0
  var origin: Int64
  /// The rows that are committed, with their commits, and those that are not.
  var done: [[UInt8]: CommitPoint] = [:]
  var refused: [[UInt8]] = []

  init(_ store: any RemoteStore, _ name: UInt8) async throws {
    self.store = store
    self.name = name
    origin = Int64(name) << 32
    known = try await store.open(Int64(name)).point
  }

  private func key(_ number: Int64) -> [UInt8] {
    [0, 0, 16, 0, name, UInt8(number >> 8 & 255), UInt8(number & 255)]
  }

  /// Commits two rows. Returns whether the answer was lost.
  mutating func write() async throws -> Bool {
    part += 1
    let keys = [key(2 * part), key(2 * part + 1)]
    var group = RemoteGroup(origin: origin, part: part, known: known)
    group.commits = keys.map { [RemoteWrite(key: $0, value: [name])] }
    group.guardedKeys = keys
    var first: CommitPoint?
    var isLost = false
    do {
      switch try await store.append(group) {
      case .done(let point): first = point
      case .conflict: Issue.record("writer \(name): a row that nobody else writes has changed")
      case .otherHistory: Issue.record("writer \(name): a durable commit is not there")
      }
    } catch {
      guard case .unreachable = error else { throw error }
      origin += 1
      first = try await outcome(of: group)
      isLost = true
    }
    guard let first else {
      refused += keys
      return isLost
    }
    done[keys[0]] = first
    let second = CommitPoint(sequence: first.sequence.next, time: first.time + 1)
    done[keys[1]] = second
    known = second
    return isLost
  }

  private func outcome(of group: RemoteGroup) async throws -> CommitPoint? {
    while true {
      do {
        return try await store.outcome(of: group.part, from: group.origin)
      } catch {
        guard case .unreachable = error else { throw error }
      }
    }
  }

  /// Checks that the store has what the writer knows.
  func check(_ commits: [RemoteCommit]) {
    var found: [[UInt8]: [CommitPoint]] = [:]
    for commit in commits {
      for row in commit.rows where row.key[4] == name {
        found[row.key, default: []].append(commit.point)
      }
    }
    #expect(found == done.mapValues { [$0] }, "writer \(name)")
    #expect(refused.allSatisfy { found[$0] == nil }, "writer \(name)")
  }
}

/// Returns all commits of a store, in steps.
private func allCommits(_ store: any RemoteStore) async throws -> [RemoteCommit] {
  var commits: [RemoteCommit] = []
  var known = StoreModel.start
  while case let news = try await store.commits(behind: known, atMost: 100).commits,
    let last = news.last
  {
    commits += news
    known = last.point
  }
  for (commit, number) in zip(commits, 1...) {
    #expect(commit.point.sequence.rawValue == UInt64(number))
  }
  #expect(zip(commits, commits.dropFirst()).allSatisfy { $0.point.time < $1.point.time })
  return commits
}

/// Shared state of several tasks.
private final class Events: Sendable {
  /// Whether the writers must end.
  let isOver = Atomic(false)
  /// The number of answers that the writers have lost so far.
  let losses = Atomic(0)
}

/// Runs several writers until `body` has ended, and returns them.
private func writing(
  _ count: Int, to session: @escaping @Sendable () throws -> any RemoteStore,
  while body: (Events) async throws -> Void
) async throws -> [Writer] {
  let events = Events()
  return try await withThrowingTaskGroup(of: Writer.self) { tasks in
    defer { events.isOver.store(true, ordering: .relaxed) }
    for number in 1...count {
      let writer = try await Writer(try session(), UInt8(number))
      tasks.addTask {
        var writer = writer
        // Numbers of rows have two bytes.
        while !events.isOver.load(ordering: .relaxed), writer.part < 30_000 {
          if try await writer.write() { events.losses.add(1, ordering: .relaxed) }
        }
        return writer
      }
    }
    try await body(events)
    events.isOver.store(true, ordering: .relaxed)
    return try await tasks.reduce(into: []) { $0.append($1) }
  }
}

@Suite struct `Answers that are lost` {
  /// Closes all connections that commit something.
  private static func cut(_ session: PostgresSession) throws {
    try session.run(
      """
      select count(pg_terminate_backend(pid)) from pg_stat_activity
        where application_name = 'ondol' and datname = current_database() and state = 'active'
          and (query like '%ondol_commit_2%' or query like '%pg_logical_emit_message%')
      """)
  }

  @Test func `Nothing is lost and nothing comes twice when connections are cut`() async throws {
    let server = try PostgresServer.shared.get()
    try server.sql("create database cuts")
    let name = newName()
    let session: @Sendable () throws -> any RemoteStore = { try server.store(name, in: "cuts") }
    let writers = try await writing(3, to: session) { events in
      let admin = try PostgresSession(server, "cuts")
      // Until enough has been tried. The session blocks its thread, and there may be only two:
      // without yielding it would keep the writers from theirs, as another test did beside it.
      while events.losses.load(ordering: .relaxed) < 60 {
        try Self.cut(admin)
        await Task.yield()
      }
      admin.close()
    }
    let reader = try session()
    _ = try await reader.open(9)
    let commits = try await allCommits(reader)
    for writer in writers { writer.check(commits) }
    await reader.close(9)
    for writer in writers { await writer.store.close(Int64(writer.name)) }
  }

  @Test(arguments: [false, true])
  func `A group that stands in line when its connection is cut is not committed`(
    _ isSilent: Bool
  ) async throws {
    let server = try PostgresServer.shared.get()
    let database = isSilent ? "silence" : "line"
    try server.sql("create database \(database)")
    // The client gives up a silent server, but its statement still stands in line there.
    let store = try server.store(
      newName(), in: database, answerTime: isSilent ? .milliseconds(300) : .seconds(60),
      patience: .seconds(60))
    let known = try await store.open(1).point
    let admin = try PostgresSession(server, database)
    try admin.run("select pg_advisory_lock(7701, 1)")
    var group = RemoteGroup(origin: 1, part: 1, known: known)
    group.commits = [[RemoteWrite(key: [0, 0, 16, 0, 1], value: [1])]]
    let sent = group
    async let appended = store.append(sent)
    if !isSilent {
      let other = try PostgresSession(server, database)
      while try other.run(
        """
        select count(pg_terminate_backend(pid)) from pg_stat_activity
          where wait_event = 'advisory' and application_name = 'ondol'
            and datname = current_database()
        """) == "0"
      { await Task.yield() }
      other.close()
    }
    do {
      _ = try await appended
      Issue.record("an answer has come")
    } catch {
      guard case .unreachable = error as? EngineError else { throw error }
    }
    // The fence also stands in line, after the group if that still does.
    async let told = store.outcome(of: 1, from: 1)
    try admin.run("select pg_advisory_unlock(7701, 1)")
    let outcome = try await told
    let commits = try await allCommits(store)
    #expect(commits.map(\.point) == (outcome.map { [$0] } ?? []))
    if !isSilent { #expect(outcome == nil) }
    #expect(try await store.append(group) == .otherHistory)
    group.origin = 2
    group.known = commits.last?.point ?? known
    guard case .done = try await store.append(group) else {
      Issue.record("it does not go on")
      return
    }
    admin.close()
    await store.close(1)
  }
}

@Suite struct `A server that dies` {
  @Test func `Nothing that was acknowledged is lost, and nothing comes twice`() async throws {
    let server = try PostgresServer()
    let session: @Sendable () throws -> any RemoteStore = { try server.store("load") }
    let writers = try await writing(3, to: session) { events in
      let reader = try session()
      var known = try await reader.open(8).point
      var deaths = 0
      // Until enough has been tried.
      while deaths < 4 || events.losses.load(ordering: .relaxed) < 4 {
        deaths += 1
        // Some commits in between. A client that knows of one must never hear that it does not
        // exist.
        for _ in 0..<5 {
          _ = try await reader.waitForCommits(behind: known, atMost: 600_000_000)
          known = try await reader.commits(behind: known, atMost: 100).commits.last?.point ?? known
        }
        try server.kill()
        try server.start()
      }
      _ = try await reader.commits(behind: known, atMost: 100)
      await reader.close(8)
    }
    let reader = try session()
    _ = try await reader.open(9)
    let commits = try await allCommits(reader)
    for writer in writers { writer.check(commits) }
    await reader.close(9)
    for writer in writers { await writer.store.close(Int64(writer.name)) }
  }

  /// The standby has every acknowledged commit, and may have some of the others. Connections find
  /// out by themselves which of the two servers accepts writes.
  @Test func `A synchronous standby that takes over has all that was acknowledged`() async throws {
    let server = try PostgresServer()
    try server.addStandby()
    let session: @Sendable () throws -> any RemoteStore = { try server.store("load") }
    let writers = try await writing(3, to: session) { events in
      let reader = try session()
      var known = try await reader.open(8).point
      func hear(_ count: Int) async throws {
        for _ in 0..<count {
          _ = try await reader.waitForCommits(behind: known, atMost: 600_000_000)
          known = try await reader.commits(behind: known, atMost: 100).commits.last?.point ?? known
        }
      }
      try await hear(20)
      try server.promoteStandby()
      // The known commits still exist; otherwise this would throw.
      try await hear(20)
      await reader.close(8)
    }
    let reader = try session()
    _ = try await reader.open(9)
    let commits = try await allCommits(reader)
    for writer in writers { writer.check(commits) }
    await reader.close(9)
    for writer in writers { await writer.store.close(Int64(writer.name)) }
  }

  @Test func `Unsynced commits exist, or are reported as another history`() async throws {
    let server = try PostgresServer(settings: "wal_writer_delay = 10s")
    let store = try server.store("weak")
    let start = try await store.open(1).point
    var group = RemoteGroup(origin: 1, part: 1, known: start)
    group.commits = [[RemoteWrite(key: [0, 0, 16, 0, 1], value: [1])]]
    guard case .done(let strong) = try await store.append(group) else {
      Issue.record("refused")
      return
    }
    (group.known, group.part, group.isDurable) = (strong, 2, false)
    guard case .done(let weak) = try await store.append(group) else {
      Issue.record("refused")
      return
    }
    try server.kill()
    try server.start()
    let other = try server.store("weak")
    let head = try await other.open(2).point
    #expect(head == strong || head == weak)
    #expect(try store.rows(at: [[0, 0, 16, 0, 1]], asOf: strong).count == 1)
    (group.known, group.part) = (weak, 3)
    if head == weak {
      guard case .done = try await store.append(group) else {
        Issue.record("a commit that is there is said not to be")
        return
      }
    } else {
      #expect(try await store.append(group) == .otherHistory)
      #expect {
        try store.rows(at: [[0, 0, 16, 0, 1]], asOf: weak)
      } throws: { error in
        if case .outOfStep = error as? EngineError { true } else { false }
      }
    }
    await store.close(1)
    await other.close(2)
  }

  @Test func `A missing server is reported`() async throws {
    let server = try PostgresServer()
    let store = try server.store("gone", patience: .milliseconds(50))
    let point = try await store.open(1).point
    try server.kill()
    var commits = RemoteGroup(origin: 1, part: 1, known: point)
    commits.commits = [[RemoteWrite(key: [0, 0, 16, 0, 1], value: [1])]]
    let group = commits
    #expect(await isUnreachable { _ = try await store.append(group) })
    #expect(await isUnreachable { _ = try await store.outcome(of: 1, from: 1) })
    #expect(await isUnreachable { _ = try await store.commits(behind: point, atMost: 1) })
    #expect(await isUnreachable { _ = try store.rows(at: [[1]], asOf: point) })
    #expect(await isUnreachable { _ = try await store.forget() })
    #expect(try await store.waitForCommits(behind: StoreModel.start, atMost: 1000) == .zero)
    try server.start()
    #expect(try store.rows(at: [[1]], asOf: point) == [])
    #expect(try await store.outcome(of: 1, from: 1) == nil)
    await store.close(1)
  }

  /// Whether a call ends with `.unreachable`.
  private func isUnreachable(_ call: () async throws -> Void) async -> Bool {
    do {
      try await call()
      return false
    } catch {
      if case .unreachable = error as? EngineError { return true }
      return false
    }
  }
}
