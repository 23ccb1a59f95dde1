struct RecoveredLog: Sendable { var sequence: SequenceNumber; var time: Int64; var end: LogPosition; var number: FileNumber; var length: UInt64 }
