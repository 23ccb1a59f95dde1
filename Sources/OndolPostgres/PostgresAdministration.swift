// What an operator does to a server, and an app need not be allowed to: the tables are made and
// brought up to date by their owner, and the app's user reads and writes them.

package import OndolEngine

/// Calls for the tables' owner.
package struct PostgresAdministration: Sendable {
  let address: PostgresAddress

  /// What people see of the address.
  package var name: String { address.name }

  /// - Parameter address: as `PostgresStore` has it; which of the databases it names is of no
  ///   matter.
  /// - Throws: `.invalid` for an address that is none.
  package init(_ address: String) throws(EngineError) {
    self.address = try PostgresAddress(address)
  }

  /// Runs `body` with a connection on a thread of its own.
  func perform<R: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws(PostgresFailure) -> R
  ) async throws(EngineError) -> R {
    let worker = IOThreads().makeWorker(named: "ondol-server")
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

  /// Makes the tables and functions where there are none or older ones, and lets `role` use them.
  ///
  /// - Returns: whether anything was made.
  package func prepare(for role: String? = nil) async throws(EngineError) -> Bool {
    guard role?.utf8.contains(0) != true else { throw .invalid(reason: "a role's name has a zero") }
    return try await perform { [address] connection throws(PostgresFailure) in
      let isNew = try Schema.prepare(connection, address, creating: true)
      try Schema.grant(to: role, connection)
      return isNew
    }
  }

  /// Brings the tables and functions up to date, and lets those use them who could before.
  ///
  /// - Returns: whether there was anything to do.
  /// - Throws: `.missing` when there are none.
  package func upgrade() async throws(EngineError) -> Bool {
    try await perform { [address] connection throws(PostgresFailure) in
      let isNew = try Schema.prepare(connection, address, creating: false)
      try Schema.grant(to: nil, connection)
      return isNew
    }
  }
}

extension Schema {
  private static let nameRole = Statement(
    name: "role",
    text: "select set_config('ondol.role', convert_from($1::bytea, 'UTF8'), false) is not null")

  /// Lets `role`, and all who may add rows already, use the tables and the functions.
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
          execute format('grant execute on function %s to %I', f, r);
        end loop;
      end loop;
    end $do$
    """
}
