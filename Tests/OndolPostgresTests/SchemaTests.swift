// How a database is found on a server: it is created once, however many clients begin at the same
// time, distinguished from others in the same tables, and refused if it is another one or unknown
// to this version.

import Ondol
import OndolEngine
import OndolPostgres
import OndolPostgresTestKit
import Testing

@Suite struct `The tables on a server` {
  private let server: PostgresServer

  init() throws {
    server = try PostgresServer.shared.get()
  }

  /// Returns a PostgreSQL database without Ondol's tables.
  private func newPlace() throws -> String {
    let name = newName()
    try server.sql("create database \(name)")
    return name
  }

  @Test func `Concurrent opens create one database for each name`() async throws {
    let place = try newPlace()
    let heads = try await withThrowingTaskGroup(of: (Int, RemoteHead).self) { tasks in
      for number in 0..<12 {
        let store = try server.store("name \(number % 3)", in: place)
        tasks.addTask {
          let head = try await store.open(Int64(number) + 1)
          await store.close(Int64(number) + 1)
          return (number % 3, head)
        }
      }
      return try await tasks.reduce(into: [(Int, RemoteHead)]()) { $0.append($1) }
    }
    let identities = Dictionary(grouping: heads) { $0.0 }.mapValues { Set($0.map(\.1.identity)) }
    #expect(identities.count == 3)
    #expect(identities.values.allSatisfy { $0.count == 1 })
    #expect(Set(identities.values.flatMap { $0 }).count == 3)
    #expect(heads.allSatisfy { $0.1.point == StoreModel.start })
    #expect(try server.sql("select count(*) from ondol_database", in: place) == "3")
    // A closed store prevents no forgetting.
    #expect(try server.sql("select count(*) from ondol_pin where process <> 0", in: place) == "0")
  }

