// The end of the line of commits, as recovery finds it and as the sequencer goes on from it.

/// What recovery found: where the line of commits ends, and the logs it is in.
struct RecoveredLog: Sendable {
  var sequence: SequenceNumber
  var time: Int64
  var end: LogPosition
  /// The last log and its length.
  var number: FileNumber
  var length: UInt64
  /// The logs from the floor on.
  var starts: [LogStart]
  /// What is kept of those before.
  var history: History?
}

extension LogHeader {
  /// The header that a log has lost which goes on where `line` ends.
  init(lostBy log: NamedLog, of identity: DatabaseIdentity, behind line: RecoveredLog) {
    self.init(
      number: log.number, identity: identity, salt: log.salt, kind: .normal, base: line.end,
      previous: line.number, previousLength: line.length, firstSequence: line.sequence.next)
  }
}
