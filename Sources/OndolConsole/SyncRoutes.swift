// What synchronisation adds to the console: its page, and the routes below `sync`. The routes know
// nothing of servers and outboxes. They check what a request may be, and ask.

#if Sync
  public import Ondol
  public import OndolSync
#else
  package import Ondol
#endif

/// A synchronisation that the console shows. Values are shown as plain JSON.
package protocol ConsoleSyncView: Sendable {
  /// Follows, waiting writes and rejections.
  func state() async throws -> Value
  /// Makes a refused commit again.
  func retry(_ id: String) async throws
  /// Forgets a refused commit.
  func dismiss(_ id: String) async throws
}

extension ConsoleHandler {
  /// The files of the page.
  static let syncPages: Set = ["sync.html", "sync.js", "server.css"]
  /// The address of the page.
  static let syncPath = "/sync"

  /// Answers a request below `sync`; nil for another route.
  func syncRoute(
    _ request: ConsoleRequest, _ route: Substring, _ items: QueryItems, _ body: [UInt8],
    mayWrite: () throws -> Void
  ) async throws -> JSON? {
    guard route == "sync" || route.hasPrefix("sync/") else { return nil }
    guard let sync else {
      throw ConsoleFailure(404, "notFound", "the database is not synchronised here")
    }
    try items.check([])
    switch (request.method, route) {
    case ("GET", "sync"): return .plain(try await sync.state())
    case ("POST", "sync/retry"):
      try mayWrite()
      try await sync.retry(try Members(body, known: ["id"]).needed("id"))
    case ("POST", "sync/dismiss"):
      try mayWrite()
      try await sync.dismiss(try Members(body, known: ["id"]).needed("id"))
    default: throw ConsoleFailure(404, "notFound", "there is no such route")
    }
    return [:]
  }
}

#if Sync
  extension Console {
    /// Serves the console of a database that is synchronised, with a page of what is followed, what
    /// waits and what the server has refused.
    ///
    /// - Parameters:
    ///   - database: the database to show.
    ///   - access: whether the page may change the database.
    ///   - port: the port to listen on; 0 for a free one.
    ///   - sync: the database's synchronisation.
    /// - Throws: as `start(_:access:port:)`.
    public static func start(
      _ database: Database, access: ConsoleAccess, port: Int = 0, showing sync: Sync
    ) async throws -> Console {
      try await start(
        database, access: access, port: port, holder: nil, sync: ShownSync(sync: sync))
    }
  }

  /// A synchronisation as the page shows it.
  private struct ShownSync: ConsoleSyncView {
    /// The most rows of a table.
    private static let most = 100

    let sync: Sync

    func state() async throws -> Value {
      let now = sync.currentState
      var fields: [String: Value] = [
        "isOnline": .boolean(now.isOnline), "waitingCount": .integer(Int64(now.waitingWrites)),
        "follows": .array(now.follows.map(Self.value)),
      ]
      fields["problem"] = now.problem.map { .string($0.message) }
      fields["waiting"] = .array(
        try await sync.waitingCommits(atMost: Self.most).map { commit in
          [
            "time": .timestamp(commit.time), "isAnswered": .boolean(commit.isAnswered),
            "paths": Self.value(commit.paths),
          ]
        })
      fields["rejections"] = .array(
        try await sync.pendingRejections().prefix(Self.most).map { rejection in
          [
            "id": .string(rejection.id), "time": .timestamp(rejection.time),
            "reason": .string(rejection.reason.description),
            "paths": Self.value(rejection.documents.map(\.path)),
          ]
        })
      return .map(fields)
    }

    private static func value(_ paths: [DocumentPath]) -> Value {
      .array(paths.prefix(most).map { .string("\($0)") })
    }

    private static func value(_ follow: SyncState.Followed) -> Value {
      var fields: [String: Value] = [
        "collection": .string(follow.collection), "isComplete": .boolean(follow.isComplete),
        "documentCount": .integer(Int64(follow.documentCount)),
      ]
      fields["readTime"] = follow.readTime.map { .timestamp($0) }
      fields["problem"] = follow.problem.map { .string($0.message) }
      return .map(fields)
    }

    private func rejection(_ id: String) async throws -> Rejection {
      guard let found = try await sync.pendingRejections().first(where: { $0.id == id }) else {
        throw DatabaseError(.notFound, "the refusal was dealt with before")
      }
      return found
    }

    func retry(_ id: String) async throws { try await sync.retry(try await rejection(id)) }

    func dismiss(_ id: String) async throws { try await sync.dismiss(try await rejection(id)) }
  }
#endif
