// The same work in PostgreSQL without a library: a table of JSON with an index for each query,
// prepared statements, and one connection for each writer. The JSON exists before the clock starts.

import CLibPQ
import CPeers
import Foundation
import OndolPlatform
import Peers

struct SQLFailure: Error {
  var message: String
}

/// A connection, used by one thread at a time.
@safe
final class SQLSession: @unchecked Sendable {
  private let handle: OpaquePointer

  init(_ address: String) throws {
    guard let handle = unsafe PQconnectdb(address) else { throw SQLFailure(message: "no memory") }
    unsafe self.handle = handle
    guard unsafe PQstatus(handle) == CONNECTION_OK else { throw failure }
    try run("set client_min_messages = warning")
  }

  deinit { unsafe PQfinish(handle) }

  private var failure: SQLFailure {
    SQLFailure(message: unsafe String(cString: PQerrorMessage(handle)))
  }

  func run(_ script: String) throws {
    let result = unsafe PQexec(handle, script)
    defer { unsafe PQclear(result) }
    let status = unsafe PQresultStatus(result)
    guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else { throw failure }
  }

  func prepare(_ name: String, _ text: String) throws {
    let result = unsafe PQprepare(handle, name, text, 0, nil)
    defer { unsafe PQclear(result) }
    guard unsafe PQresultStatus(result) == PGRES_COMMAND_OK else { throw failure }
  }

  /// Runs a statement, and passes the texts of each row to `body`.
  func run(
    _ name: String, _ parameters: [String], _ body: ((Int32) -> String) -> Void = { _ in }
  ) throws {
    var copies = unsafe parameters.map { unsafe strdup($0) }
    defer { unsafe copies.forEach { unsafe free($0) } }
    let result = unsafe copies.withUnsafeMutableBufferPointer { copies in
      let values = unsafe copies.map { unsafe UnsafePointer($0) }
      return unsafe PQexecPrepared(handle, name, Int32(parameters.count), values, nil, nil, 0)
    }
    defer { unsafe PQclear(result) }
    let status = unsafe PQresultStatus(result)
    guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else { throw failure }
    let count = unsafe PQntuples(result)
    for row in 0..<count {
      body { column in unsafe String(cString: PQgetvalue(result, row, column)) }
    }
  }

  /// Waits for a notification, and returns its payload.
  func waitForNotification() throws -> String {
    while true {
      if let notification = unsafe PQnotifies(handle) {
        defer { unsafe PQfreemem(notification) }
        return unsafe String(cString: notification.pointee.extra)
      }
      var place = pollfd(fd: unsafe PQsocket(handle), events: Int16(POLLIN), revents: 0)
      _ = unsafe poll(&place, 1, -1)
      guard unsafe PQconsumeInput(handle) == 1 else { throw failure }
    }
  }
}

final class SQLByHand: Contender {
  static let name = "SQL by hand"
  static let settings =
    "on PostgreSQL through libpq: a table of JSONB, three indexes over expressions, prepared"
  static let isShared = true

  private let address: String
  private let session: SQLSession

  private init(_ address: String) throws {
    self.address = address
    session = try Self.session(address)
  }

  /// Always the same table: many writers need no others.
  static func open(_ number: Int, at place: Place) async throws -> SQLByHand {
    try SQLByHand(place.server(number))
  }

  private static let upsert =
    "insert into diary values ($1, $2::jsonb) on conflict (id) do update set body = excluded.body"

  private static func session(_ address: String) throws -> SQLSession {
    // Removes the parameters that only Ondol understands.
    let parts = address.split(separator: "&").filter { !$0.hasPrefix("ondol=") }
    let session = try SQLSession(parts.joined(separator: "&"))
    try session.run(
      """
      create table if not exists diary (id text primary key, body jsonb not null);
      create table if not exists bell (number bigint not null);
      """)
    try session.prepare("put", upsert)
    try session.prepare(
      "get", "select body ->> 'name', body ->> 'user', body from diary where id = $1")
    try session.prepare(
      "page",
      """
      select body ->> 'name', body ->> 'user', body from diary
      where body ->> 'category' = $1 and (body ->> 'price')::float8 < $2::float8
      order by (body ->> 'price')::float8 desc limit \(PageQuery.length)
      """)
    return session
  }

  func prepare() async throws {
    try session.run(
      """
      create index if not exists diary_email on diary ((body ->> 'email'));
      create index if not exists diary_user on diary
        (((body ->> 'user')::bigint), ((body ->> 'date')::float8));
      create index if not exists diary_price on diary
        ((body ->> 'category'), ((body ->> 'price')::float8) desc);
      """)
  }

  private static func json(_ record: Record) throws -> String {
    String(decoding: try JSONEncoder().encode(record), as: UTF8.self)
  }

  func load(_ records: [IdentifiedRecord]) async throws {
    try session.run("begin")
    for record in records { try session.run("put", [record.id, try Self.json(record.record)]) }
    try session.run("commit")
  }

  func settle() async throws {
    try session.run("vacuum analyze diary")
  }

  func get(_ ids: [String]) async throws -> UInt64 {
    var checksum = Checksum()
    for id in ids { try session.run("get", [id]) { checksum.add($0) } }
    return checksum.value
  }

  func page(_ query: PageQuery) async throws -> UInt64 {
    var checksum = Checksum()
    try session.run("page", [query.category, "\(query.price)"]) { checksum.add($0) }
    return checksum.value
  }

  func write(_ record: IdentifiedRecord) async throws {
    try session.run("put", [record.id, try Self.json(record.record)])
  }

  func write(
    _ records: [IdentifiedRecord], writers: Int, for duration: Duration
  ) async throws -> Int {
    let texts = try records.map { (id: $0.id, json: try Self.json($0.record)) }
    let sessions = try (0..<writers).map { _ in try Self.session(address) }
    let end = ContinuousClock.now + duration
    return try await withThrowingTaskGroup(of: Int.self) { group in
      for (writer, session) in sessions.enumerated() {
        group.addTask {
          try await onThread {
            var count = 0
            while ContinuousClock.now < end {
              let text = texts[(writer + count * writers) % texts.count]
              try session.run("put", [text.id, text.json])
              count += 1
            }
            return count
          }
        }
      }
      return try await group.reduce(0, +)
    }
  }

  func announce(_ number: Int64) async throws {
    try session.run(
      """
      begin; delete from bell; insert into bell values (\(number));
      select pg_notify('bell', '\(number)'); commit
      """)
  }

  func listen(ready: () -> Void, _ body: (Int64) -> Bool) async throws {
    try session.prepare("bell", "select number from bell")
    try session.run("listen bell")
    ready()
    while true {
      _ = try session.waitForNotification()
      var goesOn = true
      try session.run("bell", []) { text in goesOn = body(Int64(text(0)) ?? 0) }
      if !goesOn { return }
    }
  }

  func close() async throws {}
}

extension Checksum {
  /// The same two fields of a row as of a document. The whole row has been transferred as well.
  fileprivate mutating func add(_ text: (Int32) -> String) {
    add(name: text(0), user: Int(text(1)) ?? -1)
  }
}

/// Runs blocking work on a thread of its own.
private func onThread<Result: Sendable>(
  _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { waiter in
    Thread { waiter.resume(with: Swift.Result { try body() }) }.start()
  }
}
