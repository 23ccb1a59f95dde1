// Contents beside rows, in parts; and the doorbell, which other clients of the server hear as well.

import OndolEngine
import OndolPostgres
import OndolPostgresTestKit
import Testing

@Suite struct `Beside rows` {
  private let server: PostgresServer

  init() throws {
    server = try PostgresServer.shared.get()
  }

  @Test func `Contents are kept in parts, and removed when nobody has wanted them`() async throws {
    let place = newName()
    try server.sql("create database \(place)")
    let store = try server.store("one", in: place)
    _ = try await store.open(1)
    let contents: any RemoteContents = store
    let part = [UInt8](repeating: 9, count: PostgresStore.partLength)
    for (digest, count) in [([1, 1], 3), ([1, 2], 1), ([2], 0)] as [([UInt8], Int)] {
      for number in 0..<count { try await contents.putContent(digest, part: number, part) }
      try await contents.putContent(digest, part: count, [UInt8(count)])
    }
    #expect(try contents.content([1, 1], part: 2) == part)
    #expect(try contents.content([1, 1], part: 3) == [3])
    #expect(try contents.content([1, 1], part: 4) == nil)
    #expect(try contents.content([3], part: 0) == nil)
    #expect(try contents.content([2], part: 0) == [0])
    // Whoever puts what is there keeps it from being taken for abandoned.
    let hour: Int64 = 3_600_000_000
    #expect(try await contents.contents(after: [], untouchedFor: hour, atMost: 9) == [])
    try await contents.removeContent([1, 1], untouchedFor: hour)
    #expect(try contents.content([1, 1], part: 0) == part)
    let all = [[1, 1], [1, 2], [2]] as [[UInt8]]
    #expect(try await contents.contents(after: [], untouchedFor: 0, atMost: 9) == all)
    #expect(try await contents.contents(after: [1, 1], untouchedFor: 0, atMost: 1) == [[1, 2]])
    try server.sql(
      """
      update ondol_content set touched = touched - interval '2 hours'
        where digest in ('\\x0101', '\\x0102')
      """, in: place)
    try await contents.putContent([1, 1], part: 1, part)
    #expect(try await contents.contents(after: [], untouchedFor: hour, atMost: 9) == [[1, 2]])
    for digest in all { try await contents.removeContent(digest, untouchedFor: hour) }
    #expect(try contents.content([1, 1], part: 0) == part)
    #expect(try contents.content([1, 2], part: 0) == nil)
    await #expect(throws: EngineError.self) {
      try await contents.putContent([1], part: 0, part + [1])
    }
    await #expect(throws: EngineError.self) { try await contents.putContent([1], part: -1, []) }
    await store.close(1)
  }

  @Test func `A commit rings at other sessions of the server`() async throws {
    let place = newName()
    try server.sql("create database \(place)")
    let store = try server.store("one", in: place)
    var known = try await store.open(1).point
    let session = try PostgresSession(server, place)
    let identity = try session.run("select encode(identity, 'hex') from ondol_database")
    try session.run("listen \"ondol_\(identity)\"")
    var heard = ""
    // Some are passed over, because one has been sent a moment ago.
    while !heard.contains("Asynchronous notification") {
      var group = RemoteGroup(origin: 1, part: 1, known: known)
      group.isDurable = false
      group.commits = [[RemoteWrite(key: [0, 0, 16, 0, 1], value: [1])]]
      guard case .done(let first) = try await store.append(group) else {
        Issue.record("refused")
        return
      }
      known = first
      heard = try session.run("select 1")
    }
    #expect(heard.contains("\"ondol_\(identity)\""))
    session.close()
    await store.close(1)
  }
}
