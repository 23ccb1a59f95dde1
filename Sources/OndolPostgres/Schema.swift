// The tables on a server. The first process creates them, all others find them, and tables of a
// later version are rejected.

internal import OndolEngine

/// Ondol's part of a server's database, besides other tables.
enum Schema {
  /// The version of the tables, and of the functions' names.
  static let version: Int32 = 1

  /// The longest key that an index accepts. A third of a page is 2,704 bytes, less the neighbouring
  /// data.
  static let longestHead = 2400

  /// Earlier servers lack incremental sorts, without which reading backwards is slow.
  private static let oldestServer = 130_000

  // MARK: - A connection

  private static let settings = """
    set default_transaction_isolation = 'read committed';
    set client_min_messages = error;
    set plan_cache_mode = force_generic_plan;
    set jit = off;
    set enable_seqscan = off;
    set enable_bitmapscan = off;
    set enable_hashjoin = off;
    set enable_mergejoin = off;
    set enable_sort = off;
    select set_config('synchronous_commit', 'on', false)
      where current_setting('synchronous_commit') = 'off';
    do $do$
    declare s text[];
    begin
      foreach s slice 1 in array array[['tcp_keepalives_idle', '10'],
          ['tcp_keepalives_interval', '5'], ['tcp_keepalives_count', '3'],
          ['tcp_user_timeout', '15000'], ['client_connection_check_interval', '2000'],
          ['idle_in_transaction_session_timeout', '60000']] loop
        begin
          perform set_config(s[1], s[2], false);
        exception when others then null;  -- an older server, or a system that cannot do it
        end;
      end loop;
    end $do$
    """

  /// Establishes on a new connection what all statements rely on: each statement has its own
  /// snapshot, a commit is durable unless a statement says otherwise, and plans use an index,
  /// whatever the server's statistics say about newly created tables. The server ends a session
  /// whose client is gone, and what it still runs, rather than let it hold its locks for hours.
  static func begin(
    _ connection: PostgresConnection, _ address: PostgresAddress
  ) throws(PostgresFailure) {
    guard connection.serverVersion >= oldestServer else {
      throw .told(
        .unsupported(
          reason: "\(address.name) is PostgreSQL \(connection.serverVersion / 10_000), and 13 or a"
            + " newer one is needed"))
    }
    try connection.run(script: settings)
  }

  // MARK: - The tables

  /// The tables that an app's user reads and writes, in addition to the names of databases.
  static let tables = [
    "ondol_log", "ondol_row", "ondol_long", "ondol_pin", "ondol_fence", "ondol_drop",
    "ondol_history", "ondol_part",
  ]

  /// The functions and procedures that were added last.
  private static let functions =
    ["ondol_news_3(int, bigint, bigint, int, bigint)"] + procedures.map(\.signature)

  /// Names in the form of a statement.
  static func list(_ names: [String]) -> String {
    names.map { "'\($0)'" }.joined(separator: ", ")
  }

  /// Whether the tables and all functions exist, which rights on them the user lacks, which right
  /// it lacks to create them, and whether it owns them.
  private static let present = Statement(
    name: "present",
    text: """
      select to_regclass('ondol_schema') is not null,
        (select bool_and(to_regprocedure(f) is not null) from unnest(array[\(list(functions))]) f),
        (select string_agg(rights || ' on ' || t, '; ' order by t) from (
          select t, string_agg(r, ', ' order by r) as rights from (
              select t, r from unnest(array[\(list(tables))]) t,
                unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) r
              union all values ('ondol_schema', 'SELECT'), ('ondol_database', 'SELECT'),
                ('ondol_database', 'UPDATE')) n
            where to_regclass(t) is not null and not has_table_privilege(to_regclass(t), r)
            group by t) l),
        case when current_schema() is null then 'USAGE on a schema of its search path'
          when not has_schema_privilege(current_schema(), 'CREATE')
          then 'CREATE on schema ' || current_schema() end,
        coalesce((select pg_has_role(c.relowner, 'USAGE') from pg_class c
          where c.oid = to_regclass('ondol_schema')), true)
      """)
  private static let readVersion = Statement(
    name: "version", text: "select version from ondol_schema limit 2")

  /// Creates the tables if there are none, and the functions that an older version lacks.
  ///
  /// - Returns: whether anything was created.
  /// - Throws: `.missing` if there are no tables and none may be created, `.denied` if the user
  ///   lacks a required right.
  @discardableResult
  static func prepare(
    _ connection: PostgresConnection, _ address: PostgresAddress, creating: Bool
  ) throws(PostgresFailure) -> Bool {
    let found = try look(connection)
    guard found.hasTables || creating else { throw .told(.missing(path: address.name)) }
    // Before anything is created alongside the tables of a later version.
    if found.hasTables {
      if let lacking = found.lacking { throw denied("its user lacks \(lacking)", address) }
      try check(connection, address)
    }
    if found.isWhole { return false }
    guard found.isOwned else {
      throw denied(
        "an older version has made the tables, and only their owner can bring them up to date, by"
          + " `ondol server upgrade`", address)
    }
    if let lacking = found.lackingToMake { throw denied("its user lacks \(lacking)", address) }
    try make(connection)
    try check(connection, address)
    return true
  }

  private static func denied(_ reason: String, _ address: PostgresAddress) -> PostgresFailure {
    .told(.denied(path: address.name, reason: reason))
  }

