// Merges sources into one order of keys. Sources stand newest first; where several have a key, the
// newest row counts and the others are passed over. Tombstones come out too: whoever reads for a
// user drops them, and a flush above older runs keeps them.
//
// The number of sources is small (a few memtables and runs, one run when settled), so the least key
// is found by walking over them.

/// The rows of several sources, one row a key.
struct MergeCursor: ~Copyable {
  private enum Direction {
    case forward
    case backward
  }

  private let sources: [RowSource]
  /// The source of the current row; past the end when there is none.
  private var current: Int
  private var direction = Direction.forward

  init(_ sources: [RowSource]) {
    self.sources = sources
    current = sources.count
  }

  var isValid: Bool { current < sources.count }
  var kind: RowKind { sources[current].kind }

  var key: RawSpan {
    @_lifetime(borrow self)
    get { sources[current].key(heldBy: self) }
  }

  /// The bytes in the row; see `kind`.
  var value: RawSpan {
    @_lifetime(borrow self)
    get { sources[current].value(heldBy: self) }
  }

  /// The value itself, where `value` may be a pointer to it.
  var resolvedValue: RawSpan {
    @_lifetime(borrow self)
    get throws(EngineError) { try sources[current].resolvedValue(heldBy: self) }
  }

  mutating func seekToFirst() throws(EngineError) {
    for source in sources { try source.seekToFirst() }
    direction = .forward
    selectLeast()
  }

  mutating func seekToLast() throws(EngineError) {
    for source in sources { try source.seekToLast() }
    direction = .backward
    selectGreatest()
  }

  mutating func seek(atOrAfter key: RawSpan) throws(EngineError) {
    for source in sources { try source.seek(atOrAfter: key) }
    direction = .forward
    selectLeast()
  }

  mutating func seek(atOrBefore key: RawSpan) throws(EngineError) {
    for source in sources { try source.seek(atOrBefore: key) }
    direction = .backward
    selectGreatest()
  }

  mutating func next() throws(EngineError) {
    if sources.count == 1, direction == .forward {
      try sources[0].next()
      current = sources[0].isValid ? 0 : 1
      return
    }
    if direction == .backward { try turn(.forward) }
    // Sources at the same key as the current one hold older rows of it.
    for index in sources.indices where index != current && sources[index].isValid {
      if order(index, current) == 0 { try sources[index].next() }
    }
    try sources[current].next()
    selectLeast()
  }

  mutating func previous() throws(EngineError) {
    if direction == .forward { try turn(.backward) }
    for index in sources.indices where index != current && sources[index].isValid {
      if order(index, current) == 0 { try sources[index].previous() }
    }
    try sources[current].previous()
    selectGreatest()
  }

  private func order(_ left: Int, _ right: Int) -> Int {
    sources[left].key(heldBy: self).compare(sources[right].key(heldBy: self))
  }

  /// Puts the sources that are not current on this side of the current key.
  private mutating func turn(_ direction: Direction) throws(EngineError) {
    self.direction = direction
    for index in sources.indices where index != current {
      if direction == .forward {
        try sources[index].seek(atOrAfter: key)
      } else {
        try sources[index].seek(atOrBefore: key)
      }
    }
  }

  /// The least key, the newest source first among equals.
  private mutating func selectLeast() {
    current = sources.count
    for index in sources.indices where sources[index].isValid {
      if current == sources.count || order(index, current) < 0 {
        current = index
      }
    }
  }

  private mutating func selectGreatest() {
    current = sources.count
    for index in sources.indices where sources[index].isValid {
      if current == sources.count || order(index, current) > 0 {
        current = index
      }
    }
  }
}
