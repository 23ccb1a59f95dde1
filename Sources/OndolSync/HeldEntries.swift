// Refused entries that wait to be merged, as the device knows them while it runs: which of them can
// be decided, and when they are.

#if Sync
  import GRPCCore
  import Ondol
  import OndolEngine

  /// An entry that waits to be merged.
  struct HeldEntry: Sendable {
    /// One of its documents.
    let path: DocumentPath
    /// As of when the server refused it; nil when the server has not said that.
    let time: Timestamp?
    /// Moments that were asked for since, and are earlier.
    var asks = 0

    /// After so many of them, the server has lost the commits that it refused the entry for, or the
    /// time of it.
    static let mostAsks = 32
  }

  extension SyncEngine {
    /// The entries whose refusal is explained by what is known as of a moment.
    ///
    /// - Parameter isAsked: whether the moment was asked for, or is the first one of a stream.
    func decided(as time: Timestamp, isAsked: Bool) -> Set<String> {
      let dated = held.filter { $0.value.time.map { $0 <= time } ?? false }
      guard isAsked else { return Set(dated.keys) }
      for name in heldBefore { held[name]?.asks += 1 }
      defer { heldBefore = [] }
      return heldBefore.filter { name in
        guard let entry = held[name] else { return false }
        return entry.time == nil || entry.asks > HeldEntry.mostAsks
      }.union(dated.keys)
    }

    /// Whether a refusal may only mean that the server has another state by now.
    static func mayMerge(_ entry: OutboxEntry, after reason: DatabaseError) -> Bool {
      guard !entry.mergedPaths.isEmpty else { return false }
      switch reason.code {
      case .failedPrecondition, .aborted, .notFound, .alreadyExists: return true
      default: return false
      }
    }

    /// Makes a refused entry wait until it can be merged.
    ///
    /// - Parameters:
    ///   - time: as of when the server refused it, if it has said that.
    ///   - next: what is known of the device once that is written down.
    func hold(
      _ entry: OutboxEntry, for reason: DatabaseError, at time: Timestamp?, _ next: SyncClient
    ) async throws(DatabaseError) {
      let refusal = OutboxEntry.Refusal(reason: reason, time: time)
      let name = try await commits.hold(
        entry, for: refusal, as: AutomaticID.make(environment.random), next)
      client = next
      if let name, let path = entry.paths.first {
        held[name] = HeldEntry(path: path, time: time)
      }
      try await mergeHeld(decided: [])
    }

    /// Merges what can be merged.
    ///
    /// - Parameter decided: entries that were refused before the moment that is shown.
    func mergeHeld(decided: Set<String>) async throws(DatabaseError) {
      guard !held.isEmpty else { return }
      let names = Set(held.keys)
      let outcome = try await commits.merge(names, decided: decided, by: witness.merges)
      // Others may have been refused meanwhile.
      for name in names where !outcome.held.contains(name) { held[name] = nil }
      for (entry, reason) in outcome.refused {
        try await commits.takeBack(entry, for: reason)
      }
      board.change { $0.collectionsToMerge = outcome.missing.sorted() }
      if outcome.isAny || !outcome.refused.isEmpty {
        answerBell.ring()
        sendBell.ring()
        tell()
      }
      // The moment that shows why is asked for.
      if !held.isEmpty, outcome.missing.isEmpty { probeBell.ring() }
    }
  }
#endif