  private struct Found {
    var hasTables: Bool
    /// Whether all functions of this version exist as well.
    var isWhole: Bool
    var lacking: String?
    var lackingToMake: String?
    var isOwned: Bool
  }

  private static func look(_ connection: PostgresConnection) throws(PostgresFailure) -> Found {
    let answer = try connection.run(present)
    try answer.expect(columns: 5)
    let (hasTables, hasFunctions) = (try answer.bool(0, 0), try answer.bool(0, 1))
    return Found(
      hasTables: hasTables, isWhole: hasTables && hasFunctions,
      lacking: try answer.textOrNull(0, 2), lackingToMake: try answer.textOrNull(0, 3),
      isOwned: try answer.bool(0, 4))
  }

  /// Creates whatever is missing, in one transaction protected by a lock. A process that had to
  /// wait for the lock checks again, because the script locks tables even if it creates nothing,
  /// and in another order than processes that already write to them.
  private static func make(_ connection: PostgresConnection) throws(PostgresFailure) {
    do throws(PostgresFailure) {
      try connection.run(script: "begin; select pg_advisory_xact_lock(7700, 0)")
      if try !look(connection).isWhole { try connection.run(script: script) }
      try connection.run(script: "commit")
    } catch {
      try? connection.run(script: "rollback")
      throw error
    }
  }

  private static func check(
    _ connection: PostgresConnection, _ address: PostgresAddress
  ) throws(PostgresFailure) {
    let answer = try connection.run(readVersion)
    try answer.expect(columns: 1)
    guard answer.rowCount == 1, case let found = try answer.int32(0, 0), found >= 1 else {
      throw .told(
        .notADatabase(
          path: address.name, reason: "its table ondol_schema does not say which version it is"))
    }
    guard found <= version else {
      throw .told(
        .needsNewerVersion(
          file: address.name,
          reason: "its tables have version \(found), and this one knows \(version)"))
    }
  }

  // MARK: - A database in the tables

  private static let readDatabase = Statement(
    name: "database",
    text: """
      select db, identity, loading from ondol_database where name = convert_from($1::bytea, 'UTF8')
      """)

  /// Creates a database if it does not exist. The lock excludes concurrent creations. It differs
  /// from the lock for creating tables, which waits for every process that has begun to write to
  /// one.
  private static let makeDatabase = Statement(
    name: "make",
    text: """
      with line as materialized (select pg_advisory_xact_lock(7700, 1)),
      made as (
        insert into ondol_database (db, name, identity)
          select (select coalesce(max(db), 0) + 1 from ondol_database),
            convert_from($1::bytea, 'UTF8'), $2::bytea from line
          on conflict (name) do nothing returning db),
      floor as (
        insert into ondol_pin (db, process, seq, until) select db, 0, 0, 'infinity' from made)
      insert into ondol_log (db, at, n, time, origin, part, size, keys, offs)
        select db, 0, 1, 0, 0, 0, 0, '{}', '{}' from made
      """)

  /// The database with the address's name, created if it does not exist.
  ///
  /// - Parameter filling: whether it is being filled and may be incomplete.
  /// - Throws: `.missing` if it does not exist and may not be created.
  static func open(
    _ connection: PostgresConnection, _ address: PostgresAddress, creating: Bool,
    filling: Bool = false
  ) throws(PostgresFailure) -> OpenedDatabase {
    // Another database may be created between the two steps, with the number that was chosen.
    for _ in 0..<100 {
      if let (found, isWhole) = try read(connection, address) {
        guard isWhole || filling else {
          throw .told(
            .unfinished(path: address.name, reason: "a load into it has not come to its end"))
        }
        return found
      }
      guard creating else { throw .told(.missing(path: address.name)) }
      var parameters = ParameterList()
      parameters.add(Array(address.database.utf8))
      var identity: [UInt8] = []
      for _ in 0..<2 { identity.appendBigEndian(UInt64.random(in: .min ... .max)) }
      parameters.add(identity)
      do throws(PostgresFailure) {
        _ = try connection.run(makeDatabase, parameters)
      } catch {
        guard case .refused("23505", _, _) = error else { throw error }
      }
    }
    throw .told(
      .notADatabase(path: address.name, reason: "its table ondol_database keeps nothing"))
  }

  /// Verifies that a new connection leads to the opened database.
  static func find(
    _ opened: OpenedDatabase, _ connection: PostgresConnection, _ address: PostgresAddress
  ) throws(PostgresFailure) {
    try check(connection, address)
    guard try read(connection, address)?.found == opened else {
      throw .told(
        .outOfStep(reason: "another database has taken the place of \(address.name)"))
    }
  }

  private static func read(
    _ connection: PostgresConnection, _ address: PostgresAddress
  ) throws(PostgresFailure) -> (found: OpenedDatabase, isWhole: Bool)? {
    var parameters = ParameterList()
    parameters.add(Array(address.database.utf8))
    let answer = try connection.run(readDatabase, parameters)
    try answer.expect(columns: 3)
    if answer.rowCount == 0 { return nil }
    let number = try answer.int32(0, 0)
    let identity = try answer.bytes(0, 1)
    guard answer.rowCount == 1, identity.count == 16 else {
      throw .malformed("an identity of \(identity.count) bytes")
    }
    let words = stride(from: 0, to: 16, by: 8).map { start in
      identity[start..<start + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    }
    let found = OpenedDatabase(
      number: number, identity: DatabaseIdentity(low: words[1], high: words[0]))
    return (found, try !answer.bool(0, 2))
  }
}
