// A merge, or one of its halves, as a machine of steps: each reads and writes so many bytes on a
// merging thread and returns, so that between steps others have their turn, the merge can rest, and
// closing the database need not wait for its end.

/// One range of keys of a merge.
final class MergePart: @unchecked Sendable {
  // Safe: its steps run one after the other, each on the worker's thread, and the job looks at the
  // result behind the last.

  let worker: any Worker
  private let runs: [Run]
  private let lower: [UInt8]?
  private let upper: [UInt8]?
  private let writer: RunWriter
  private var rows: MergeCursor?

  /// Rows from `lower` on and before `upper`; no bound where nil.
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

  /// Merges about so many bytes. False when all is done.
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
