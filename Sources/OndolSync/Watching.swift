// What an app sees of synchronisation.

#if Sync
  public import Ondol
  import OndolEngine

  /// What synchronisation is doing.
  public struct SyncState: Sendable, Hashable {
    /// A followed query.
    public struct Followed: Sendable, Hashable, Identifiable {
      /// The follow's number in this database.
      public let id: Int64
      /// The path of the followed collection, or the id of the followed collections.
      public let collection: String
      /// Whether this device has had all documents once. They are as of one moment from then on.
      public let isComplete: Bool
      /// The documents that this device has of it.
      public let documentCount: Int
      /// The moment of the server that the documents are as of; nil before the first one.
      public let readTime: Timestamp?
      /// Why the server does not listen for it; nil when it does, or when it cannot be reached.
      public let problem: DatabaseError?
    }

    /// Whether the server answers.
    public var isOnline = false
    /// Commits of this device that the server does not have, or that have not come back from it.
    public var waitingWrites = 0
    /// What is followed, in the order in which it was begun.
    public var follows: [Followed] = []
    /// The ids of collections whose rule for merges is missing, so that commits wait: see
    /// ``Sync/merge(of:by:)``.
    public var collectionsToMerge: [String] = []
    /// Why the server was not reached at the last attempt, or why it sends us away; nil when all is
    /// well.
    public var problem: DatabaseError?

    /// Whether this device has all that it follows, and the server all that this device wrote.
    public var isSettled: Bool {
      isOnline && waitingWrites == 0 && follows.allSatisfy { $0.isComplete && $0.problem == nil }
    }
  }

  /// What happens to documents of a newly followed collection that only this device has.
  public enum ExistingDocuments: Sendable, Hashable {
    /// `follow(_:existing:)` throws when there are any.
    case refuse
    /// They are created on the server, each unless it has a document with that path.
    case upload
    /// They are removed from this device.
    case replace
  }

  /// When a device fetches the bytes of contents that documents from the server name; see
  /// `Storage`.
  public enum ContentFetching: Sendable, Hashable {
    /// When they are first read. Reading waits for the server, and throws `.unavailable` when it
    /// cannot be reached.
    case lazy
    /// As soon as a document names them, so that they can be read without a network.
    case eager
  }

  /// Gives the tokens that identify a user.
  public protocol SyncSession: Sendable {
    /// The token of the user; nil for nobody.
    ///
    /// - Parameter isRefused: whether the server has just refused the last one, so that a new one
    ///   is needed.
    /// - Throws: an error when there is none now. The device then tries again later.
    func token(isRefused: Bool) async throws -> String?
  }

  /// Gives everybody who watches the newest state.
  final class StateBoard: Sendable {
    private struct State: Sendable {
      var newest = SyncState()
      var watchers: [Int: AsyncStream<SyncState>.Continuation] = [:]
      var next = 0
      var isOver = false
    }

    private let state = Guarded(State())

    var newest: SyncState { state.withLock(\.newest) }

    func change(_ change: (inout SyncState) -> Void) {
      let (newest, watchers) = state.withLock { state in
        let before = state.newest
        change(&state.newest)
        return (state.newest, before == state.newest ? [] : Array(state.watchers.values))
      }
      for watcher in watchers { watcher.yield(newest) }
    }

    func watch() -> AsyncStream<SyncState> {
      let (stream, watcher) = AsyncStream.makeStream(
        of: SyncState.self, bufferingPolicy: .bufferingNewest(1))
      let number: Int? = state.withLock { state in
        guard !state.isOver else { return nil }
        state.next += 1
        state.watchers[state.next] = watcher
        watcher.yield(state.newest)
        return state.next
      }
      guard let number else {
        watcher.finish()
        return stream
      }
      watcher.onTermination = { [state] _ in
        state.withLock { _ = $0.watchers.removeValue(forKey: number) }
      }
      return stream
    }

    func finish() {
      let watchers = state.withLock { state in
        state.isOver = true
        defer { state.watchers = [:] }
        return Array(state.watchers.values)
      }
      for watcher in watchers { watcher.finish() }
    }
  }
#endif
