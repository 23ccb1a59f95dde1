// One iterator over events of the tree. It is attached when it is made, so that it misses no commit
// from then on, and keeps the snapshot of that moment until the first read. After that it takes the
// changes from its inbox, takes a snapshot, and computes the events, on Swift's own pool and never
// on a writer's thread. It reads the initial children in pages, as the app reads events.

internal import OndolEngine

/// Listens to one or several places of the tree.
final class TreeListener<Element: Sendable>: Listener {
  private struct State: Sendable {
    /// The state when it was made; nil after the first read.
    var start: Result<Start, DatabaseError>?
    /// The deepest first.
    var members: [TreeMember] = []
    var beginning: Beginning?
    var isOver = false
  }

  /// The moment at which listening began.
  fileprivate struct Start: Sendable {
    let snapshot: Snapshot
    /// None of them has been read yet.
    let members: [TreeMember]
  }

  /// The initial children that have not been reported yet.
  fileprivate struct Beginning: Sendable {
    let snapshot: Snapshot
    /// The current member.
    var member = 0
    var source: TreePageSource?
    var sources: [TreePageSource?]
    var previous: String?
  }

  private let database: Database
  private let element: @Sendable (TreeEvent) -> Element
  /// Called when there may be something to poll for.
  private let notify: (@Sendable () -> Void)?
  private let listening = Listening()
  private let state = Guarded(State())
  /// Events that are computed and not yet delivered, the last first.
  private let ready = Guarded<[Element]>([])
  private let attachment = Guarded<(inbox: TreeInbox, paths: [TreePath])?>(nil)

  init(
    _ database: Database, _ queries: [(TreeQuery, Set<TreeEvent.Kind>)],
    notify: (@Sendable () -> Void)? = nil, _ element: @escaping @Sendable (TreeEvent) -> Element
  ) {
    self.database = database
    self.element = element
    self.notify = notify
    let start = Result { () throws(DatabaseError) in try attach(to: queries) }
    state.withLock { $0.start = start }
  }

  deinit {
    detach()
  }

  /// Whether no further events can come.
  var isOver: Bool { attachment.withLock { $0?.inbox.isFinished ?? true } }

  private func detach() {
    let attached = attachment.withLock { attachment in
      defer { attachment = nil }
      return attachment
    }
    guard let attached else { return }
    database.treeObservers.detach(attached.inbox, from: attached.paths)
    database.audience.leave()
  }

  func next() async throws(DatabaseError) -> Element? {
    while !listening.isCancelled {
      if let event = try await poll() { return event }
      guard let inbox = attachment.withLock({ $0?.inbox }), !inbox.isFinished else { return nil }
      await inbox.wait(listening)
    }
    return nil
  }

  func poll() async throws(DatabaseError) -> Element? {
    if let event = ready.withLock({ $0.popLast() }) { return event }
    try await workOut()
    return ready.withLock { $0.popLast() }
  }

  /// Computes events, if there are any.
  @concurrent
  private func workOut() async throws(DatabaseError) {
    var state = self.state.withLock { state in
      defer { state = State() }
      return state
    }
    do throws(DatabaseError) {
      var events = try await step(&state)
      if events.isEmpty, state.isOver { end(&state) }
      self.state.withLock { [state] in $0 = state }
      var elements: [Element] = []
      elements.reserveCapacity(events.count)
      while let event = events.popLast() { elements.append(element(event)) }
      ready.withLock { [elements] in $0 = elements }
    } catch {
      end(&state)
      self.state.withLock { [state] in $0 = state }
      throw error
    }
  }

  private func end(_ state: inout State) {
    state = State()
    state.isOver = true
    detach()
  }

  /// The next events, of a page or of a commit; none when there are none yet.
  private func step(_ state: inout State) async throws(DatabaseError) -> [TreeEvent] {
    if let start = state.start {
      state.start = nil
      try await begin(try start.get(), &state)
    }
    while !state.isOver, let inbox = attachment.withLock({ $0?.inbox }) {
      if inbox.isFinished {
        state.isOver = true
      } else if state.beginning != nil {
        let events = try await goOnBeginning(&state)
        if !events.isEmpty { return events }
      } else if let content = inbox.begin() {
        let events = try await work(content, inbox, &state)
        if !events.isEmpty { return events }
      } else {
        return []
      }
    }
    return []
  }

  // MARK: - The beginning

