// How many files databases keep open. One has a file for every few megabytes of rows, and a
// process may have some hundred files open in all, so descriptors are lent: a file that is read has
// one, and when there are as many as there may be, the one that was used longest ago goes. Whoever
// is reading through a descriptor keeps it until that read is done, whatever the table does
// meanwhile. The databases of a process share one table; one that was given a limit has its own.
//
// Only reads that go to a file come here, never one whose block is in memory.
//
// A reader beside a writer has *held* files too: the writer may remove them at any moment, and only
// an open file outlives its name. They go last.

/// The files that are open, at most so many.
package final class OpenFileTable: Sendable {
  /// The table of all databases that were not given limits.
  static let process = OpenFileTable(limit: FileLimit.forReads(of: nil))

  /// A file's place in the table, open or not.
  typealias Ticket = Int

  private let limit: Int
  /// Another one, whose files are closed, too, when there is no descriptor.
  private let neighbour: OpenFileTable?
  private let state: Guarded<State>

  /// - Parameter limit: files open at once, one at least; reads under way may keep some more for as
  ///   long as they take.
  init(limit: Int, beside neighbour: OpenFileTable? = nil) {
    self.limit = max(1, limit)
    self.neighbour = neighbour
    state = Guarded(State())
  }

  /// A place for one more file.
  func makeTicket() -> Ticket {
    state.withLock { state in
      state.lastTicket += 1
      return state.lastTicket
    }
  }

  /// Files that are open now.
  var count: Int { state.withLock { $0.count } }

  /// How many files more can be held.
  var heldRoom: Int { state.withLock { max(0, heldLimit - $0.held.count) } }

  /// What is left belongs to files that come and go.
  private var heldLimit: Int { limit - (limit + 3) / 4 }

  // MARK: - Files

  /// The file with this ticket, opened by `open` when it is not. Closes the one that was used
  /// longest ago when there are too many.
  ///
  /// - Parameter isHeld: whether it stays open though others come; to be asked for only while there
  ///   is room.
  func file(
    _ ticket: Ticket, isHeld: Bool = false, open: () throws(EngineError) -> any File
  ) throws(EngineError) -> any File {
    if let file = current(ticket) { return file }
    // One goes before another comes.
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

  /// Closes a file that nobody asks for any more.
  func forget(_ ticket: Ticket) {
    let closed = state.withLock { state in
      state.held.removeValue(forKey: ticket) ?? state.files.remove(ticket)
    }
    withExtendedLifetime(closed) {}
  }

  // MARK: - Lack of descriptors

  /// Runs `body`, which opens something. When the process or the system has no descriptor left for
  /// it, closes some of ours, then of the neighbour's, and tries again, until it succeeds or there
  /// is none to close.
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

  /// Closes half of what is open, and at least one file; false when there is none.
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

    /// Held files go when there are no others.
    mutating func removeOldest() -> (any File)? {
      if let file = files.removeOldest() { return file }
      return held.popFirst()?.value
    }
  }

  /// Files in the order of their last use.
  private struct RecencyList: Sendable {
    private struct Node: Sendable {
      var ticket: Ticket
      var file: any File
      /// The places of its neighbours; -1 where there is none.
      var newer: Int
      var older: Int
    }

    private var nodes: [Node?] = []
    private var free: [Int] = []
    private var places: [Ticket: Int] = [:]
    private var newest = -1
    private var oldest = -1

    var count: Int { places.count }

    /// The file, which is the newest from now on.
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

    /// Puts a node in front of all others.
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
