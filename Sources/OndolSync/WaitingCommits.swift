// The outbox as people see it: which commits wait, about which documents.

#if Sync
  package import Ondol

  /// A commit of this device that waits.
  package struct WaitingCommit: Sendable {
    /// When it was made, by this device's clock.
    package let time: Timestamp
    /// The documents that it is about.
    package let paths: [DocumentPath]
    /// Whether the server has it, and only the documents have not come back.
    package let isAnswered: Bool
  }

  extension Sync {
    /// The commits that wait, the earliest first.
    ///
    /// - Throws: as reads do.
    /// - Complexity: O(waiting commits).
    package func waitingCommits(atMost limit: Int) async throws(DatabaseError) -> [WaitingCommit] {
      var waiting: [(order: Int64, commit: WaitingCommit)] = []
      for try await row in rows.documents {
        let entry = try OutboxEntry(row)
        let commit = WaitingCommit(
          time: entry.time, paths: entry.paths, isAnswered: entry.answer != nil)
        waiting.append((entry.order, commit))
        guard waiting.count >= 2 * limit else { continue }
        waiting = Self.earliest(waiting, limit)
      }
      return Self.earliest(waiting, limit).map(\.commit)
    }

    private static func earliest(
      _ waiting: [(order: Int64, commit: WaitingCommit)], _ limit: Int
    ) -> [(order: Int64, commit: WaitingCommit)] {
      Array(waiting.sorted { $0.order < $1.order }.prefix(limit))
    }

    private var rows: Query { database.syncOutbox.query }
  }

  extension Rejection.Reason: CustomStringConvertible {
    /// The reason in words.
    public var description: String {
      switch self {
      case .server(let code, let message): "\(code): \(message)"
      case .relied(let other): "it relies on \(other), which was refused"
      case .unmerged(let error): "the rule for merges has failed: \(error)"
      case .copiedDatabase: "this database is a copy, and the other one may have sent it"
      }
    }
  }
#endif
