// Servers with answers that make no sense: tables and functions of Ondol that someone has changed,
// and a server that is not PostgreSQL. Each call ends with an error that says so.

import Foundation
import OndolEngine
import OndolPlatform
import OndolPostgres
import OndolPostgresTestKit
import Synchronization
import Testing

@Suite struct `A server that makes no sense` {
  private static let key: [UInt8] = [0, 0, 16, 0, 1]
  private static let content = [UInt8](repeating: 7, count: ContentPart.idLength)

  /// Changes to the tables, and the calls that they make impossible.
  enum Call: Sendable {
    case append, outcome, commits, range, row, keys, pin, forget, history, trim, open
    case put, count, content, cut
  }

  private static let commit = """
    create or replace function ondol_commit_1(
      d int, known bigint, kt bigint, me bigint, prt bigint, guards bytea[], lows bytea[],
      highs bytea[], ks bytea[], vs bytea[], ofs int[], cnt int, size bigint, stamped int[],
      places int[], forms int[], wide bool, annotations bytea[], flush bool)
    returns bigint[] language sql as
    """

  private static let news = """
    create or replace function ondol_news_3(d int, known bigint, kt bigint, most int, room bigint)
    returns table (a bigint, cnt int, tm bigint, org bigint, o int, k bytea, seq bigint, val bytea)
    language sql as
    """

  static let changes: [(String, [Call])] = [
    ("\(commit) 'select null::bigint[]'", [.append]),
    ("\(commit) 'select array[]::bigint[]'", [.append]),
    ("\(commit) 'select array[0,-1,0,0]::bigint[]'", [.append]),
    ("\(commit) 'select array[0,1]::bigint[]'", [.append]),
    ("\(commit) 'select array[7,1,1,1]::bigint[]'", [.append]),
    ("\(commit) 'select array[0,null,1,1]::bigint[]'", [.append]),
    ("\(commit) 'select array[[0,1],[1,1]]::bigint[]'", [.append]),
    ("\(commit) 'select null::bigint[] where false'", [.append]),
    (
      """
      create or replace function ondol_outcome_1(d int, org bigint, prt bigint, known bigint)
        returns bigint[] language sql as 'select array[0,-5,1]::bigint[]'
      """, [.outcome]
    ),
    (
      "\(news) 'select -1::bigint,1,1::bigint,1::bigint,0,null::bytea,1::bigint,null::bytea'",
      [.commits]
    ),
    (
      "\(news) 'select 1::bigint,0,1::bigint,1::bigint,0,null::bytea,1::bigint,null::bytea'",
      [.commits]
    ),
    (
      "\(news) 'select 1::bigint,2147483647,1::bigint,1::bigint,0,null::bytea,1::bigint,"
        + "null::bytea'",
      [.commits]
    ),
    (
      "\(news) 'select 9223372036854775807,1,1::bigint,1::bigint,0,null::bytea,1::bigint,"
        + "null::bytea'",
      [.commits]
    ),
    (
      "\(news) 'select 1::bigint,1,1::bigint,1::bigint,7,''k''::bytea,8::bigint,null::bytea'",
      [.commits]
    ),
    (
      "\(news) 'select 1::bigint,1,1::bigint,1::bigint,-1,''k''::bytea,0::bigint,null::bytea'",
      [.commits]
    ),
    (
      "\(news) 'select 1::bigint,1,1::bigint,1::bigint,0,''k''::bytea,null::bigint,null::bytea'",
      [.commits]
    ),
    (
      "\(news) 'select null::bigint,1,1::bigint,1::bigint,0,''k''::bytea,1::bigint,null::bytea'",
      [.commits]
    ),
    ("delete from ondol_row", [.commits]),
    ("update ondol_row set seq = -1, key = key || '\\x00'", [.range]),
    ("alter table ondol_row alter value type text using 'x'", [.range, .row, .keys]),
    ("alter table ondol_pin alter seq type text", [.range, .keys]),
    ("delete from ondol_pin where process = 0", [.range, .keys]),
    ("drop table ondol_long", [.range]),
    ("drop function ondol_forget_1", [.forget]),
    (
      """
      create or replace function ondol_forget_1(d int, most int) returns bigint[] language sql
        as 'select array[-1,0]::bigint[]'
      """, [.forget]
    ),
    (
      """
      create or replace function ondol_hold_2(d int, p bigint, s bigint, t bigint, micros bigint)
        returns bigint language sql as 'select -1::bigint'
      """, [.pin]
    ),
    ("alter table ondol_history alter time type text", [.history]),
    ("drop table ondol_history", [.history, .trim]),
    (
      """
      create or replace function ondol_trim_1(d int, micros bigint, bytes bigint, most int)
        returns bigint[] language sql as 'select array[-1,0]::bigint[]'
      """, [.trim]
    ),
    ("drop table ondol_part", [.put, .count, .content, .cut]),
    ("alter table ondol_part alter part type text", [.content]),
    (
      """
      create or replace function ondol_put_1(d int, k bytea, c bytea, p int, b bytea)
        returns bool language sql as 'select null::bool'
      """, [.put]
    ),
    (
      """
      create or replace function ondol_cut_1(d int, c bytea) returns bigint language sql
        as 'select null::bigint'
      """, [.cut]
    ),
    (
      """
      create or replace function ondol_cut_1(d int, c bytea) returns bigint language sql
        as 'select 1::bigint'
      """, [.cut]
    ),
    ("update ondol_database set identity = '\\x00'", [.open]),
    ("delete from ondol_log", [.append, .row, .open]),
    ("alter table ondol_log alter time type text", [.row, .open]),
    ("drop table ondol_database", [.open]),
  ]