  /// Each client that found no tables once ran the script, even after the first had created them.
  /// It held the lock that the first one's new database waited for, and waited for the first one's
  /// tables.
  @Test func `Opens do not block each other`() async throws {
    let place = try newPlace()
    let session = try PostgresSession(server, place)
    defer { session.close() }
    try session.run("select pg_advisory_lock(7700, 0)")
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      for process in Int64(1)...8 {
        let store = try server.store("name \(process)", in: place)
        tasks.addTask {
          _ = try await store.open(process)
          await store.close(process)
        }
      }
      let waiting =
        "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        + " and database = (select oid from pg_database where datname = '\(place)')"
      while try session.run(waiting) != "8" { await Task.yield() }
      try session.run("select pg_advisory_unlock(7700, 0)")
      try await tasks.waitForAll()
    }
    // Clients in a deadlock would have tried again.
    let deadlocks = "select deadlocks from pg_stat_database where datname = '\(place)'"
    #expect(try server.sql(deadlocks) == "0")
  }

  /// Sixteen processes that heard of a commit once flushed it sixteen times.
  @Test func `News are flushed once, and not at all when they are durable`() async throws {
    let place = try newPlace()
    let stores = try (0..<3).map { _ in try server.store("one", in: place) }
    let start = try await stores[0].open(1).point
    for (number, store) in stores.enumerated().dropFirst() {
      _ = try await store.open(Int64(number) + 1)
    }
    // The transaction that last recorded the durable commit, and that commit.
    let said = { try self.server.sql("select durable, xmin from ondol_database", in: place) }
    func commit(_ part: Int64, behind known: CommitPoint, isDurable: Bool) async throws
      -> CommitPoint
    {
      var group = RemoteGroup(origin: 1, part: part, known: known)
      group.commits = [[RemoteWrite(key: [0, 0, 16, 0, 1], value: [1])]]
      group.isDurable = isDurable
      guard case .done(let point) = try await stores[0].append(group) else {
        throw ServerFailure(description: "refused")
      }
      return point
    }
    let first = try await commit(1, behind: start, isDurable: true)
    var before = try said()
    #expect(before.hasPrefix("1|"))
    for store in stores {
      #expect(try await store.commits(behind: start, atMost: 9).commits.count == 1)
    }
    #expect(try said() == before)
    _ = try await commit(2, behind: first, isDurable: false)
    #expect(try said() == before)
    for (number, store) in stores.enumerated() {
      #expect(try await store.commits(behind: start, atMost: 9).commits.count == 2)
      if number == 0 { before = try said() }
      #expect(try said() == before && before.hasPrefix("2|"))
    }
    for (number, store) in stores.enumerated() { await store.close(Int64(number) + 1) }
  }

  /// A server plans a statement when a session runs it for the first time. In a new database it
  /// believed that there were hardly any rows, and compared each of them with each key: 256 commits
  /// among 20,000 took a second, and a process that was once behind never caught up.
  @Test func `News planned on empty tables look up each row by its whole key`() async throws {
    let place = try newPlace()
    let store = try server.store("one", in: place)
    var known = try await store.open(1).point
    let session = try PostgresSession(server, place)
    defer { session.close() }
    for setting in [
      "plan_cache_mode = force_generic_plan", "enable_seqscan = off", "enable_bitmapscan = off",
      "enable_hashjoin = off", "enable_mergejoin = off",
    ] {
      try session.run("set \(setting)")
    }
    let news = "select count(*) from ondol_news_3(1, 0, 0, 256, 16777216)"
    #expect(try session.run(news) == "0")
    for part in 1...20 as ClosedRange<Int64> {
      var group = RemoteGroup(origin: 1, part: part, known: known)
      // One row that each commit writes, and one of its own.
      group.commits = (0..<100 as Range<UInt8>).map { number in
        [
          RemoteWrite(key: [0, 0, 16, 0], value: [number]),
          RemoteWrite(key: [0, 0, 16, 1, UInt8(part), number], value: [1]),
        ]
      }
      guard case .done(let first) = try await store.append(group) else {
        throw ServerFailure(description: "refused")
      }
      known = CommitPoint(
        sequence: SequenceNumber(rawValue: first.sequence.rawValue + 99), time: first.time + 99)
    }
    try session.run("begin")
    #expect(try session.run(news) == "600")
    let count = "select pg_stat_get_xact_tuples_returned('ondol_row_key'::regclass)"
    #expect(try session.run(count) == "600")
    try session.run("commit")
    await store.close(1)
  }

  @Test func `Dead rows are removed before they are a fifth of a table`() async throws {
    let place = try newPlace()
    let store = try server.store("one", in: place)
    _ = try await store.open(1)
    await store.close(1)
    let lacking = """
      select count(*) from unnest(array['ondol_row', 'ondol_long', 'ondol_log', 'ondol_history',
          'ondol_part', 'ondol_pin', 'ondol_database']) t
        where not exists (select from pg_class c, unnest(c.reloptions) o where c.relname = t
          and o like 'autovacuum_vacuum_scale_factor=%' and split_part(o, '=', 2)::float < 0.1)
      """
    #expect(try server.sql(lacking, in: place) == "0")
  }

  @Test func `Databases of a process share the connections for reading`() async throws {
    let place = try newPlace()
    let connections = "select count(*) from pg_stat_activity where application_name = 'ondol'"
    let ours = "\(connections) and datname = current_database()"
    var stores: [PostgresStore] = []
    for number in 0..<6 {
      let store = try server.store("name \(number)", in: place)
      let point = try await store.open(1).point
      #expect(try store.rows(at: [[0, 0, 16, 0, 1]], asOf: point) == [])
      _ = try await store.waitForCommits(behind: point, atMost: 1_000)
      stores.append(store)
    }
    // Two of each, and one that reads.
    let count = try #require(Int(try server.sql(ours, in: place)))
    #expect(count <= 2 * 6 + 1)
    await stores.removeLast().close(1)
    let first = try #require(stores.first)
    #expect(try await first.processes(pinnedFor: 1) == [1])
    for store in stores { await store.close(1) }
  }

  @Test func `Databases in the same tables have nothing in common`() async throws {
    let place = try newPlace()
    let stores = [try server.store("one", in: place), try server.store("두 번째", in: place)]
    let key: [UInt8] = [0, 0, 16, 0, 1]
    for (number, store) in stores.enumerated() {
      let known = try await store.open(1).point
      #expect(known == StoreModel.start)
      var group = RemoteGroup(origin: 1, part: 1, known: known)
      group.guardedRanges = [([], [])]
      group.commits = [[RemoteWrite(key: key, value: [UInt8(number)])]]
      guard case .done(let first) = try await store.append(group) else {
        Issue.record("refused")
        return
      }
      #expect(try store.rows(at: [key], asOf: first).first?.value.last == UInt8(number))
      #expect(try await store.commits(behind: known, atMost: 9).commits.count == 1)
      try await store.drop([4096])
    }
    for store in stores { await store.close(1) }
  }

  @Test func `Tables of a later version are refused by name`() async throws {
    let place = try newPlace()
    let store = try server.store("one", in: place)
    _ = try await store.open(1)
    await store.close(1)
    try server.sql("update ondol_schema set version = 2", in: place)
    let later = try server.store("one", in: place)
    await #expect {
      try await later.open(1)
    } throws: { error in
      guard case .needsNewerVersion(later.name, let reason)? = error as? EngineError else {
        return false
      }
      return reason.contains("version 2")
    }
    await later.close(1)
  }

  @Test(arguments: ["delete from ondol_schema", "update ondol_schema set version = 0"])
  func `Tables that do not say their version are not ours`(_ change: String) async throws {
    let place = try newPlace()
    let store = try server.store("one", in: place)
    _ = try await store.open(1)
    await store.close(1)
    try server.sql(change, in: place)
    let other = try server.store("one", in: place)
    await #expect {
      try await other.open(1)
    } throws: { error in
      if case .notADatabase = error as? EngineError { true } else { false }
    }
    await other.close(1)
  }

  @Test func `A database that replaces an open one is detected`() async throws {
    let place = try newPlace()
    let store = try server.store("one", in: place)
    let known = try await store.open(1).point
    let tables = [
      "database", "log", "row", "long", "pin", "fence", "drop", "part", "history", "schema",
    ]
    try server.sql("drop table \(tables.map { "ondol_\($0)" }.joined(separator: ", "))", in: place)
    let other = try server.store("one", in: place)
    _ = try await other.open(2)
    // A commit is tried once: over a connection that is about to end it would be unreachable. So
    // this waits for the ends, for at most a minute.
    try server.sql(
      """
      select count(pg_terminate_backend(pid, 60000)) from pg_stat_activity
        where application_name = 'ondol' and datname = current_database()
      """, in: place)
    let isOutOfStep = { (error: any Error) in
      if case .outOfStep = error as? EngineError { true } else { false }
    }
    #expect(performing: { try store.rows(at: [[1]], asOf: known) }, throws: isOutOfStep)
    var group = RemoteGroup(origin: 1, part: 1, known: known)
    group.commits = [[RemoteWrite(key: [0, 0, 16, 0, 1], value: [1])]]
    let sent = group
    // The other database has a first commit with the same number and time. Its identity
    // distinguishes them.
    await #expect(
      performing: { _ = try await store.append(sent) }, throws: isOutOfStep)
    await store.close(1)
    await other.close(2)
  }
}

