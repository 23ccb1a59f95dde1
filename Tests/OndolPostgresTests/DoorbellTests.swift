// The doorbell, which other clients of the server hear as well.

import OndolEngine
import OndolPostgres
import OndolPostgresTestKit
import Testing

@Suite struct `The doorbell` {
  private let server: PostgresServer

  init() throws {
    server = try PostgresServer.shared.get()
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
    // Some are skipped, because one has just been sent.
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