  private func attach(
    to queries: [(TreeQuery, Set<TreeEvent.Kind>)]
  ) throws(DatabaseError) -> Start {
    var members: [TreeMember] = []
    for (query, kinds) in queries { members.append(try TreeMember(query, kinds)) }
    // A stable order, so that queries of one place are reported in the order in which they were
    // given.
    let order = members.indices.sorted {
      (-members[$0].path.depth, $0) < (-members[$1].path.depth, $1)
    }
    let sorted = order.map { members[$0] }
    let depth = sorted.first?.path.depth ?? 0
    let inbox = TreeInbox(depth: depth, notify: notify) { [weak database] in
      try? database?.engineSnapshot()
    }
    let paths = members.map(\.path)
    attachment.withLock { $0 = (inbox, paths) }
    database.audience.enter()
    database.treeObservers.attach(inbox, at: paths)
    let snapshot = try database.engineSnapshot()
    inbox.begin(behind: snapshot, keepsSeen: database.engine.hasOtherWriters)
    return Start(snapshot: snapshot, members: sorted)
  }

  /// Begins reading the initial state.
  private func begin(_ start: Start, _ state: inout State) async throws(DatabaseError) {
    let (begun, sources) = try await database.readOutlasting(start.snapshot) {
      (rows) throws(DatabaseError) in
      var begun = start.members
      var sources: [TreePageSource?] = []
      for index in begun.indices { sources.append(try begun[index].begin(in: rows)) }
      return (begun, sources)
    }
    state.members = begun
    state.beginning = Beginning(snapshot: start.snapshot, sources: sources)
  }

  /// A snapshot, and in `content` all announced changes in it that were not applied yet.
  private func present(
    _ inbox: TreeInbox, _ content: inout TreeInbox.Content
  ) async throws(DatabaseError) -> Snapshot {
    let snapshot = try database.engineSnapshot()
    await database.engine.finishAnnouncing(through: snapshot.sequence)
    inbox.finishLine(
      through: snapshot, into: &content, keepsSeen: database.engine.hasOtherWriters)
    return snapshot
  }

  /// Reads some more of the initial children.
  private func goOnBeginning(_ state: inout State) async throws(DatabaseError) -> [TreeEvent] {
    guard let beginning = state.beginning, beginning.member < state.members.count else {
      state.beginning = nil
      return []
    }
    let member = state.members[beginning.member]
    let (next, told, events) = try await database.readOutlasting(beginning.snapshot) {
      (rows) throws(DatabaseError) in
      var next = beginning
      var member = member
      let events = try next.page(of: &member, in: rows)
      return (next, member, events)
    }
    state.members[beginning.member] = told
    state.beginning = next
    return events
  }

  // MARK: - Commits

  private func work(
    _ content: TreeInbox.Content, _ inbox: TreeInbox, _ state: inout State
  ) async throws(DatabaseError) -> [TreeEvent] {
    var content = content
    let snapshot = try await present(inbox, &content)
    let (members, events) = try await database.readOutlasting(snapshot) {
      [members = state.members, content] (rows) throws(DatabaseError) in
      var members = members
      let before = Rows(
        (content.base ?? snapshot).replacing(content.before), rows.catalog, mayBlock: rows.mayBlock)
      let keys = content.base == nil ? try rows.changedKeys(content.before) : nil
      var events: [TreeEvent] = []
      for index in members.indices {
        let node = members[index].path.rowKey
        let difference =
          if let keys {
            TreeDifference(of: node, keys: keys)
          } else {
            try TreeDifference(of: node, from: before, to: rows)
          }
        events += try members[index].events(difference, from: before, to: rows)
      }
      return (members, events)
    }
    state.members = members
    return events
  }
}

extension TreeListener.Beginning {
  /// The next events of the current member: its initial children, then the value.
  fileprivate mutating func page(
    of member: inout TreeMember, in rows: Rows
  ) throws(DatabaseError) -> [TreeEvent] {
    var events: [TreeEvent] = []
    if var source = sources[self.member] {
      let children = try source.next(atMost: TreePages.pageCount, in: rows)
      sources[self.member] = children.isEmpty ? nil : source
      for child in children {
        events.append(member.event(.childAdded, child, after: previous))
        previous = child.key
      }
      if !children.isEmpty { return events }
    }
    if member.kinds.contains(.value) { events.append(try member.firstValue(in: rows)) }
    self.member += 1
    previous = nil
    return events
  }
}
