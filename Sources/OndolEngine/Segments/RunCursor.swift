// Walks a run row by row in both directions: scans, merges and compactions read through it. The
// block under the cursor is pinned, so a step is an addition and a comparison. Only the step into
// the next block uses the index, and only a block that is not in memory is read from the file.

/// A position in a run. Must not be shared between threads.
final class RunCursor {
  let run: Run
  private let keepsBlocks: Bool
  /// Whether a move may wait for the file. If not, it throws `.wouldBlock` instead, and the cursor
  /// has no position.
  var mayBlock = true

  /// The block under the cursor, held by `pins`, and the row in it. Invalid: `row` is not below
  /// `rowCount`.
  private var block: Block?
  private var row = 0
  private var rowCount = 0

  /// The segment under the cursor and the state of its blocks.
  private var segmentIndex = 0
  private var table: SegmentTable?
  private var indexNumber = 0
  private var indexRow = 0
  /// Data blocks entered consecutively since the last seek.
  private var blocksInOrder = 0
  /// Blocks before this row of the index block have been announced to the system.
  private var advisedEnd = 0
  private let pins = HeldBlocks()
  private let keyBuffer = KeyBuffer()
  /// The last requested separated value.
  private var heldValue: HeldValue?

  init(_ run: Run, keepsBlocks: Bool) {
    self.run = run
    self.keepsBlocks = keepsBlocks
  }

  deinit {
    // Before the run is released, which has the counts of the pins.
    pins.free()
    keyBuffer.free()
  }

  /// Whether the cursor is at a row.
  @inline(__always)
  var isValid: Bool { row < rowCount }

  /// The file under the cursor.
  var fileName: String { run.segments[segmentIndex].metadata.number.segmentName }

  /// The kind of the row under the cursor.
  @inline(__always)
  var kind: RowKind { current.kind(row) }

  /// The row's bytes under the cursor: its value, or the pointer to it; valid until the cursor
  /// moves.
  @inline(__always)
  var value: RawSpan {
    @_lifetime(borrow self)
    get { current.value(row, heldBy: self) }
  }

  /// The value of the row under the cursor, from its value file if the row has only a pointer;
  /// valid until the cursor moves.
  @inline(__always)
  var resolvedValue: RawSpan {
    @_lifetime(borrow self)
    get throws(EngineError) {
      if kind != .valuePointer { return value }
      return try separatedValue()
    }
  }

  @inline(never)
  @_lifetime(borrow self)
  private func separatedValue() throws(EngineError) -> RawSpan {
    let held = heldValue ?? HeldValue(run, keeps: keepsBlocks)
    heldValue = held
    return OndolEngine.held(try held.value(at: value, mayBlock: mayBlock), by: self)
  }