@Suite struct `What a role may do on a server` {
  private let server: PostgresServer
  private let place = newName()
  private let role = newName()

  init() throws {
    server = try PostgresServer.shared.get()
    try server.sql("create database \(place)")
    try server.sql("create role \(role) login", in: place)
    // As it is from version 15 on.
    try server.sql("revoke create on schema public from public", in: place)
  }

  /// The address of the database for the role.
  private var address: String { "postgresql:///\(place)?host=\(server.directory)&user=\(role)" }

  private func write() async throws {
    let database = try await Database.open(on: .postgres(address))
    try await database.document("items/lamp").setData(["price": 30])
    try await database.close()
  }

  private func expectDenied(_ words: String) async {
    let error = await #expect(throws: DatabaseError.self) { try await write() }
    #expect(error?.code == .permissionDenied)
    #expect(error?.message.contains(words) == true, "\(String(describing: error))")
  }

  @Test func `It learns which permission it lacks, and needs none to create tables`() async throws {
    await expectDenied("CREATE on schema public")
    let owner = try PostgresAdministration(server.address("any", in: place))
    await #expect(throws: EngineError.missing(path: owner.name)) { try await owner.upgrade() }
    #expect(try await owner.prepare())
    #expect(try await !owner.prepare())
    await expectDenied("INSERT, SELECT, UPDATE on ondol_row")
    #expect(try await !owner.prepare(for: role))
    try await write()
    // A later version grants its new objects to the roles that could use the earlier ones.
    try server.sql("drop procedure ondol_hold_3", in: place)
    await expectDenied("ondol server upgrade")
    #expect(try await owner.upgrade())
    try await write()
    try server.sql("revoke insert on ondol_row from \(role)", in: place)
    await expectDenied("INSERT on ondol_row")
  }

