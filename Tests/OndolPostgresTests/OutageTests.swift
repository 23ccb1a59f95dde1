// Short outages of a real server, one of each kind. `ondol-stress away` has long ones, for as long
// as wanted.

import Ondol
import OndolEngine
import OndolPostgres
import OndolPostgresTestKit
import OndolTestKit
import Testing

@Suite struct `A server that is away` {
  /// A listener was silent for a minute when a slow line kept the answer of a commit or of news:
  /// its process asked for nothing else meanwhile.
  @Test(arguments: FaultyProxy.Mode.outages, Seeds.first(1))
  func `Leaves listeners honest, calls short and outcomes known`(
    _ mode: FaultyProxy.Mode, seed: UInt64
  ) async throws {
    _ = try await AwayTrial(seed: seed, mode, .short).run()
  }
}

@Suite struct `A process whose line is silent` {
  private let server: PostgresServer
  private let place: String

  init() throws {
    server = try PostgresServer.shared.get()
    place = newName()
    try server.sql("create database \(place)")
  }

  private func open(_ directory: String) async throws -> Database {
    var options = Database.Options()
    options.serverTimeout = .seconds(30)
    let address = "postgresql:///\(place)?host=\(directory)&user=postgres&ondol=one"
    return try await Database.open(on: .postgres(address), options: options)
  }

  /// The server had run the statement of a commit, and held the lock on the commit order until the
  /// message arrived that ends its transaction.
  @Test func `Does not hold up the commits of others in the middle of its own`() async throws {
    let proxy = try FaultyProxy(to: server.directory)
    defer { proxy.stop() }
    let (near, far) = (try await open(server.directory), try await open(proxy.directory))
    try await near.document("near/0").setData(["n": 0])
    try await far.refresh()
    // The statement is prepared, and nothing that it is guarded by changes any more.
    for number in 0..<3 { _ = try await far.document("far/\(number)").setData(["n": number]) }
    proxy.mode = .unended
    let held = Task { _ = try await far.document("far/held").setData(["n": 3]) }
    var number = 0
    while try await !near.document("far/held").getDocument().exists {
      number += 1
      try await near.document("near/\(number)").setData(["n": number])
      try await near.refresh()
    }
    proxy.mode = .pass
    try await held.value
    try await far.refresh()
    #expect(try await far.document("near/\(number)").getDocument().exists)
    try await near.close()
    try await far.close()
  }

  /// The answer with other processes' commits was sent with a lock held that each commit takes, so
  /// that a process that did not read it to its end stopped all others.
  @Test func `Does not hold up the commits of others while it reads news`() async throws {
    let proxy = try FaultyProxy(to: server.directory)
    defer { proxy.stop() }
    func store(_ directory: String) throws -> PostgresStore {
      try PostgresStore(
        "postgresql:///\(place)?host=\(directory)&user=postgres&ondol=one",
        answerTime: .seconds(30))
    }
    let (near, far) = (try store(server.directory), try store(proxy.directory))
    let start = try await near.open(1).point
    _ = try await far.open(2)
    func commit(_ bytes: Int, behind known: CommitPoint, isDurable: Bool) async throws
      -> CommitPoint
    {
      var group = RemoteGroup(
        origin: 1, part: Int64(known.sequence.rawValue), known: known)
      let value = (0..<bytes).map { _ in UInt8.random(in: .min ... .max) }
      group.commits = [[RemoteWrite(key: [0, 0, 16, 0, 1], value: value)]]
      group.isDurable = isDurable
      guard case .done(let point) = try await near.append(group) else {
        throw ServerFailure(description: "refused")
      }
      return point
    }
    // Its first reader makes it durable. It is larger than what the line between the two holds.
    let large = try await commit(4 << 20, behind: start, isDurable: false)
    proxy.mode = .choked
    let news = Task { try await far.commits(behind: start, atMost: 9) }
    let writing = """
      select count(*) from pg_stat_activity where datname = '\(place)'
        and query like '%ondol_news_%' and wait_event = 'ClientWrite'
      """
    while try server.sql(writing) != "1" { await Task.yield() }
    let small = try await commit(1, behind: large, isDurable: true)
    proxy.mode = .pass
    #expect(try await news.value.commits.map(\.point) == [large])
    #expect(try await far.commits(behind: large, atMost: 9).commits.map(\.point) == [small])
    await near.close(1)
    await far.close(2)
  }
}
