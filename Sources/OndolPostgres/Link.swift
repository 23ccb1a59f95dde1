// A connection that is made when it is needed, and made again when it is lost. A repeatable call is
// repeated, with growing pauses, until its caller's time limit. A call that must not be repeated is
// made once, on a connection without known problems.

internal import OndolEngine
internal import Synchronization

/// The common settings of all links of a store.
final class LinkSettings: Sendable {
  let address: PostgresAddress
  /// The time limit for one answer.
  let answerTime: Duration
  /// How long calls are retried.
  let patience: Duration
  /// The time limit for small calls that a caller waits for.
  private let limit = Guarded<Duration?>(nil)
  private let closed = Atomic(false)
  /// The opened database, which each new connection must find again.
  let opened = Guarded<OpenedDatabase?>(nil)

  init(_ address: PostgresAddress, answerTime: Duration, patience: Duration) {
    self.address = address
    self.answerTime = answerTime
    self.patience = patience
  }

  /// Limits the time of small calls that a caller waits for.
  func limitAnswers(to time: Duration) { limit.withLock { $0 = time } }

  /// A time, or the limit if it applies and is shorter.
  fileprivate func limited(_ time: Duration, _ isLimited: Bool) -> Duration {
    guard isLimited, let limit = limit.withLock({ $0 }) else { return time }
    return min(time, limit)
  }

  /// When a call that begins now is late, and what to call then; nil without a limit.
  fileprivate func lateness(_ note: @escaping () -> Void) -> PostgresConnection.Lateness? {
    limit.withLock { $0 }.map { PostgresConnection.Lateness(moment: .now + $0, note: note) }
  }

  var isClosed: Bool { closed.load(ordering: .acquiring) }

  func close() { closed.store(true, ordering: .releasing) }
}

/// Identifies the open database among those in the tables.
struct OpenedDatabase: Sendable, Hashable {
  var number: Int32
  var identity: DatabaseIdentity
}

/// A connection, or the lack of one. Several databases may share it.
final class Wire: Sendable {
  fileprivate let connection = Guarded<PostgresConnection?>(nil)
}

/// A database's access to a wire. One thread at a time uses it.
final class Link: Sendable {
  private let settings: LinkSettings
  /// The initial commands on a new connection.
  private let greeting: @Sendable (PostgresConnection) throws(PostgresFailure) -> Void
  private let wire: Wire
  private var connection: Guarded<PostgresConnection?> { wire.connection }

  /// The first and the longest pause between two attempts.
  private static let pauses: (first: Duration, last: Duration) = (.milliseconds(10), .seconds(1))

  init(
    _ settings: LinkSettings, over wire: Wire = Wire(),
    greeting: @escaping @Sendable (PostgresConnection) throws(PostgresFailure) -> Void = { _ in }
  ) {
    self.settings = settings
    self.wire = wire
    self.greeting = greeting
  }

  /// How often a call may be attempted.
  enum Tries {
    /// As often as necessary, within the time limit of the settings.
    case many
    /// Once, after a connection is established.
    case one
    /// No longer than one attempt to connect.
    case hasty
  }

  /// Passes a connection to `body`. Blocks.
  ///
  /// - Parameters:
  ///   - isLimited: whether it is a small call that a caller waits for. A large call that exceeded
  ///     the limit would only be repeated and exceed it again.
  ///   - whenLate: called once if a large call takes longer than the limit. It goes on.
  func use<R>(
    _ tries: Tries, isLimited: Bool = false, whenLate: (() -> Void)? = nil,
    _ body: (PostgresConnection) throws(PostgresFailure) -> R
  ) throws(EngineError) -> R {
    let deadline = ContinuousClock.now + settings.limited(settings.patience, isLimited)
    var pause = Self.pauses.first
    while true {
      var isTried = false
      let failure: PostgresFailure
      do throws(PostgresFailure) {
        let connection = try connect()
        connection.answerTime = settings.limited(settings.answerTime, isLimited)
        connection.lateness = whenLate.flatMap { settings.lateness($0) }
        defer { connection.lateness = nil }
        isTried = true
        return try use(connection, body)
      } catch {
        failure = error
      }
      guard failure.passes, tries == .many || tries == .one && !isTried, !settings.isClosed,
        ContinuousClock.now + pause < deadline
      else { throw failure.error(of: settings.address.name) }
      Waiting.pause(pause)
      pause = min(pause * 2, Self.pauses.last)
    }
  }

  /// Passes the connection to `body` if there is one without known problems. Returns nil if this
  /// fails for any reason; the regular call above reports the reason.
  func useAtOnce<R>(_ body: (PostgresConnection) throws(PostgresFailure) -> R?) -> R? {
    guard !settings.isClosed, let opened = settings.opened.withLock({ $0 }),
      let connection = connection.withLock({ $0.take() })
    else { return nil }
    guard connection.hasFound(opened) else {
      keep(connection)
      return nil
    }
    connection.answerTime = settings.answerTime
    return (try? use(connection, body)) ?? nil
  }

  private func use<R>(
    _ connection: PostgresConnection, _ body: (PostgresConnection) throws(PostgresFailure) -> R
  ) throws(PostgresFailure) -> R {
    do throws(PostgresFailure) {
      let result = try body(connection)
      keep(connection)
      return result
    } catch {
      if !error.endsConnection, !connection.isLost { keep(connection) }
      throw error
    }
  }

  private func keep(_ connection: PostgresConnection) {
    if settings.isClosed { return }
    self.connection.withLock { $0 = connection }
  }

  private func connect() throws(PostgresFailure) -> PostgresConnection {
    if settings.isClosed { throw .told(.closed) }
    // What is asked before the call itself is small, whatever the call is.
    let answerTime = settings.limited(settings.answerTime, true)
    if let kept = connection.withLock({ $0.take() }), !kept.hasHungUp() {
      kept.answerTime = answerTime
      try find(kept)
      return kept
    }
    let made = try PostgresConnection(to: settings.address, answerTime: answerTime)
    try Schema.begin(made, settings.address)
    try find(made)
    try greeting(made)
    return made
  }

  /// Verifies once per connection that it leads to the opened database.
  private func find(_ connection: PostgresConnection) throws(PostgresFailure) {
    guard let opened = settings.opened.withLock({ $0 }), !connection.hasFound(opened) else {
      return
    }
    try Schema.find(opened, connection, settings.address)
    connection.note(opened)
  }

  /// The kept connection, for waiting for its notifications.
  var idle: PostgresConnection? { connection.withLock { $0 } }

  /// Closes the connection.
  func close() {
    connection.withLock { $0 = nil }
  }
}
