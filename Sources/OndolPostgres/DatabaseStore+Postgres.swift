// The door of this product: where a database is, in one line.

public import Ondol
internal import OndolEngine

extension DatabaseStore {
  /// A database on PostgreSQL; tested with version 15. What it needs there is made when it is
  /// opened first: tables and functions whose names begin with `ondol_`, in the schema that the
  /// user's search path begins with.
  ///
  /// ```swift
  /// let database = try await Database.open(on: .postgres("postgresql://app@db.example.com/shop"))
  /// ```
  ///
  /// - Parameter address: `postgresql://user:password@host:port/database`, as libpq reads it, with
  ///   its parameters behind `?`: `sslmode`, several hosts with `target_session_attrs=read-write`
  ///   and so on. One more, `ondol=name`, tells several of Ondol's databases apart that share one
  ///   of PostgreSQL's; `default` without.
  public static func postgres(_ address: String) -> DatabaseStore {
    postgres(address, creates: true)
  }

  /// - Parameter creates: whether a database is made where there is none.
  package static func postgres(_ address: String, creates: Bool) -> DatabaseStore {
    DatabaseStore { () throws(EngineError) in try PostgresStore(address, creates: creates) }
  }

  /// What people may see of an address: all but its passwords; nil when it is none.
  package static func postgresName(_ address: String) -> String? {
    try? PostgresAddress(address).name
  }
}
