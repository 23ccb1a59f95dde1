// Walks over a store's rows as of a base, page after page. A step into a page that is not in memory
// fetches it, or reports that it would block. Each further page is larger, because a walk that has
// continued is likely to continue.

/// A position among the rows of a store. Must not be shared between threads.
final class RemoteCursor {
  private let rows: RemoteRows
  private let lower: [UInt8]
  private let upper: [UInt8]
  /// Whether a move may wait for the store. If not, it throws `.wouldBlock` instead, and the cursor
  /// has no position.
  var mayBlock = true
  private var page: RemotePage?
  private var row = 0
  /// Rows to fetch next.
  private var fetched = RemoteRows.leastFetched

  /// Rows from `lower` on and before `upper`; no bound when that is empty.
  init(_ rows: RemoteRows, from lower: [UInt8], to upper: [UInt8]) {
    self.rows = rows
    self.lower = lower
    self.upper = upper
  }

  var isValid: Bool { page != nil }

  private var current: RemotePage {
    guard let page else { preconditionFailure("a cursor that is nowhere") }
    return page
  }

  var key: RawSpan {
    @_lifetime(borrow self)
    get { current.key(row, heldBy: self) }
  }

  var value: RawSpan {
    @_lifetime(borrow self)
    get { current.value(row, heldBy: self) }
  }

  /// The current row alone.
  var window: RowWindow {
    guard let page else { return RowWindow() }
    return RowWindow(.put, key: page.key(row, heldBy: page), value: page.value(row, heldBy: page))
  }

  func seekToFirst() throws(EngineError) {
    try enter(from: lower)
  }

  func seekToLast() throws(EngineError) {
    try enter(before: upper)
  }

  func seek(atOrAfter key: RawSpan) throws(EngineError) {
    let lower = lower
    try enter(from: key.compare(lower.bytes) < 0 ? lower : key.array)
  }

  func seek(atOrBefore key: RawSpan) throws(EngineError) {
    let upper = upper
    let isBehind = !upper.isEmpty && key.compare(upper.bytes) >= 0
    try enter(before: isBehind ? upper : key.array + [0])
  }

  func next() throws(EngineError) {
    row += 1
    if row < current.count { return }
    let end = current.upper
    page = nil
    if !end.isEmpty { try enter(from: end) }
  }

  func previous() throws(EngineError) {
    row -= 1
    if row >= 0 { return }
    let start = current.lower
    page = nil
    if !start.isEmpty { try enter(before: start) }
  }

  /// Moves to the first row from `key` on.
  private func enter(from key: [UInt8]) throws(EngineError) {
    page = nil
    var key = key
    let upper = upper
    while upper.isEmpty || key.bytes.compare(upper.bytes) < 0 {
      let found = try rows.page(from: key, to: upper, atMost: fetched, mayBlock: mayBlock)
      fetched = min(2 * fetched, RemoteRows.mostFetched)
      let place = found.lowerBound(key.bytes)
      if place < found.count { return stand(on: place, of: found) }
      if found.upper.isEmpty { return }
      key = found.upper
    }
  }

  /// Moves to the last row before `key`; no bound when empty.
  private func enter(before key: [UInt8]) throws(EngineError) {
    page = nil
    var key = key
    let lower = lower
    while key.isEmpty || key.bytes.compare(lower.bytes) > 0 {
      let found = try rows.page(before: key, from: lower, atMost: fetched, mayBlock: mayBlock)
      fetched = min(2 * fetched, RemoteRows.mostFetched)
      let place = key.isEmpty ? found.count : found.lowerBound(key.bytes)
      if place > 0 { return stand(on: place - 1, of: found) }
      if found.lower.isEmpty { return }
      key = found.lower
    }
  }

  private func stand(on place: Int, of found: RemotePage) {
    page = found
    row = place
  }
}