  /// The key of the row under the cursor, assembled here; valid until the cursor moves.
  @inline(__always)
  var key: RawSpan {
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

  /// All rows of the block under the cursor; valid until the cursor moves to another.
  var window: RowWindow {
    guard let block, row < rowCount else { return RowWindow() }
    return RowWindow(block, at: row, keyBuffer)
  }

  /// Moves to another row of the same window.
  func move(to window: RowWindow) {
    row = window.row
  }

  // MARK: - Steps

  /// Moves to the next row; after the last one the cursor is invalid.
  @inline(__always)
  func next() throws(EngineError) {
    precondition(isValid, "a cursor that is nowhere")
    row += 1
    if row == rowCount { try enterNextBlock() }
  }

  /// Moves to the previous row; before the first one the cursor is invalid.
  @inline(__always)
  func previous() throws(EngineError) {
    precondition(isValid, "a cursor that is nowhere")
    if row > 0 { row -= 1 } else { try enterPreviousBlock() }
  }

  // MARK: - Seeks

  /// Moves to the first row; invalid when there is none.
  func seekToFirst() throws(EngineError) {
    leave()
    try enter(segment: 0, atEnd: false)
  }

  /// Moves to the last row; invalid when there is none.
  func seekToLast() throws(EngineError) {
    leave()
    try enter(segment: run.segments.count - 1, atEnd: true)
  }

  /// Moves to the first row whose key is `key` or above.
  func seek(atOrAfter key: RawSpan) throws(EngineError) {
    leave()
    segmentIndex = run.segmentIndex(atOrAfter: key)
    guard segmentIndex < run.segments.count else { return }
    let table = try openTable(segmentIndex)
    self.table = table
    indexNumber = table.top.lowerBound(key)
    guard indexNumber < table.top.rowCount else { return try enterNextSegment() }
    let index = pins.hold(try indexBlock(indexNumber, table), at: .index)
    indexRow = index.lowerBound(key)
    guard indexRow < index.rowCount else {
      indexRow = index.rowCount - 1
      return try enterNextBlock()
    }
    try enterDataBlock(seeking: key, table, index)
    if row == rowCount { try enterNextBlock() }
  }

  /// Moves to the last row whose key is `key` or below.
  func seek(atOrBefore key: RawSpan) throws(EngineError) {
    try seek(atOrAfter: key)
    guard isValid else { return try seekToLast() }
    if self.key.compare(key) != 0 { try previous() }
  }

  // MARK: - Blocks

  /// The position of the current row in the files of the run; nil when there is none.
  var dataPlace: (segment: Int, index: Int, indexBlock: Block, block: Int, row: Int)? {
    guard isValid, let index = pins[.index] else { return nil }
    return (segmentIndex, indexNumber, index, indexRow, row)
  }

  /// Becomes invalid and releases the blocks.
  func leave() {
    block = nil
    blocksInOrder = 0
    advisedEnd = 0
    row = 0
    rowCount = 0
    pins.letGo()
  }

  @inline(never)
  private func enterNextBlock() throws(EngineError) {
    row = 0
    rowCount = 0
    blocksInOrder += 1
    if indexRow + 1 < indexCount {
      indexRow += 1
      return try enterDataBlock(atEnd: false)
    }
    guard let table, indexNumber + 1 < table.top.rowCount else { return try enterNextSegment() }
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
    blocksInOrder = 0
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
    let table = try openTable(index)
    self.table = table
    try enter(index: atEnd ? table.top.rowCount - 1 : 0, atEnd: atEnd)
  }

  private func enter(index number: Int, atEnd: Bool) throws(EngineError) {
    guard let table else { preconditionFailure("no segment") }
    indexNumber = number
    advisedEnd = 0
    let index = pins.hold(try indexBlock(number, table), at: .index)
    indexRow = atEnd ? index.rowCount - 1 : 0
    try enterDataBlock(atEnd: atEnd)
  }

  /// Pins the data block that the place in the index points to, and moves to its first or last row.
  private func enterDataBlock(atEnd: Bool) throws(EngineError) {
    guard let table, let index = pins[.index] else { preconditionFailure("no index block") }
    let block = enter(try dataBlock(table, index))
    if !atEnd, indexRow + 1 < index.rowCount {
      table.slots.prefetchBlock(table.dataSlot(indexNumber, indexRow + 1))
    }
    row = atEnd ? block.rowCount - 1 : 0
    rowCount = block.rowCount
  }

  /// Pins the data block that the place in the index points to, and moves to the first row whose
  /// key is `key` or above; past the last when there is none.
  private func enterDataBlock(
    seeking key: RawSpan, _ table: SegmentTable, _ index: Block
  ) throws(EngineError) {
    let pin = try dataBlock(table, index)
    if let position = index.position(of: key, before: indexRow) {
      pin.block.prefetch(around: Int(position * table.meanRows))
    }
    let block = enter(pin)
    row = block.lowerBound(key)
    rowCount = block.rowCount
  }

  @inline(__always)
  private func enter(_ pin: consuming PinnedBlock) -> Block {
    let block = pins.hold(pin, at: .data)
    self.block = block
    keyBuffer.enter(block)
    return block
  }

  private func openTable(_ index: Int) throws(EngineError) -> SegmentTable {
    if let table = run.table.table(index) { return table }
    guard mayBlock else { throw .wouldBlock }
    return try run.table(index)
  }

  private func indexBlock(
    _ number: Int, _ table: SegmentTable
  ) throws(EngineError) -> PinnedBlock {
    if let pin = table.slots.pinOrResident(number) { return pin }
    guard mayBlock else { throw .wouldBlock }
    return try run.segments[segmentIndex].open().loadIndexBlock(number, keep: keepsBlocks)
  }

  private func dataBlock(
    _ table: SegmentTable, _ indexBlock: Block
  ) throws(EngineError) -> PinnedBlock {
    if let pin = table.slots.pin(table.dataSlot(indexNumber, indexRow)) { return pin }
    guard mayBlock else { throw .wouldBlock }
    let segment = try run.segments[segmentIndex].open()
    if blocksInOrder >= Self.blocksBeforeAdvice, indexRow >= advisedEnd {
      advisedEnd = min(indexBlock.rowCount, indexRow + Self.blocksAdvised)
      try? segment.adviseAhead(indexBlock, indexRow..<advisedEnd)
    }
    return try segment.loadDataBlock(indexNumber, indexBlock, indexRow, keep: keepsBlocks)
  }

  /// Blocks that a walk enters consecutively before it is expected to continue.
  private static let blocksBeforeAdvice = 2
  /// 1 MiB before compression with blocks of the usual size.
  private static let blocksAdvised = 128

  private var indexCount: Int { pins[.index]?.rowCount ?? 0 }
}
