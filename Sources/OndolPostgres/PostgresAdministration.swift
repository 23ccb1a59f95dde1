// The operator's tasks on a server, which an app need not be allowed to perform: the owner creates
// and upgrades the tables, and the app's user reads and writes them.

package import OndolEngine

/// Calls for the owner of the tables.
package struct PostgresAdministration: Sendable {
  let address: PostgresAddress

  /// The displayed form of the address.
  package var name: String { address.name }

  /// - Parameter address: as for `PostgresStore`. The database name in it does not matter.
  /// - Throws: `.invalid` if it is not an address.
  package init(_ address: String) throws(EngineError) {
    self.address = try PostgresAddress(address)
  }

  /// Runs `body` with a connection on a thread of its own.
  func perform<R: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws(PostgresFailure) -> R
  ) async throws(EngineError) -> R {
    // It needs its own thread, because a server may answer at any time.
    let worker = IOThreads().makeWorker(named: "ondol-server", for: .own)
    do throws(EngineError) {
      let result = try await worker.perform { [address] () throws(EngineError) -> R in
        do throws(PostgresFailure) {
          let connection = try PostgresConnection(to: address, answerTime: .seconds(600))
          try Schema.begin(connection, address)
          return try body(connection)
        } catch {
          throw error.error(of: address.name)
        }
      }
      await worker.stop()
      return result
    } catch {
      await worker.stop()
      throw error
    }
  }

  /// Creates or upgrades the tables and functions as needed, and lets `role` use them.
  ///
  /// - Returns: whether anything was created.
  package func prepare(for role: String? = nil) async throws(EngineError) -> Bool {
    guard role?.utf8.contains(0) != true else { throw .invalid(reason: "a role's name has a zero") }
    return try await perform { [address] connection throws(PostgresFailure) in
      let isNew = try Schema.prepare(connection, address, creating: true)
      try Schema.grant(to: role, connection)
      return isNew
    }
  }

  /// Upgrades the tables and functions, and keeps the access of the users who had it before.
  ///
  /// - Returns: whether there was anything to do.
  /// - Throws: `.missing` if there are no tables.
  package func upgrade() async throws(EngineError) -> Bool {
    try await perform { [address] connection throws(PostgresFailure) in
      let isNew = try Schema.prepare(connection, address, creating: false)
      try Schema.grant(to: nil, connection)
      return isNew
    }
  }
}

/// One of the databases in a server's tables.
package struct DatabaseOnServer: Sendable, Equatable {
  package var name: String
  /// Its newest commit; 0 if it has none.
  package var version: UInt64
  /// The time of that commit in microseconds since 1970; nil if there is none.
  package var time: Int64?
  /// The number of processes that have it open.
  package var processes: Int
  /// Whether a load did not complete.
  package var isUnfinished: Bool
}

extension PostgresAdministration {
  private static let databases = Statement(
    name: "databases",
    text: """
      select convert_to(b.name, 'UTF8'), l.at + l.n - 1, l.time + l.n - 1,
          (select count(*) from ondol_pin p
            where p.db = b.db and p.process <> 0 and p.until > now()), b.loading
        from ondol_database b, lateral (select x.at, x.n, x.time from ondol_log x
          where x.db = b.db order by x.at desc limit 1) l order by b.name
      """)

  /// All databases, sorted by name. Throws `.missing` if there are no tables.
  package func list() async throws(EngineError) -> [DatabaseOnServer] {
    try await perform { [address] connection throws(PostgresFailure) in
      try Schema.prepare(connection, address, creating: false)
      let answer = try connection.run(Self.databases)
      try answer.expect(columns: 5)
      var databases: [DatabaseOnServer] = []
      for row in 0..<answer.rowCount {
        let (number, time) = (try answer.int64(row, 1), try answer.int64(row, 2))
        databases.append(
          DatabaseOnServer(
            name: try answer.textOrNull(row, 0) ?? "",
            version: try PostgresStore.point(number, time).sequence.rawValue,
            time: number == 0 ? nil : time, processes: Int(clamping: try answer.int64(row, 3)),
            isUnfinished: try answer.bool(row, 4)))
      }
      return databases
    }
  }

  /// Releases the pins of a process that died during a load.
  private static let unpinLoad = Statement(
    name: "unpin",
    text: """
      delete from ondol_pin p using ondol_database b
        where p.db = $1::int and p.process <> 0 and b.db = p.db and b.loading
          and pg_try_advisory_xact_lock(7703, p.db)
      """)

  /// Removes the database that the address names, with all its contents.
  ///
  /// - Throws: `.missing` if it does not exist, `.inUse` while a process has it open.
  package func remove() async throws(EngineError) {
    try await perform { [address] connection throws(PostgresFailure) in
      try Schema.prepare(connection, address, creating: false)
      let opened = try Schema.open(connection, address, creating: false, filling: true)
      var parameters = ParameterList()
      parameters.add(opened.number)
      _ = try connection.run(Self.unpinLoad, parameters)
      parameters.add(0 as Int64)
      let answer = try connection.run(.remove, parameters)
      try answer.expect(columns: 1)
      guard try answer.bool(0, 0) else {
        throw .told(.inUse(path: address.name, holder: "by another process"))
      }
    }
  }
}

extension Schema {
  private static let nameRole = Statement(
    name: "role",
    text: "select set_config('ondol.role', convert_from($1::bytea, 'UTF8'), false) is not null")

  /// Lets `role`, and all users who may already add rows, use the tables and the functions.
  fileprivate static func grant(
    to role: String?, _ connection: PostgresConnection
  ) throws(PostgresFailure) {
    var parameters = ParameterList()
    parameters.add(role ?? "")
    _ = try connection.run(nameRole, parameters)
    try connection.run(script: grants)
  }

  private static let grants = """
    do $do$
    declare r text; t text; f text;
    begin
      for r in select current_setting('ondol.role') where current_setting('ondol.role') <> ''
          union select pg_get_userbyid(a.grantee) from pg_class c, aclexplode(c.relacl) a
            where c.oid = to_regclass('ondol_row') and a.privilege_type = 'INSERT'
              and a.grantee <> 0 and a.grantee <> c.relowner loop
        execute format('grant usage on schema %I to %I', current_schema(), r);
        execute format('grant select on ondol_schema to %I', r);
        for t in select unnest(array['ondol_database', \(list(tables))]) loop
          execute format('grant select, insert, update, delete on %I to %I', t, r);
        end loop;
        for f in select p.oid::regprocedure::text from pg_proc p
            where p.pronamespace = current_schema()::regnamespace
              and left(p.proname, 6) = 'ondol_' loop
          execute format('grant execute on routine %s to %I', f, r);
        end loop;
      end loop;
    end $do$
    """
}
