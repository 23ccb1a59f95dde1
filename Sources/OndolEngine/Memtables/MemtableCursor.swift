// Walks a memtable's rows as one snapshot sees them: for each key the newest version that is not
// newer than the snapshot. Each backward step is a search, because the list has no links back;
// memtables are small.

/// A position among the visible rows of a memtable.
final class MemtableCursor {
  private let memtable: Memtable
  private let sequence: SequenceNumber
  private var node = 0

  init(_ memtable: Memtable, upTo sequence: SequenceNumber) {
    self.memtable = memtable
    self.sequence = sequence
  }

  var isValid: Bool { node != 0 }
  var kind: RowKind { memtable.kind(of: node) }
  /// The commit of the current row.
  var commit: SequenceNumber { memtable.sequence(of: node) }

  var key: RawSpan {
    @_lifetime(borrow self)
    get { memtable.key(of: node, heldBy: self) }
  }

  var value: RawSpan {
    @_lifetime(borrow self)
    get { memtable.value(of: node, heldBy: self) }
  }

  /// The current row alone.
  var window: RowWindow {
    guard isValid else { return RowWindow() }
    let memtable = memtable
    return RowWindow(kind, key: memtable.key(of: node), value: memtable.value(of: node))
  }

  func seekToFirst() {
    node = memtable.node(after: 0)
    passOverHidden()
  }

  func seekToLast() {
    node = memtable.lastNode()
    settleOnVisible()
  }

  func seek(atOrAfter key: RawSpan) {
    node = memtable.firstNode(atOrAfter: key, upTo: sequence)
    passOverHidden()
  }

  func seek(atOrBefore key: RawSpan) {
    let memtable = memtable
    node = memtable.firstNode(atOrAfter: key, upTo: sequence)
    if node != 0, memtable.key(of: node).compare(key) == 0 { return }
    node = memtable.lastNode(before: key)
    settleOnVisible()
  }

  func next() {
    let passed = node
    repeat {
      node = memtable.node(after: node)
    } while node != 0 && memtable.haveEqualKeys(node, passed)
    passOverHidden()
  }

  func previous() {
    node = memtable.lastNode(beforeKeyOf: node)
    settleOnVisible()
  }

  /// Moves on to the first version that is old enough, which may be another key's.
  private func passOverHidden() {
    while node != 0, memtable.sequence(of: node) > sequence { node = memtable.node(after: node) }
  }

  /// Moves from the oldest version of a key to the newest that is old enough, or back to an earlier
  /// key.
  private func settleOnVisible() {
    while node != 0 {
      let version = memtable.version(of: node, upTo: sequence)
      if version != 0 {
        node = version
        return
      }
      node = memtable.lastNode(beforeKeyOf: node)
    }
  }
}
