// Rows that a caller waits for on its thread: which requests work so, and what happens to a late
// answer.

import OndolEngine
import OndolPostgres
import OndolPostgresTestKit
import Testing

@Suite struct `Rows at once` {
  private let server: PostgresServer
  private let place = newName()

  init() throws { server = try PostgresServer.shared.get() }

  private static let connections = """
    select string_agg(pid::text, ' ' order by pid) from pg_stat_activity
      where datname = current_database()
    """

  private static func key(_ number: UInt8) -> [UInt8] { [0, 0, 16, 0, number] }

  private func open(_ promptness: Duration) async throws -> (PostgresStore, StoreModel) {
    try server.sql("create database \(place)")
    let store = try PostgresStore(server.address("one", in: place), promptness: promptness)
    var model = StoreModel()
    var group = RemoteGroup(origin: 1, part: 1, known: try await store.open(1).point)
    group.commits = (0..<2).map { commit in
      (0..<8).map { RemoteWrite(key: Self.key($0), value: [commit, $0]) }
    }
    guard case .done(let first) = try await store.append(group) else {
      throw EngineError.invalid(reason: "a first group is refused")
    }
    model.add(group, from: first)
    return (store, model)
  }

  private func row(_ number: UInt8, _ model: StoreModel, asOf point: CommitPoint) -> [RemoteRow] {
    model.rows(asOf: point).filter { $0.key == Self.key(number) }
  }

  @Test func `Are told once it is known how long that takes`() async throws {
    let (store, model) = try await open(.seconds(60))
    #expect(try store.rowsAtOnce(at: [Self.key(0)], asOf: model.head) == nil)
    // The first call prepares the statement, the second is measured.
    for number in 0..<2 as Range<UInt8> {
      #expect(
        try store.rows(at: [Self.key(number)], asOf: model.head)
          == row(number, model, asOf: model.head))
    }
    for number in 0..<9 as Range<UInt8> {
      #expect(
        try store.rowsAtOnce(at: [Self.key(number)], asOf: model.head)
          == row(number, model, asOf: model.head))
    }
    #expect(try store.rowsAtOnce(at: [Self.key(0), Self.key(1)], asOf: model.head) == nil)
    let long = [UInt8](repeating: 7, count: 3000)
    #expect(try store.rowsAtOnce(at: [long], asOf: model.head) == nil)
    // Whether versions in the middle of a group are forgotten is recorded elsewhere, so these rows
    // are not answered at once.
    let inner = try #require(model.commits.first).point
    #expect(try store.rowsAtOnce(at: [Self.key(3)], asOf: inner) == nil)
    #expect(try store.rows(at: [Self.key(3)], asOf: inner) == row(3, model, asOf: inner))
    await store.close(1)
    #expect(throws: EngineError.closed) {
      try store.rowsAtOnce(at: [Self.key(0)], asOf: model.head)
    }
  }

  @Test(arguments: [false, true])
  func `Are not taken from an answer that was late`(_ thenBlocks: Bool) async throws {
    let (store, model) = try await open(.milliseconds(500))
    for number in 0..<2 as Range<UInt8> {
      _ = try store.rows(at: [Self.key(number)], asOf: model.head)
    }
    let other = try PostgresSession(server, place)
    let connections = try other.run(Self.connections)
    _ = try other.run("begin; lock table ondol_row in access exclusive mode")
    #expect(try store.rowsAtOnce(at: [Self.key(0)], asOf: model.head) == nil)
    // The other seven calls get nothing either, until it is the late one's turn again.
    for _ in 0..<7 {
      #expect(try store.rowsAtOnce(at: [Self.key(1)], asOf: model.head) == nil)
    }
    _ = try other.run("commit")
    if thenBlocks {
      #expect(
        try store.rows(at: [Self.key(2)], asOf: model.head) == row(2, model, asOf: model.head))
    }
    var answered = 0
    while answered < 4 {
      let number = UInt8(answered + 3)
      guard let rows = try store.rowsAtOnce(at: [Self.key(number)], asOf: model.head) else {
        continue
      }
      #expect(rows == row(number, model, asOf: model.head))
      answered += 1
    }
    // It has cost no connection.
    #expect(try other.run(Self.connections) == connections)
    other.close()
    await store.close(1)
  }
}
