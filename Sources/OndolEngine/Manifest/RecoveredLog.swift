// The end of the sequence of commits, as recovery finds it and the sequencer continues it.

/// The result of recovery: the end of the sequence of commits, and its logs.
struct RecoveredLog: Sendable {
  var sequence: SequenceNumber
  var time: Int64
  var end: LogPosition
  /// The last log and its length.
  var number: FileNumber
  var length: UInt64
  /// The logs from the floor on.
  var starts: [LogStart]
  /// The part of history before them that is kept.
  var history: History?
}

extension LogHeader {
  /// The lost header of a log that continues where `line` ends.
  init(lostBy log: NamedLog, of identity: DatabaseIdentity, behind line: RecoveredLog) {
    self.init(
      number: log.number, identity: identity, salt: log.salt, kind: .normal, base: line.end,
      previous: line.number, previousLength: line.length, firstSequence: line.sequence.next)
  }
}