  @Test(arguments: changes.indices)
  func `A call that is answered so ends with an error`(_ number: Int) async throws {
    let (change, calls) = Self.changes[number]
    let server = try PostgresServer.shared.get()
    let place = newName()
    try server.sql("create database \(place)")
    let first = try server.store("one", in: place)
    let start = try await first.open(1).point
    var group = RemoteGroup(origin: 1, part: 1, known: start)
    group.commits = [[RemoteWrite(key: Self.key, value: [1])]]
    group.annotations = [[1]]
    guard case .done(let known) = try await first.append(group) else {
      Issue.record("refused")
      return
    }
    await first.close(1)
    // Prepared statements would continue with their earlier definitions.
    let store = try server.store("one", in: place, patience: .zero)
    let isOpenedLater = calls.contains(.open)
    if !isOpenedLater || calls.count > 1 { _ = try await store.open(1) }
    try server.sql(change, in: place)
    for call in calls {
      await #expect(throws: EngineError.self, "\(call) after: \(change)") {
        switch call {
        case .append:
          var group = RemoteGroup(origin: 2, part: 1, known: known)
          group.commits = [[RemoteWrite(key: Self.key, value: [2])]]
          // This is the answer for a history that is gone.
          if try await store.append(group) == .otherHistory { throw EngineError.closed }
        case .outcome: _ = try await store.outcome(of: 1, from: 1)
        case .commits: _ = try await store.commits(behind: start, atMost: 9)
        case .range:
          _ = try store.rows(from: [], to: [], reversed: false, atMost: 9, asOf: known)
        case .row: _ = try store.rows(at: [Self.key], asOf: known)
        case .keys: _ = try store.rows(at: [Self.key, Self.key + [1]], asOf: known)
        case .pin: _ = try await store.pin(known, for: 1, microseconds: 1000)
        case .forget: _ = try await store.forget()
        case .history: _ = try await store.history(behind: start.sequence, atMost: 9)
        case .trim: _ = try await store.trimHistory(to: nil)
        case .put:
          _ = try await store.putContent(Self.content, part: 0, [1], whileThereIs: Self.key)
        case .count: _ = try await store.countContent(Self.content)
        case .content: _ = try store.content(Self.content, in: 0..<1)
        case .cut: try await store.removeContent(Self.content)
        case .open:
          let other = try server.store("one", in: place, patience: .zero)
          _ = try await other.open(3)
        }
      }
    }
    await store.close(1)
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `Bytes that are no answer are no answer`(_ seed: UInt64) async throws {
    var chance = Chance(seed: seed)
    // Sometimes begins with a server's real first answer, so that the client reads further.
    var bytes: [UInt8] = chance.isOne(in: 2) ? [82, 0, 0, 0, 8, 0, 0, 0, 0] : []
    if chance.isOne(in: 2) { bytes += [90, 0, 0, 0, 5, 73] }
    bytes += (0..<chance.below(400)).map { _ in UInt8(truncatingIfNeeded: chance.next()) }
    let noise = try NoiseServer(bytes)
    let store = try PostgresStore(
      "postgresql:///x?host=\(noise.directory)&user=x", answerTime: .seconds(1),
      patience: .milliseconds(20))
    await #expect(throws: EngineError.self, "seed \(seed)") { try await store.open(1) }
    await store.close(1)
    noise.stop()
  }
}

/// Answers every connection with the same bytes and hangs up.
private final class NoiseServer: Sendable {
  let directory: String
  private let socket: Int32
  private let isOver = Atomic(false)

  init(_ bytes: [UInt8]) throws {
    var template = Array("/tmp/ondol-noise-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw ServerFailure(description: "no directory in /tmp can be made")
    }
    directory = String(
      decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    #if canImport(Glibc)
      socket = OndolPlatform.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
      socket = OndolPlatform.socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = Array("\(directory)/.s.PGSQL.5432".utf8)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
    let (socket, size) = (socket, socklen_t(MemoryLayout<sockaddr_un>.size))
    let isBound = unsafe withUnsafePointer(to: &address) { address in
      unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe bind(socket, address, size) == 0
      }
    }
    guard isBound, listen(socket, 8) == 0 else {
      throw ServerFailure(description: "no socket can be made in \(directory)")
    }
    Thread.detachNewThread { [self] in
      while case let connection = accept(socket, nil, nil), connection >= 0 {
        var request = [UInt8](repeating: 0, count: 1000)
        _ = unsafe read(connection, &request, request.count)
        #if canImport(Glibc)
          _ = unsafe send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        #else
          _ = unsafe send(connection, bytes, bytes.count, 0)
        #endif
        OndolPlatform.close(connection)
        if isOver.load(ordering: .acquiring) { break }
      }
      OndolPlatform.close(socket)
      try? FileManager.default.removeItem(atPath: directory)
    }
  }

  func stop() {
    isOver.store(true, ordering: .releasing)
    // One more connection wakes the thread, or its end does.
    #if canImport(Glibc)
      shutdown(socket, Int32(SHUT_RDWR))
    #else
      shutdown(socket, SHUT_RDWR)
    #endif
  }
}
