// The entry point of this product: the location of a database in one line.

public import Ondol
internal import OndolEngine

extension DatabaseStore {
  /// A database on PostgreSQL, tested with version 15. The first open creates what Ondol needs
  /// there: tables and functions whose names begin with `ondol_`, in the first schema of the user's
  /// search path.
  ///
  /// ```swift
  /// let database = try await Database.open(on: .postgres("postgresql://app@db.example.com/shop"))
  /// ```
  ///
  /// - Parameter address: `postgresql://user:password@host:port/database`, as libpq reads it, with
  ///   its parameters after `?`: `sslmode`, several hosts with `target_session_attrs=read-write`
  ///   and so on. An additional parameter, `ondol=name`, distinguishes several Ondol databases that
  ///   share one PostgreSQL database. Without it the name is `default`.
  public static func postgres(_ address: String) -> DatabaseStore {
    postgres(address, creates: true)
  }

  /// - Parameter creates: whether to create the database if it does not exist.
  package static func postgres(_ address: String, creates: Bool) -> DatabaseStore {
    DatabaseStore { () throws(EngineError) in try PostgresStore(address, creates: creates) }
  }

  /// The part of an address that may be shown: everything except its passwords. It is nil if the
  /// text is not an address.
  package static func postgresName(_ address: String) -> String? {
    try? PostgresAddress(address).name
  }
}