  @Test func `Its owner lists databases, and removes those that are not open`() async throws {
    let owner = try PostgresAdministration(server.address("one", in: place))
    await #expect(throws: EngineError.missing(path: owner.name)) { try await owner.list() }
    let database = try await Database.open(on: .postgres(server.address("one", in: place)))
    let written = try await database.document("items/lamp").setData(["price": 30])
    // A load that has died: its mark and its pin exist, and nobody holds its lock.
    let fill = try server.store("two", in: place)
    _ = try await fill.beginFill(7)
    try server.sql(
      "select pg_terminate_backend(pid, 60000) from pg_locks where locktype = 'advisory'"
        + " and classid = 7703 and database = (select oid from pg_database"
        + " where datname = current_database())", in: place)
    let all = try await owner.list()
    #expect(all.map(\.name) == ["one", "two"] && all.map(\.isUnfinished) == [false, true])
    #expect(all.map(\.processes) == [1, 1])
    #expect(all.first?.version ?? 0 >= written.version.rawValue && all.last?.time == nil)
    await #expect(throws: EngineError.self) { try await owner.remove() }
    try await PostgresAdministration(server.address("two", in: place)).remove()
    try await database.close()
    try await owner.remove()
    #expect(try await owner.list() == [])
    await #expect(throws: EngineError.missing(path: owner.name)) { try await owner.remove() }
    await fill.close(7)
  }

  @Test func `A role with a name that needs quotes is a name`() async throws {
    let owner = try PostgresAdministration(server.address("any", in: place))
    let name = "\(role) \"%I; drop"
    try server.sql("create role \"\(name.replacing("\"", with: "\"\""))\"")
    _ = try await owner.prepare(for: name)
    let rights = "select has_table_privilege(oid, 'ondol_row', 'INSERT') from pg_roles"
    #expect(try server.sql("\(rights) where rolname like '\(role) %'", in: place) == "t")
    await #expect(throws: EngineError.self) { try await owner.prepare(for: "nobody of this name") }
  }
}

@Suite struct `The address of a server` {
  @Test func `Its visible form has no password`() throws {
    let shown = [
      "postgresql://app:s%65cret@db.example.com:5433/shop?sslmode=require&ondol=a%20b":
        "postgresql://app@db.example.com:5433/shop?ondol=a b",
      "postgres://db.example.com/shop?password=secret&user=app":
        "postgresql://db.example.com/shop?ondol=default",
      "postgresql:///shop?host=/run/db&port=6000&sslpassword=secret":
        "postgresql:///shop?host=/run/db&port=6000&ondol=default",
      "postgresql://app:secret@one:1,two:2/shop?target_session_attrs=any":
        "postgresql://app@one:1,two:2/shop?ondol=default",
    ]
    for (address, name) in shown { #expect(try PostgresStore(address).name == name) }
  }

  @Test(arguments: [
    "", "postgresql:/x", "mysql://app:secret@host/x", "postgresql://app:secr@et@host/x",
    "postgresql://app:sec/ret@host/x", "postgresql://app:sec?ret@host/x",
    "postgresql://app:secret%@host/x",
    "postgresql://app:secret@host/x?secret=1", "postgresql://app:secret@host/x?ondol=",
    "postgresql://app:secret@host/x?ondol=%FF", "postgresql://app:secret@host/x?ondol=%0",
    "postgresql://app:secret@host/x?ondol=%00", "postgresql://app:secret@host/x\0",
    "postgresql://app:secret@host/x?ondol=" + String(repeating: "a", count: 256),
  ])
  func `An unreadable address is refused, and no part of it is revealed`(_ address: String) {
    #expect {
      try PostgresStore(address)
    } throws: { error in
      guard case .invalid(let reason)? = error as? EngineError else { return false }
      return !reason.contains("sec")
    }
  }

  @Test func `A password that a server refuses is not revealed`() async throws {
    let server = try PostgresServer.shared.get()
    let address =
      "postgresql://nobody:open%20sesame@/x?host=\(server.directory)"
    let store = try PostgresStore(address, patience: .zero)
    await #expect {
      try await store.open(1)
    } throws: { error in
      guard case .unreachable(let reason)? = error as? EngineError else { return false }
      return reason.contains("nobody") && !reason.contains("sesame")
    }
    await store.close(1)
  }
}
