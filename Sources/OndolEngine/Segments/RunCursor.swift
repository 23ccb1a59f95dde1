// Walks a run row by row in both directions: what scans, merges and compactions read through. The
// block under the cursor is pinned, so a step is an addition and a comparison; only the step into
// the next block looks into the index, and only a block that is not in memory reads the file.

/// A place in a run. Not to be shared between threads.
package final class RunCursor {
  private let run: Run
  private let keepsBlocks: Bool

  /// The block under the cursor, held by `dataPin`, and the row in it. Invalid: `row` is not below
  /// `rowCount`.
  private var block: Block?
  private var row = 0
  private var rowCount = 0

  private var segmentIndex = 0
  private var indexNumber = 0
  private var indexRow = 0
  private var indexPin: PinnedBlock?
  private var dataPin: PinnedBlock?
  private let keyBuffer = KeyBuffer()

  init(_ run: Run, keepsBlocks: Bool) {
    self.run = run
    self.keepsBlocks = keepsBlocks
  }

  /// Whether the cursor is at a row.
  @inline(__always)
  package var isValid: Bool { row < rowCount }

  /// The kind of the row under the cursor.
  @inline(__always)
  package var kind: RowKind { current.kind(row) }

  /// The value of the row under the cursor; valid until the cursor moves.
  @inline(__always)
  package var value: RawSpan {
    @_lifetime(borrow self)
    get { current.value(row, heldBy: self) }
  }

  /// The key of the row under the cursor, put together here; valid until the cursor moves.
  @inline(__always)
  package var key: RawSpan {
    @_lifetime(borrow self)
    get {
      let length = keyBuffer.fill(current, row)
      return keyBuffer.key(length, heldBy: self)
    }
  }

  @inline(__always)
  private var current: Block {
    guard let block, row < rowCount else { preconditionFailure("a cursor that is nowhere") }
    return block
  }

  // MARK: - Steps

  /// Moves to the next row; behind the last one the cursor is invalid.
  @inline(__always)
  package func next() throws(EngineError) {
    precondition(isValid, "a cursor that is nowhere")
    row += 1
    if row == rowCount { try enterNextBlock() }
  }

  /// Moves to the row before; in front of the first one the cursor is invalid.
  @inline(__always)
  package func previous() throws(EngineError) {
    precondition(isValid, "a cursor that is nowhere")
    if row > 0 { row -= 1 } else { try enterPreviousBlock() }
  }

  // MARK: - Seeks

  /// Moves to the first row; invalid when there is none.
  package func seekToFirst() throws(EngineError) {
    leave()
    try enter(segment: 0, atEnd: false)
  }

  /// Moves to the last row; invalid when there is none.
  package func seekToLast() throws(EngineError) {
    leave()
    try enter(segment: run.segments.count - 1, atEnd: true)
  }

  /// Moves to the first row whose key is `key` or above.
  package func seek(atOrAfter key: RawSpan) throws(EngineError) {
    leave()
    segmentIndex = run.segmentIndex(atOrAfter: key)
    guard segmentIndex < run.segments.count else { return }
    let segment = run.segments[segmentIndex]
    let table = try segment.open().table
    indexNumber = table.top.lowerBound(key)
    guard indexNumber < table.top.rowCount else { return try enterNextSegment() }
    let index = try segment.indexBlock(indexNumber, keep: keepsBlocks)
    indexRow = index.block.lowerBound(key)
    let indexCount = index.block.rowCount
    indexPin = consume index
    guard indexRow < indexCount else {
      indexRow = indexCount - 1
      return try enterNextBlock()
    }
    try enterDataBlock(atEnd: false)
    row = current.lowerBound(key)
    if row == rowCount { try enterNextBlock() }
  }

  /// Moves to the last row whose key is `key` or below.
  package func seek(atOrBefore key: RawSpan) throws(EngineError) {
    try seek(atOrAfter: key)
    guard isValid else { return try seekToLast() }
    if self.key.compare(key) != 0 { try previous() }
  }

  // MARK: - Blocks

  /// Becomes invalid and lets go of the blocks.
  private func leave() {
    block = nil
    row = 0
    rowCount = 0
    dataPin = nil
    indexPin = nil
  }

  @inline(never)
  private func enterNextBlock() throws(EngineError) {
    row = 0
    rowCount = 0
    if indexRow + 1 < indexCount {
      indexRow += 1
      return try enterDataBlock(atEnd: false)
    }
    let top = try run.segments[segmentIndex].open().table.top
    guard indexNumber + 1 < top.rowCount else { return try enterNextSegment() }
    try enter(index: indexNumber + 1, atEnd: false)
  }

  private func enterNextSegment() throws(EngineError) {
    let next = segmentIndex + 1
    leave()
    try enter(segment: next, atEnd: false)
  }

  @inline(never)
  private func enterPreviousBlock() throws(EngineError) {
    row = 0
    rowCount = 0
    if indexRow > 0 {
      indexRow -= 1
      return try enterDataBlock(atEnd: true)
    }
    if indexNumber > 0 { return try enter(index: indexNumber - 1, atEnd: true) }
    let previous = segmentIndex - 1
    leave()
    try enter(segment: previous, atEnd: true)
  }

  private func enter(segment index: Int, atEnd: Bool) throws(EngineError) {
    guard index >= 0, index < run.segments.count else { return }
    segmentIndex = index
    let count = try run.segments[index].open().table.top.rowCount
    try enter(index: atEnd ? count - 1 : 0, atEnd: atEnd)
  }

  private func enter(index number: Int, atEnd: Bool) throws(EngineError) {
    indexNumber = number
    indexPin = try run.segments[segmentIndex].indexBlock(number, keep: keepsBlocks)
    indexRow = atEnd ? indexCount - 1 : 0
    try enterDataBlock(atEnd: atEnd)
  }

  /// Pins the data block that the place in the index points to, and goes to its first or last row.
  private func enterDataBlock(atEnd: Bool) throws(EngineError) {
    guard let indexBlock = indexPin?.block else { preconditionFailure("no index block") }
    let pin = try run.segments[segmentIndex].dataBlock(
      indexNumber, indexBlock, indexRow, keep: keepsBlocks)
    let block = pin.block
    dataPin = consume pin
    self.block = block
    keyBuffer.enter(block)
    rowCount = block.rowCount
    row = atEnd ? rowCount - 1 : 0
  }

  private var indexCount: Int { indexPin?.block.rowCount ?? 0 }
}
