// The listeners to the tree, and the way from a commit to those it concerns. A commit gives the
// rows it changed, and a row concerns the listeners at its node and above it. So the lookup of a
// row descends through the observed places and ends where no listener is further down. Listeners
// elsewhere cost nothing. Stage 6 of the write path.

internal import OndolEngine

/// All listeners to the tree of a database.
final class TreeObservers: Sendable {
  /// The listeners at a node, and the observed nodes below it.
  fileprivate struct Place: Sendable {
    var inboxes: [TreeInbox] = []
    var children: [[UInt8]: Place] = [:]

    var isEmpty: Bool { inboxes.isEmpty && children.isEmpty }

    mutating func change(_ way: ArraySlice<[UInt8]>, _ body: (inout [TreeInbox]) -> Void) {
      guard let first = way.first else { return body(&inboxes) }
      var child = children.removeValue(forKey: first) ?? Place()
      child.change(way.dropFirst(), body)
      if !child.isEmpty { children[first] = child }
    }

    func visit(_ body: (TreeInbox) -> Void) {
      for inbox in inboxes { body(inbox) }
      for child in children.values { child.visit(body) }
    }
  }

  private struct State: Sendable {
    var root = Place()
    var isClosed = false
  }

  private let state = Guarded(State())

  /// The number of listeners.
  var count: Int {
    var inboxes: Set<ObjectIdentifier> = []
    let root = state.withLock { $0.root }
    root.visit { inboxes.insert(ObjectIdentifier($0)) }
    return inboxes.count
  }

  // MARK: - Adding and removing listeners

  /// Sends an inbox all changes at these places from now on.
  func attach(_ inbox: TreeInbox, at paths: [TreePath]) {
    let isClosed = state.withLock { state in
      guard !state.isClosed else { return true }
      for path in Set(paths) { state.root.change(path.components[...]) { $0.append(inbox) } }
      return false
    }
    if isClosed { inbox.finish() }
  }

  func detach(_ inbox: TreeInbox, from paths: [TreePath]) {
    state.withLock { state in
      for path in Set(paths) {
        state.root.change(path.components[...]) { $0.removeAll { $0 === inbox } }
      }
    }
  }

  /// Ends all listening.
  func close() {
    let root = state.withLock { state in
      state.isClosed = true
      defer { state.root = Place() }
      return state.root
    }
    root.visit { $0.finish() }
  }

  // MARK: - Commits

  private struct Concerned {
    var inbox: TreeInbox
    var changes: [TreeRowChange]
  }

  /// Announces a commit to the listeners it concerns, and returns the wakeups, deepest listeners
  /// first.
  func announce(_ changes: [TreeRowChange], _ sequence: SequenceNumber) -> [Wakeup] {
    guard !changes.isEmpty else { return [] }
    return state.withLock { state in
      guard !state.root.isEmpty else { return [] }
      var concerned: [Concerned] = []
      var positions: [ObjectIdentifier: Int] = [:]
      for change in changes {
        state.root.find(change.key) { inbox in
          let identity = ObjectIdentifier(inbox)
          guard let position = positions[identity] else {
            positions[identity] = concerned.count
            concerned.append(Concerned(inbox: inbox, changes: [change]))
            return
          }
          // The same inbox at several places on the way is notified once.
          if concerned[position].changes.last?.key != change.key {
            concerned[position].changes.append(change)
          }
        }
      }
      if concerned.count > 1 { concerned.sort { $0.inbox.depth > $1.inbox.depth } }
      return concerned.compactMap { $0.inbox.take($0.changes, sequence) }
    }
  }

  /// Notifies all listeners that anything may have changed, in a read-only database, and returns
  /// the wakeups.
  func invalidate() -> [Wakeup] {
    var wakeups: [Wakeup] = []
    let root = state.withLock { $0.root }
    root.visit { inbox in
      if let wakeup = inbox.invalidate() { wakeups.append(wakeup) }
    }
    return wakeups
  }
}

extension TreeObservers.Place {
  /// Visits the listeners at the node whose row has this key, and at the nodes above it.
  fileprivate func find(_ key: [UInt8], _ visit: (TreeInbox) -> Void) {
    var place = self
    var offset = TreeKey.root.count
    while true {
      for inbox in place.inboxes { visit(inbox) }
      guard !place.children.isEmpty, offset < key.count,
        let end = TreeKey.end(of: key.bytes, from: offset),
        let next = place.children[Array(key[offset..<end])]
      else { return }
      place = next
      offset = end
    }
  }
}

extension TreePath {
  /// The components of its keys.
  var components: [[UInt8]] { keys.map { TreeKey.component($0) } }
}
