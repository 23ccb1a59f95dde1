// The manifest's entry of a log that recovery needs, beside where the first one begins: enough to
// read its frames when its own header is lost. A log's header is one page of the device, and losing
// it would lose everything acknowledged after it.

/// The start of a log in the one order of commits.
struct LogStart: Sendable, Equatable {
  var number: FileNumber
  /// The position of its first byte.
  var base: LogPosition
  /// The last commit before it, and that commit's time.
  var sequence: SequenceNumber
  var time: Int64

  /// That commit.
  var before: CommitPoint { CommitPoint(sequence: sequence, time: time) }
}

/// A log as the manifest names it.
struct NamedLog: Sendable, Equatable {
  var number: FileNumber
  /// The initial bytes of its frames' checksums.
  var salt: UInt64
  /// Bytes that contain commits and were on the device when it was named: all of them in a log that
  /// was written as a whole, none in one that commits go into.
  var length: UInt64
}

extension NamedLog {
  /// A log that commits go into.
  init(_ log: LogFile) {
    self.init(number: log.number, salt: log.salt, length: 0)
  }

  /// A log that commits will go into.
  init(_ spare: SpareLog) {
    self.init(number: spare.number, salt: spare.salt, length: 0)
  }

  func encode(into bytes: inout [UInt8]) {
    bytes.appendVarint(number.rawValue)
    bytes.appendLittleEndian(salt)
    bytes.appendVarint(length)
  }

  init(_ reader: inout ByteReader) throws(MalformedBytes) {
    self.init(
      number: FileNumber(rawValue: try reader.varint()), salt: try reader.littleEndian(),
      length: try reader.varint())
  }
}
