// A source of rows, behind a switch instead of an existential: a step costs a branch.

/// A memtable's, a run's or a store's rows in order.
enum RowSource {
  case memtable(MemtableCursor)
  case run(RunCursor)
  case remote(RemoteCursor)

  var isValid: Bool {
    switch self {
    case .memtable(let cursor): cursor.isValid
    case .run(let cursor): cursor.isValid
    case .remote(let cursor): cursor.isValid
    }
  }

  /// The key, borrowed from the holder of this source.
  @_lifetime(borrow owner)
  func key<Owner: ~Copyable>(heldBy owner: borrowing Owner) -> RawSpan {
    switch self {
    case .memtable(let cursor): held(cursor.key, by: owner)
    case .run(let cursor): held(cursor.key, by: owner)
    case .remote(let cursor): held(cursor.key, by: owner)
    }
  }

  /// The file of the current row; nil when it is in memory only.
  var fileName: String? {
    switch self {
    case .memtable, .remote: nil
    case .run(let cursor): cursor.fileName
    }
  }

  /// The current row and those beside it in memory.
  var window: RowWindow {
    switch self {
    case .memtable(let cursor): cursor.window
    case .run(let cursor): cursor.window
    case .remote(let cursor): cursor.window
    }
  }

  /// The value itself, wherever it is stored.
  @inline(__always)
  @_lifetime(borrow owner)
  func resolvedValue<Owner: ~Copyable>(
    heldBy owner: borrowing Owner
  ) throws(EngineError) -> RawSpan {
    switch self {
    case .memtable(let cursor): held(cursor.value, by: owner)
    case .run(let cursor): held(try cursor.resolvedValue, by: owner)
    case .remote(let cursor): held(cursor.value, by: owner)
    }
  }

  /// Moves to another row of the same window.
  func move(to window: RowWindow) {
    switch self {
    case .memtable, .remote: break
    case .run(let cursor): cursor.move(to: window)
    }
  }

  /// Makes moves that would wait for a file throw `.wouldBlock` instead.
  func forbidBlocking() {
    switch self {
    case .memtable: break
    case .run(let cursor): cursor.mayBlock = false
    case .remote(let cursor): cursor.mayBlock = false
    }
  }

  func seekToFirst() throws(EngineError) {
    switch self {
    case .memtable(let cursor): cursor.seekToFirst()
    case .run(let cursor): try cursor.seekToFirst()
    case .remote(let cursor): try cursor.seekToFirst()
    }
  }

  func seekToLast() throws(EngineError) {
    switch self {
    case .memtable(let cursor): cursor.seekToLast()
    case .run(let cursor): try cursor.seekToLast()
    case .remote(let cursor): try cursor.seekToLast()
    }
  }

  func seek(atOrAfter key: RawSpan) throws(EngineError) {
    switch self {
    case .memtable(let cursor): cursor.seek(atOrAfter: key)
    case .run(let cursor): try cursor.seek(atOrAfter: key)
    case .remote(let cursor): try cursor.seek(atOrAfter: key)
    }
  }

  func seek(atOrBefore key: RawSpan) throws(EngineError) {
    switch self {
    case .memtable(let cursor): cursor.seek(atOrBefore: key)
    case .run(let cursor): try cursor.seek(atOrBefore: key)
    case .remote(let cursor): try cursor.seek(atOrBefore: key)
    }
  }

  func next() throws(EngineError) {
    switch self {
    case .memtable(let cursor): cursor.next()
    case .run(let cursor): try cursor.next()
    case .remote(let cursor): try cursor.next()
    }
  }

  func previous() throws(EngineError) {
    switch self {
    case .memtable(let cursor): cursor.previous()
    case .run(let cursor): try cursor.previous()
    case .remote(let cursor): try cursor.previous()
    }
  }
}
