// Counts what callers use, and refuses those that have used too much. It is asked about an address
// before anything is known of a call but where it comes from, so a flood of guesses costs a look
// into a table each and no signature's check. About an account it is asked when the token is
// checked.

#if Server
  package import Ondol
  import Synchronization

  /// A limit that a caller has reached.
  package struct LimitReached: Error, Sendable, Hashable {
    /// What there was too much of, such as "calls from this address".
    package let subject: String
    /// The seconds until there is room again, 1 or more.
    package let seconds: Int
    /// Whether it is the caller's first refusal since a call that was allowed.
    package let isFirst: Bool

    package var error: DatabaseError {
      DatabaseError(
        .resourceExhausted, "there were too many \(subject); try again in \(seconds) s")
    }
  }

  /// An account of a project: accounts of different databases may have the same uid.
  package struct CallerAccount: Sendable, Hashable {
    package let project: String
    package let uid: String
  }

  /// The limits of a server's callers.
  package final class CallLimiter: Sendable {
    /// The number of addresses and of accounts to remember for each limit. A remembered one takes
    /// about 100 bytes.
    static let mostCallers = 50_000

    package let limits: ServerLimits
    private let callsOfAddress: Meter<NetworkAddress>?
    private let bytesOfAddress: Meter<NetworkAddress>?
    private let signInsOfAddress: Meter<NetworkAddress>?
    private let callsOfAccount: Meter<CallerAccount>?
    private let bytesOfAccount: Meter<CallerAccount>?
    private let clock: @Sendable () -> Double

    /// - Parameters:
    ///   - most: the number of callers to remember for each limit.
    ///   - clock: seconds since any moment, which never go back.
    package init(
      _ limits: ServerLimits, most: Int = 50_000,
      clock: @escaping @Sendable () -> Double = CallLimiter.systemClock
    ) {
      self.limits = limits
      self.clock = clock
      func meter<Key>(_ allowance: Int?, _ subject: String) -> Meter<Key>? {
        allowance.map { Meter(TokenBuckets(allowance: $0, most: most), subject) }
      }
      callsOfAddress = meter(limits.callsOfAddress, "calls from this address")
      bytesOfAddress = meter(limits.bytesOfAddress, "bytes of calls from this address")
      signInsOfAddress = meter(limits.signInsOfAddress, "sign-ins from this address")
      callsOfAccount = meter(limits.callsOfAccount, "calls of this account")
      bytesOfAccount = meter(limits.bytesOfAccount, "bytes of this account's calls")
    }

    private static let start = ContinuousClock.now

    /// Seconds since the first use.
    package static let systemClock: @Sendable () -> Double = {
      (ContinuousClock.now - start) / .seconds(1)
    }

    /// Counts a call from an address, and refuses it when the address has used too much.
    ///
    /// - Parameter address: nil for one that is not known, which has no limits: a socket of this
    ///   machine.
    package func admit(_ address: NetworkAddress?) throws(LimitReached) {
      guard let address else { return }
      let now = clock()
      try bytesOfAddress?.ask(address, at: now)
      try callsOfAddress?.take(address, at: now)
    }

    /// Counts a call of an account, and refuses it when the account has used too much.
    package func admit(_ account: CallerAccount) throws(LimitReached) {
      let now = clock()
      try bytesOfAccount?.ask(account, at: now)
      try callsOfAccount?.take(account, at: now)
    }

    /// Counts a call that may derive a key from a password or make an account.
    package func admit(signInFrom address: NetworkAddress?) throws(LimitReached) {
      guard let address else { return }
      try signInsOfAddress?.take(address, at: clock())
    }

    /// Counts bytes that a call has received or sent.
    func charge(_ bytes: Int, to address: NetworkAddress?, _ account: CallerAccount?) {
      guard bytesOfAddress != nil || bytesOfAccount != nil else { return }
      let now = clock()
      if let address { bytesOfAddress?.charge(bytes, to: address, at: now) }
      if let account { bytesOfAccount?.charge(bytes, to: account, at: now) }
    }
  }

  /// One limit.
  private final class Meter<Key: Hashable & Sendable>: Sendable {
    private let buckets: Mutex<TokenBuckets<Key>>
    private let subject: String

    init(_ buckets: TokenBuckets<Key>, _ subject: String) {
      self.buckets = Mutex(buckets)
      self.subject = subject
    }

    /// Refuses a caller that has used everything.
    func ask(_ key: Key, at now: Double) throws(LimitReached) {
      try check(buckets.withLock { $0.ask(key, at: now) })
    }

    func take(_ key: Key, at now: Double) throws(LimitReached) {
      try check(buckets.withLock { $0.take(of: key, at: now) })
    }

    func charge(_ bytes: Int, to key: Key, at now: Double) {
      buckets.withLock { $0.charge(bytes, to: key, at: now) }
    }

    private func check(_ outcome: TokenBuckets<Key>.Outcome) throws(LimitReached) {
      guard case .refused(let seconds, let isFirst) = outcome else { return }
      throw LimitReached(
        subject: subject, seconds: Int(min(max(seconds.rounded(.up), 1), 86_400)),
        isFirst: isFirst)
    }
  }
#endif
