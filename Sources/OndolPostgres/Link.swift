// A connection that is made when it is needed and made anew when it is gone. A call that may be
// made twice is, with growing pauses, until whoever waits has waited long enough; one that may not
// is made once, on a connection of which nothing bad is known.

internal import OndolEngine
internal import Synchronization

/// What all links of a store have in common.
final class LinkSettings: Sendable {
  let address: PostgresAddress
  /// How long one answer may take.
  let answerTime: Duration
  /// How long calls are tried again.
  let patience: Duration
  /// How long calls take at most that somebody waits for and that are small.
  private let limit = Guarded<Duration?>(nil)
  private let closed = Atomic(false)
  /// The database that was opened, which each new connection must find again.
  let opened = Guarded<OpenedDatabase?>(nil)

  init(_ address: PostgresAddress, answerTime: Duration, patience: Duration) {
    self.address = address
    self.answerTime = answerTime
    self.patience = patience
  }

  /// Has small calls that somebody waits for take no longer.
  func limitAnswers(to time: Duration) { limit.withLock { $0 = time } }

  /// A time, or the limit where that is shorter and counts.
  fileprivate func limited(_ time: Duration, _ isLimited: Bool) -> Duration {
    guard isLimited, let limit = limit.withLock({ $0 }) else { return time }
    return min(time, limit)
  }

  var isClosed: Bool { closed.load(ordering: .acquiring) }

  func close() { closed.store(true, ordering: .releasing) }
}

/// Which database of those in the tables is open.
struct OpenedDatabase: Sendable, Hashable {
  var number: Int32
  var identity: DatabaseIdentity
}

/// A connection, or the lack of one, which several databases may have in common.
final class Wire: Sendable {
  fileprivate let connection = Guarded<PostgresConnection?>(nil)
}

/// A database's way over a wire. One thread at a time uses it.
final class Link: Sendable {
  private let settings: LinkSettings
  /// What a new connection is told first.
  private let greeting: @Sendable (PostgresConnection) throws(PostgresFailure) -> Void
  private let wire: Wire
  private var connection: Guarded<PostgresConnection?> { wire.connection }

  /// Between two tries, at first and at most.
  private static let pauses: (first: Duration, last: Duration) = (.milliseconds(10), .seconds(1))

  init(
    _ settings: LinkSettings, over wire: Wire = Wire(),
    greeting: @escaping @Sendable (PostgresConnection) throws(PostgresFailure) -> Void = { _ in }
  ) {
    self.settings = settings
    self.wire = wire
    self.greeting = greeting
  }

  /// How often a call may be made.
  enum Tries {
    /// As often as it takes, for so long as the settings say.
    case many
    /// Once a connection is there, once.
    case one
    /// Not longer than one attempt to connect.
    case hasty
  }

  /// Gives a connection to `body`. Blocks.
  ///
  /// - Parameter isLimited: whether it is a small call that somebody waits for. A large one that
  ///   was given up would be made again, and given up again.
  func use<R>(
    _ tries: Tries, isLimited: Bool = false,
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

  /// Gives the connection to `body` if there is one that nothing bad is known of. Nil when nothing
  /// has come of it, for whatever reason: who makes the call as above is told the reason.
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
    if let kept = connection.withLock({ $0.take() }), !kept.hasHungUp() {
      try find(kept)
      return kept
    }
    let made = try PostgresConnection(to: settings.address, answerTime: settings.answerTime)
    try Schema.begin(made, settings.address)
    try find(made)
    try greeting(made)
    return made
  }

  /// Makes sure once that a connection leads to the database that was opened.
  private func find(_ connection: PostgresConnection) throws(PostgresFailure) {
    guard let opened = settings.opened.withLock({ $0 }), !connection.hasFound(opened) else {
      return
    }
    try Schema.find(opened, connection, settings.address)
    connection.note(opened)
  }

  /// The kept connection, for whoever waits for what it hears.
  var idle: PostgresConnection? { connection.withLock { $0 } }

  /// Lets go of the connection.
  func close() {
    connection.withLock { $0 = nil }
  }
}
