// Merges sources into one order of keys. Sources are ordered newest first; if several have a key,
// the newest row counts and the others are skipped. Tombstones are included: reads for users drop
// them, and a flush above older runs keeps them.
//
// The number of sources is small (a few memtables and runs, one run when settled), so the least key
// is found by a walk over them. After that, all rows of its block that come before every other
// source's key form a window, which needs no further look at the sources.

/// The rows of several sources, one row a key.
struct MergeCursor: ~Copyable {
  enum Direction {
    case forward
    case backward
  }

  private let sources: [RowSource]
  /// The source of the current row; past the end when there is none.
  private var current: Int
  private var direction = Direction.forward
  /// The current row and its neighbours that come before other sources' rows, in both directions.
  private(set) var window = RowWindow()

  init(_ sources: [RowSource]) {
    self.sources = sources
    current = sources.count
  }

  var isValid: Bool { window.isValid }
  var kind: RowKind { window.kind }

  var key: RawSpan {
    @_lifetime(borrow self)
    get { window.key }
  }

  /// The row's bytes; see `kind`.
  var value: RawSpan {
    @_lifetime(borrow self)
    get { window.value }
  }

  /// The source of the current row, positioned on it.
  var currentSource: RowSource {
    sources[current].move(to: window)
    return sources[current]
  }

  /// The order of the current key relative to `other`.
  func compare(_ other: RawSpan) -> Int { window.key.compare(other) }

  /// Records that the caller moved to another row of the window itself.
  mutating func move(to row: Int) {
    window.row = row
  }

  /// Makes moves that would wait for a file throw `.wouldBlock` instead; after that, only a seek is
  /// allowed.
  func forbidBlocking() {
    for source in sources { source.forbidBlocking() }
  }

  // MARK: - Seeks

  mutating func seekToFirst() throws(EngineError) {
    for source in sources { try source.seekToFirst() }
    select(.forward)
  }

  mutating func seekToLast() throws(EngineError) {
    for source in sources { try source.seekToLast() }
    select(.backward)
  }

  mutating func seek(atOrAfter key: RawSpan) throws(EngineError) {
    for source in sources { try source.seek(atOrAfter: key) }
    select(.forward)
  }

  mutating func seek(atOrBefore key: RawSpan) throws(EngineError) {
    for source in sources { try source.seek(atOrBefore: key) }
    select(.backward)
  }

  // MARK: - Steps

  mutating func next() throws(EngineError) {
    window.row += 1
    if window.row >= window.end { try leaveWindow(.forward) }
  }

  mutating func previous() throws(EngineError) {
    window.row -= 1
    if window.row < window.first { try leaveWindow(.backward) }
  }

  private mutating func leaveWindow(_ direction: Direction) throws(EngineError) {
    precondition(current < sources.count, "a cursor that is nowhere")
    window.row += direction == .forward ? -1 : 1
    let source = sources[current]
    source.move(to: window)
    if sources.count > 1 { try stepOthers(direction) }
    if direction == .forward { try source.next() } else { try source.previous() }
    select(direction)
  }

  /// Positions the other sources on the side of the current key that `direction` leads to: those at
  /// the same key hold older rows of it.
  private mutating func stepOthers(_ direction: Direction) throws(EngineError) {
    let turns = direction != self.direction
    for index in sources.indices where index != current {
      let source = sources[index]
      if turns {
        if direction == .forward {
          try source.seek(atOrAfter: key)
        } else {
          try source.seek(atOrBefore: key)
        }
      }
      guard source.isValid, order(index, current) == 0 else { continue }
      if direction == .forward { try source.next() } else { try source.previous() }
    }
  }

  private func order(_ left: Int, _ right: Int) -> Int {
    sources[left].key(heldBy: self).compare(sources[right].key(heldBy: self))
  }

  // MARK: - Selection

  /// Finds the first key in `direction`, from the newest source among equals, and its window.
  private mutating func select(_ direction: Direction) {
    self.direction = direction
    guard sources.count > 1 else {
      current = 0
      window = sources.first?.window ?? RowWindow()
      if !window.isValid { current = sources.count }
      return
    }
    current = first(in: direction, beside: nil) ?? sources.count
    guard current < sources.count else { return window = RowWindow() }
    var window = sources[current].window
    let second = first(in: direction, beside: current)
    if direction == .forward {
      window.cutInFront()
      if let second { window.cut(behindCurrentFrom: sources[second].key(heldBy: self)) }
    } else {
      window.cutBehind()
      if let second { window.cut(inFrontOfCurrentUpTo: sources[second].key(heldBy: self)) }
    }
    self.window = window
  }

  /// The source with the first key in `direction`.
  private func first(in direction: Direction, beside left: Int?) -> Int? {
    var first: Int?
    for index in sources.indices where index != left && sources[index].isValid {
      guard let best = first else {
        first = index
        continue
      }
      let order = order(index, best)
      if direction == .forward ? order < 0 : order > 0 { first = index }
    }
    return first
  }
}
