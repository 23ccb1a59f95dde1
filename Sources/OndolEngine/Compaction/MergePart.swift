// A merge, or half of one, as a state machine of steps. Each step reads and writes a number of
// bytes on a merging thread and returns. Between steps other work gets its turn, the merge can
// pause, and closing the database need not wait for its end.

/// One range of keys of a merge.
final class MergePart: @unchecked Sendable {
  // Safe: the steps run one after the other, each on the worker's thread, and the job reads the
  // result after the last one.

  let worker: any Worker
  private let runs: [Run]
  private let lower: [UInt8]?
  private let upper: [UInt8]?
  private let writer: RunWriter
  private var rows: MergeCursor?

  /// Merges the rows from `lower` up to but not including `upper`. A nil bound is no bound.
  init(
    _ runs: [Run], from lower: [UInt8]?, to upper: [UInt8]?, writer: RunWriter,
    worker: any Worker
  ) {
    self.runs = runs
    self.lower = lower
    self.upper = upper
    self.writer = writer
    self.worker = worker
  }

  var output: RunOutput { writer.output }
  var made: [String] { writer.made }
  var rawBytes: UInt64 { writer.rawBytes }

  /// Merges about this many bytes. Returns false when the merge is complete.
  func advance(by bytes: UInt64) throws(EngineError) -> Bool {
    if rows == nil {
      var cursor = MergeCursor(runs.map { .run($0.cursor(keepsBlocks: false)) })
      if let lower {
        try cursor.seek(atOrAfter: lower.bytes)
      } else {
        try cursor.seekToFirst()
      }
      rows = consume cursor
    }
    guard var cursor = rows.take() else { return false }
    let hasMore = try writer.take(&cursor, before: upper, atMost: bytes)
    if hasMore { rows = consume cursor }
    return hasMore
  }
}
