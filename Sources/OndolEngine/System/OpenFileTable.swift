// Limits the number of files that databases keep open. A database has a file for every few
// megabytes of rows, and a process may have only some hundred files open in all. So descriptors are
// lent: a file that is read gets one, and when the limit is reached, the least recently used one is
// closed. A running read keeps its descriptor until it ends, whatever the table does meanwhile. The
// databases of a process share one table. A database with its own limit has its own table.
//
// Only reads that need a file use the table, never those whose block is in memory.
//
// A reader alongside a writer also has *held* files. The writer may remove them at any moment, and
// only an open file outlives its name. They are closed last.

/// The open files, up to a limit.
package final class OpenFileTable: Sendable {
  /// The table of all databases without their own limits.
  static let process = OpenFileTable(limit: FileLimit.forReads(of: nil))

  /// A file's position in the table, open or not.
  typealias Ticket = Int

  private let limit: Int
  /// Another table, whose files are also closed when no descriptor is free.
  private let neighbour: OpenFileTable?
  private let state: Guarded<State>

  /// - Parameter limit: the most files open at once, at least one. Running reads may keep a few
  ///   more open until they end.
  init(limit: Int, beside neighbour: OpenFileTable? = nil) {
    self.limit = max(1, limit)
    self.neighbour = neighbour
    state = Guarded(State())
  }

  /// A position for one more file.
  func makeTicket() -> Ticket {
    state.withLock { state in
      state.lastTicket += 1
      return state.lastTicket
    }
  }

  /// The number of open files.
  var count: Int { state.withLock { $0.count } }

  /// The number of further files that can be held.
  var heldRoom: Int { state.withLock { max(0, heldLimit - $0.held.count) } }

  /// The rest is for files that are opened and closed.
  private var heldLimit: Int { limit - (limit + 3) / 4 }

  // MARK: - Files

  /// The file with this ticket. If it is not open, `open` opens it. When too many are open, the
  /// least recently used one is closed.
  ///
  /// - Parameter isHeld: whether it stays open when other files are opened. It may be set only
  ///   while there is room.
  func file(
    _ ticket: Ticket, isHeld: Bool = false, open: () throws(EngineError) -> any File
  ) throws(EngineError) -> any File {
    if let file = current(ticket) { return file }
    // One file is closed before another is opened.
    _ = state.withLock { state in state.count >= limit ? state.files.removeOldest() : nil }
    let opened = try withDescriptors(open)
    let (file, closed) = state.withLock { state -> (any File, (any File)?) in
      if let file = state.use(ticket) { return (file, nil) }
      if isHeld, state.held.count < heldLimit {
        state.held[ticket] = opened
      } else {
        state.files.insert(opened, ticket)
      }
      return (opened, state.count > limit ? state.files.removeOldest() : nil)
    }
    // Closed outside the lock.
    withExtendedLifetime(closed) {}
    return file
  }

  /// The file with this ticket, if it is open.
  func current(_ ticket: Ticket) -> (any File)? {
    state.withLock { $0.use(ticket) }
  }

  /// Closes a file that is no longer needed.
  func forget(_ ticket: Ticket) {
    let closed = state.withLock { state in
      state.held.removeValue(forKey: ticket) ?? state.files.remove(ticket)
    }
    withExtendedLifetime(closed) {}
  }

  // MARK: - Lack of descriptors

  /// Runs `body`, which opens a file. If the process or the system has no descriptor left for it,
  /// this closes some of this table's files, then of the neighbour's, and tries again, until it
  /// succeeds or no file is left to close.
  func withDescriptors<R>(_ body: () throws(EngineError) -> R) throws(EngineError) -> R {
    while true {
      do throws(EngineError) {
        return try body()
      } catch {
        guard error.isLackOfDescriptors, closeHalf() || neighbour?.closeHalf() ?? false else {
          throw error
        }
      }
    }
  }

  /// Closes half of the open files, but at least one. Returns false if none is open.
  private func closeHalf() -> Bool {
    let closed = state.withLock { state -> [any File] in
      var closed: [any File] = []
      let count = (state.count + 1) / 2
      while closed.count < count, let file = state.removeOldest() { closed.append(file) }
      return closed
    }
    return !closed.isEmpty
  }
}

extension OpenFileTable {
  private struct State: Sendable {
    var lastTicket = 0
    var held: [Ticket: any File] = [:]
    var files = RecencyList()

    var count: Int { held.count + files.count }

    mutating func use(_ ticket: Ticket) -> (any File)? { held[ticket] ?? files.use(ticket) }

    /// Held files are closed only if there are no others.
    mutating func removeOldest() -> (any File)? {
      if let file = files.removeOldest() { return file }
      return held.popFirst()?.value
    }
  }

  /// Files ordered by their last use.
  private struct RecencyList: Sendable {
    private struct Node: Sendable {
      var ticket: Ticket
      var file: any File
      /// The positions of its neighbours; -1 if there is none.
      var newer: Int
      var older: Int
    }

    private var nodes: [Node?] = []
    private var free: [Int] = []
    private var places: [Ticket: Int] = [:]
    private var newest = -1
    private var oldest = -1

    var count: Int { places.count }

    /// Returns the file and makes it the most recently used.
    mutating func use(_ ticket: Ticket) -> (any File)? {
      guard let place = places[ticket] else { return nil }
      if place != newest, let node = unlink(place) { link(node, at: place) }
      return nodes[place]?.file
    }

    mutating func insert(_ file: any File, _ ticket: Ticket) {
      let place = free.popLast() ?? nodes.count
      if place == nodes.count { nodes.append(nil) }
      places[ticket] = place
      link(Node(ticket: ticket, file: file, newer: -1, older: -1), at: place)
    }

    mutating func remove(_ ticket: Ticket) -> (any File)? {
      guard let place = places.removeValue(forKey: ticket) else { return nil }
      free.append(place)
      return unlink(place)?.file
    }

    mutating func removeOldest() -> (any File)? {
      guard oldest >= 0, let ticket = nodes[oldest]?.ticket else { return nil }
      return remove(ticket)
    }

    /// Inserts a node before all others.
    private mutating func link(_ node: Node, at place: Int) {
      var node = node
      node.newer = -1
      node.older = newest
      if newest >= 0 { nodes[newest]?.newer = place } else { oldest = place }
      newest = place
      nodes[place] = node
    }

    private mutating func unlink(_ place: Int) -> Node? {
      guard let node = nodes[place] else { return nil }
      if node.newer >= 0 { nodes[node.newer]?.older = node.older } else { newest = node.older }
      if node.older >= 0 { nodes[node.older]?.newer = node.newer } else { oldest = node.newer }
      nodes[place] = nil
      return node
    }
  }
}
