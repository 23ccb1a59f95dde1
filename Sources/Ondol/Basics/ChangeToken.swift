// A position in the history of commits that an app can save. It identifies a commit by number and
// time: after a power cut that took the commit, another one may have its number, but not its time.

internal import OndolEngine

/// A commit of one database, after which `Database.changes(since:)` or `snapshots(since:)`
/// continues: later, after the database was opened again, or in another process.
///
/// Save it as a `Codable` value or as text. Its contents are not part of the interface.
public struct ChangeToken: Sendable, Hashable {
  let identity: DatabaseIdentity
  let point: CommitPoint
}

extension ChangeToken: LosslessStringConvertible {
  /// The token as text.
  public var description: String {
    [
      identity.high, identity.low, point.sequence.rawValue, UInt64(bitPattern: point.time),
    ].map { String($0, radix: 36) }.joined(separator: "-")
  }

  /// The token with this `description`; nil for any other text.
  ///
  /// - Parameter description: a token's `description`.
  public init?(_ description: String) {
    let parts = description.split(separator: "-", omittingEmptySubsequences: false)
    let numbers = parts.compactMap { UInt64($0, radix: 36) }
    guard numbers.count == 4, parts.count == 4 else { return nil }
    identity = DatabaseIdentity(low: numbers[1], high: numbers[0])
    point = CommitPoint(
      sequence: SequenceNumber(rawValue: numbers[2]), time: Int64(bitPattern: numbers[3]))
  }
}

extension ChangeToken: Codable {
  /// Reads the text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let token = ChangeToken(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "no change token")
    }
    self = token
  }

  /// Writes the text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension Database {
  /// The newest commit as of now, to follow later commits with `changes(since:)`.
  ///
  /// - Throws: `.failedPrecondition` without `Options.changeRetention`, or when the database is
  ///   closed.
  public func changeToken() throws(DatabaseError) -> ChangeToken {
    let (_, point) = try datedSnapshot()
    return try token(orThrow: point)
  }

  /// Nil when no changes are kept.
  func token(of point: CommitPoint) -> ChangeToken? {
    guard engine.keepsHistory else { return nil }
    return ChangeToken(identity: engine.identity, point: point)
  }

  private func token(orThrow point: CommitPoint) throws(DatabaseError) -> ChangeToken {
    try refuseWithoutHistory()
    return ChangeToken(identity: engine.identity, point: point)
  }

  /// The commits after `token`.
  func history(since token: ChangeToken) throws(DatabaseError) -> CommitHistory {
    try refuseWithoutHistory()
    guard token.identity == engine.identity else {
      throw DatabaseError(
        .invalidArgument,
        "the token belongs to another database; read everything again and continue from there")
    }
    return engine.history(after: token.point)
  }

  private func refuseWithoutHistory() throws(DatabaseError) {
    guard engine.keepsHistory else {
      throw DatabaseError(
        .failedPrecondition,
        "this database keeps no changes",
        suggestion: "open the database for writing with Options.changeRetention")
    }
  }

  /// The rows as of a moment, or of now, and the newest commit in them.
  func datedSnapshot(_ moment: DatedSnapshot? = nil) throws(DatabaseError) -> DatedSnapshot {
    if let moment { return moment }
    return try rethrowing { () throws(EngineError) in try engine.datedSnapshot() }
  }
}

extension HistoryRetention {
  init(_ retention: Database.ChangeRetention) {
    let microseconds = retention.duration.map { duration in
      let (seconds, attoseconds) = duration.components
      let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
      return overflow ? .max : max(0, whole &+ attoseconds / 1_000_000_000_000)
    }
    self.init(
      microseconds: microseconds ?? .max,
      bytes: retention.bytes.map { UInt64(max(0, $0)) } ?? .max)
  }
}

/// Rows, and the newest commit in them.
typealias DatedSnapshot = (snapshot: Snapshot, point: CommitPoint)
