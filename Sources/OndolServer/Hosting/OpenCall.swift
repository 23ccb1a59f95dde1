// A call while it is answered: where it comes from, who makes it, and what it has cost so far. The
// port that it came through opens it, and every part of the server that answers it may look at it.

#if Server
  import Ondol
  import OndolWire
  import Synchronization

  /// A call in progress, or a connection whose messages are calls.
  package final class OpenCall: MessageMeter {
    /// Who makes the call, as far as it is known.
    struct Caller: Sendable, Hashable {
      static let nobody = Caller(kind: .nobody)

      var kind: AuditEvent.Caller
      /// The account, of `user`.
      var account: CallerAccount?
      /// The project or database that the caller was identified for.
      var project: String?
    }

    private struct State: Sendable {
      var received = 0
      var sent = 0
      var caller: Caller?
      /// Who made the last request of a connection.
      var shown: Caller?
      var isSilent = false
    }

    /// The call that the current task answers.
    package static var current: OpenCall? { CurrentMeter.value as? OpenCall }

    /// The call's name in the log and in the metrics.
    package let method: String
    /// Where it comes from; nil if that is not known.
    package let address: NetworkAddress?
    let start = ContinuousClock.now
    private let limiter: CallLimiter?
    private let state = Mutex(State())
    /// What the call listens to, by the client's names for it; nil if nobody watches calls.
    private let listened: Mutex<[String: String]?>

    /// - Parameters:
    ///   - limiter: counts the bytes; nil for no count.
    ///   - isWatched: whether somebody wants to know what the call listens to.
    init(
      _ method: String, from address: NetworkAddress?, _ limiter: CallLimiter?,
      isWatched: Bool = false
    ) {
      self.method = method
      self.address = address
      self.limiter = limiter
      listened = Mutex(isWatched ? [:] : nil)
    }

    /// Runs a part of the call's work, which reports to it.
    package func bind<R>(_ body: () async throws -> R) async rethrows -> R {
      try await CurrentMeter.$value.withValue(self, operation: body)
    }

    // MARK: - Bytes

    var received: Int { state.withLock(\.received) }
    var sent: Int { state.withLock(\.sent) }

    package func countReceived(_ bytes: Int) {
      let caller = state.withLock { state in
        state.received += bytes
        return state.caller
      }
      limiter?.charge(bytes, to: address, caller?.account)
    }

    package func countSent(_ bytes: Int) {
      let caller = state.withLock { state in
        state.sent += bytes
        return state.caller
      }
      limiter?.charge(bytes, to: address, caller?.account)
    }

    // MARK: - Caller

    /// Who makes the call; nil before that is known.
    var caller: Caller? { state.withLock(\.caller) }

    func note(_ caller: Caller) { state.withLock { $0.caller = caller } }

    /// Who a view shows as the caller. Unlike `caller`, nobody's limits count the bytes.
    var shownCaller: Caller { state.withLock { $0.shown ?? $0.caller } ?? .nobody }

    func show(_ caller: Caller?) { state.withLock { $0.shown = caller } }

    // MARK: - Listeners

    /// Records that the call listens to something.
    ///
    /// - Parameter key: the client's name for it.
    func listen(_ key: String, to place: @autoclosure () -> String) {
      listened.withLock { listened in
        guard listened != nil else { return }
        listened?[key] = place()
      }
    }

    func endListening(_ key: String) { listened.withLock { $0?[key] = nil } }

    func endListening() { listened.withLock { $0 = $0.map { _ in [:] } } }

    /// What the call listens to, in order.
    var listeners: [String] { (listened.withLock { $0 } ?? [:]).values.sorted() }

    /// Whether the log leaves the call out.
    var isSilent: Bool { state.withLock(\.isSilent) }

    func silence() { state.withLock { $0.isSilent = true } }
  }

  extension OpenCall.Caller {
    init(_ principal: Principal, in project: String) {
      switch principal {
      case .nobody: self.init(kind: .nobody, project: project)
      case .admin: self.init(kind: .admin, project: project)
      case .user(let token):
        self.init(
          kind: .user, account: CallerAccount(project: project, uid: token.uid), project: project)
      }
    }

    /// The caller's name in the log: `nobody`, `admin`, or the person's uid.
    var name: String { account?.uid ?? kind.rawValue }
  }
#endif
