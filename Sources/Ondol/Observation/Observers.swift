// All listeners, and the way from a commit to those it concerns. The predicate indexes look up each
// announced commit. Listeners that it may concern take all of its changes into their inboxes at
// once and are woken. Nothing else happens on the committer's thread: the waiting listener computes
// the new result, see Watch.

internal import OndolEngine

/// Where a listener listens.
enum ListeningPlace: Hashable, Sendable {
  case document(DocumentPath)
  case collection(CollectionPath)
  /// All collections with this id.
  case group(ExactText)
  case everywhere

  init(_ source: QueryShape.Source) {
    switch source {
    case .collection(let path): self = .collection(path)
    case .group(let id): self = .group(id)
    }
  }

  /// The places at which listeners can observe a change of a document.
  static func all(of path: DocumentPath) -> [ListeningPlace] {
    let collection = path.collection
    return [
      .document(path), .collection(collection), .group(ExactText(collection.collectionID)),
      .everywhere,
    ]
  }

  /// The collection or group that the place is, or is in; nil for all of them.
  var source: QueryShape.Source? {
    switch self {
    case .document(let path): .collection(path.collection)
    case .collection(let path): .collection(path)
    case .group(let id): .group(id)
    case .everywhere: nil
    }
  }

  /// Whether documents below the root collection can be at this place.
  func isBelow(root: String) -> Bool {
    switch self {
    case .document(let path): ExactText(path.segments[0]) == ExactText(root)
    case .collection(let path): ExactText(CollectionPattern(path).root) == ExactText(root)
    case .group, .everywhere: true
    }
  }
}

/// A place, and the predicates by which a listener there is found.
struct Subscription: Sendable {
  var place: ListeningPlace
  var predicates: [AccessPredicate]

  func isSame(as other: Subscription) -> Bool {
    place == other.place && Set(predicates) == Set(other.predicates)
  }
}

/// All listeners of a database.
final class Observers: Sendable {
  fileprivate struct Shared: Sendable {
    var watch: any CommitListener
    var subscriptions: [Subscription]
    /// Additional documents that it listens to.
    var documents: Set<DocumentPath> = []
    var listenerCount: Int
  }

  fileprivate struct State: Sendable {
    var places: [ListeningPlace: PredicateIndex] = [:]
    var shared: [WatchKey: Shared] = [:]
    var isClosed = false
  }

  private let state = Guarded(State())
  /// The listeners to the tree.
  let tree = TreeObservers()
  /// Weak, because the engine holds these observers to announce commits.
  private weak let engine: Engine?
  /// Counts all listeners.
  private let audience: Audience
  /// Whether the server cannot be reached.
  let outages: Outages
  /// What synchronisation has still to do.
  let synced = SyncedState()

  init(_ engine: Engine, _ audience: Audience) {
    self.engine = engine
    outages = Outages(engine)
    self.audience = audience
  }

  /// Listeners of all kinds.
  var count: Int {
    state.withLock { $0.shared.values.reduce(0) { $0 + $1.listenerCount } }
  }

  /// Shared evaluations that are kept up to date for the listeners.
  var watchCount: Int { state.withLock { $0.shared.count } }

  /// Changes that listeners have not taken yet.
  var pendingCount: Int {
    let watches = state.withLock { $0.shared.values.map(\.watch) }
    return watches.reduce(0) { $0 + $1.pendingCount }
  }

  // MARK: - Adding and removing listeners

  /// Adds a listener to the watch for `key`, and makes that when there is none yet. It receives the
  /// commits that become visible from now on.
  func attach<View: LiveView>(
    _ key: WatchKey, _ subscriptions: @autoclosure () -> [Subscription],
    _ make: () -> Watch<View>
  ) -> Watch<View> {
    audience.enter()
    return state.withLock { state in
      if let watch = state.shared[key]?.watch as? Watch<View>, !watch.hasFailed {
        state.shared[key]?.listenerCount += 1
        return watch
      }
      let watch = make()
      guard !state.isClosed else {
        watch.finish()
        return watch
      }
      let subscriptions = subscriptions()
      state.replace(
        key, by: Shared(watch: watch, subscriptions: subscriptions, listenerCount: 1))
      return watch
    }
  }

  /// Adds an unshared listener, which nothing finds yet: see `listen(by:for:)`.
  func attach(_ listener: any CommitListener, as key: WatchKey) {
    audience.enter()
    let isClosed = state.withLock { state in
      if !state.isClosed {
        state.replace(key, by: Shared(watch: listener, subscriptions: [], listenerCount: 1))
      }
      return state.isClosed
    }
    if isClosed { listener.finish() }
  }

  /// Replaces the additional documents that the watch for `key` listens to. Returns whether some of
  /// them are new.
  func listen(to documents: Set<DocumentPath>, for key: WatchKey) -> Bool {
    state.withLock { state in
      guard let shared = state.shared[key], documents != shared.documents else { return false }
      for path in documents.subtracting(shared.documents) {
        state.insert(shared.watch, Subscription(place: .document(path), predicates: [.every]))
      }
      for path in shared.documents.subtracting(documents) {
        state.remove(shared.watch, Subscription(place: .document(path), predicates: [.every]))
      }
      state.shared[key]?.documents = documents
      return !documents.isSubset(of: shared.documents)
    }
  }

  /// Replaces the subscriptions by which the watch for `key` is found. Returns whether they were
  /// different before.
  func listen(by subscriptions: [Subscription], for key: WatchKey) -> Bool {
    state.withLock { state in
      guard let shared = state.shared[key],
        !shared.subscriptions.elementsEqual(subscriptions, by: { $0.isSame(as: $1) })
      else { return false }
      for old in shared.subscriptions { state.remove(shared.watch, old) }
      for new in subscriptions { state.insert(shared.watch, new) }
      state.shared[key]?.subscriptions = subscriptions
      return true
    }
  }

  /// Removes a listener. The last one removes its watch.
  func detach(_ key: WatchKey, from watch: any CommitListener) {
    audience.leave()
    state.withLock { state in
      guard var shared = state.shared[key], shared.watch === watch else { return }
      shared.listenerCount -= 1
      if shared.listenerCount > 0 { state.shared[key] = shared } else { state.remove(key) }
    }
  }

  /// Ends all listening.
  func close() {
    tree.close()
    let watches = state.withLock { state in
      state.isClosed = true
      defer {
        state.shared = [:]
        state.places = [:]
      }
      return state.shared.values.map(\.watch)
    }
    for watch in watches { watch.finish() }
  }

  /// Throws the error once in all listeners. Listeners added afterwards start fresh.
  func fail(with error: DatabaseError) {
    let watches = state.withLock { $0.shared.values.map(\.watch) }
    for watch in watches { watch.fail(with: error) }
    // Listeners to the tree get it when they read.
    wake(tree.invalidate())
  }

  /// Notifies all listeners that the server cannot be reached, or can be reached again.
  func note(isAway: Bool) {
    guard outages.note(isAway: isAway) else { return }
    let watches = state.withLock { $0.shared.values.map(\.watch) }
    for watch in watches { watch.note(isAway: isAway) }
  }

  // MARK: - Commits

  /// Announces a commit to the listeners it concerns.
  func announce(_ announcement: Announcement) {
    guard let note = announcement.note as? CommitNote else { return }
    let version = Version(rawValue: announcement.sequence.rawValue)
    var wakeups: [Wakeup] = []
    switch note.content {
    case .documents(let documents):
      let changes = note.synced.map { (changes: $0, state: synced) }
      let hasOtherFollows = note.synced.map { synced.announce($0, at: announcement.sequence) }
      let changed = documents.lazy.filter { document in
        document.isChanged || changes?.changes.waiting[document.path] != nil
      }
      let concerned = concerned(by: changed, \.path) {
        ObservedChange($0, announcement, changes)
      }
      for concerned in concerned {
        concerned.listener.take(concerned.changes, version, &wakeups)
      }
      // After the changes, so that a result that says it is complete is.
      if hasOtherFollows == true { noteLoading() }
      for document in documents where document.isChanged && document.isUnreadable {
        invalidate(at: document.path, version, &wakeups)
      }
    case .readAnew(let root):
      for listener in listeners(below: root) { listener.invalidate(version, &wakeups) }
    case .renamed(let renaming):
      for root in renaming.roots {
        for listener in listeners(below: root) { listener.invalidate(version, &wakeups) }
      }
    }
    wakeups += tree.announce(note.tree, announcement.sequence)
    wake(wakeups)
  }

  /// Announces a step from one commit to a later one, in a database that another process writes.
  func announce(_ changes: StepChanges, through version: Version) {
    var wakeups: [Wakeup] = []
    // First, so that no listener sees part of the step: a listener that evaluates again sees all of
    // it.
    let uncertain = changes.isKnown ? changes.uncertainRoots.flatMap(listeners(below:)) : everybody
    for listener in uncertain { listener.invalidate(version, &wakeups) }
    for concerned in concerned(by: changes.documents, \.path, { $0 }) {
      concerned.listener.take(concerned.changes, version, &wakeups)
    }
    for change in changes.documents where change.wasUnreadable {
      invalidate(at: change.path, version, &wakeups)
    }
    wake(wakeups + tree.invalidate())
  }

  /// Notifies all listeners whether follows of their documents are loading.
  private func noteLoading() {
    let shared = state.withLock { Array($0.shared.values) }
    for shared in shared where !shared.subscriptions.isEmpty {
      shared.watch.note(
        isLoading: synced.isLoading(shared.subscriptions.compactMap(\.place.source)))
    }
  }

  /// Evaluates everything again that may have listed the document as unreadable, because it is
  /// unknown which results it was in.
  private func invalidate(
    at path: DocumentPath, _ version: Version, _ wakeups: inout [Wakeup]
  ) {
    let listeners = state.withLock { state in
      var listeners: [any CommitListener] = []
      for place in ListeningPlace.all(of: path) {
        state.places[place]?.visitAll { listeners.append($0) }
      }
      return listeners
    }
    for listener in listeners { listener.invalidate(version, &wakeups) }
  }

  /// Evaluates everything below a root collection again, because its documents are now read in
  /// another way.
  func invalidate(below root: String) {
    var wakeups: [Wakeup] = []
    let any = Version(rawValue: .max)
    for listener in listeners(below: root) { listener.invalidate(any, &wakeups) }
    wake(wakeups)
  }

  /// Whether a change of the document may concern any listener.
  func areConcerned(with path: DocumentPath) -> Bool {
    state.withLock { state in
      ListeningPlace.all(of: path).contains { state.places[$0] != nil }
    }
  }

  private struct Concerned {
    var listener: any CommitListener
    var changes: [ObservedChange]
  }

  private func concerned<Document>(
    by documents: some Sequence<Document>, _ path: (Document) -> DocumentPath,
    _ makeChange: (Document) -> ObservedChange
  ) -> [Concerned] {
    state.withLock { state in
      var concerned: [Concerned] = []
      guard !state.places.isEmpty else { return concerned }
      var positions: [ObjectIdentifier: Int] = [:]
      for document in documents {
        let places = ListeningPlace.all(of: path(document)).compactMap { state.places[$0] }
        guard !places.isEmpty else { continue }
        var change = makeChange(document)
        var isMeasured = false
        var seen: Set<ObjectIdentifier> = []
        for index in places {
          index.visit(change) { listener in
            let identity = ObjectIdentifier(listener)
            guard seen.insert(identity).inserted else { return }
            if !isMeasured { change.measure() }
            isMeasured = true
            if let position = positions[identity] {
              concerned[position].changes.append(change)
            } else {
              positions[identity] = concerned.count
              concerned.append(Concerned(listener: listener, changes: [change]))
            }
          }
        }
      }
      return concerned
    }
  }

  private var everybody: [any CommitListener] {
    state.withLock { $0.shared.values.map(\.watch) }
  }

  private func listeners(below root: String) -> [any CommitListener] {
    state.withLock { state in
      var listeners: [any CommitListener] = []
      for (place, index) in state.places where place.isBelow(root: root) {
        index.visitAll { listeners.append($0) }
      }
      return listeners
    }
  }

  /// The most listeners woken on the committer's thread. A task of its own wakes the rest.
  private static let wokenAtOnce = 64

  private func wake(_ wakeups: [Wakeup]) {
    guard wakeups.count > Self.wokenAtOnce else {
      for wakeup in wakeups { wakeup.resume() }
      return
    }
    // Completed even when the database is closed meanwhile: a continuation must be resumed.
    let rest = Guarded(wakeups[...])
    let task = engine?.startInBackground {
      while true {
        let some = rest.withLock { rest in
          defer { rest = rest.dropFirst(Self.wokenAtOnce) }
          return rest.prefix(Self.wokenAtOnce)
        }
        if some.isEmpty { return }
        for wakeup in some { wakeup.resume() }
        await Task.yield()
      }
    }
    if task == nil {
      for wakeup in wakeups { wakeup.resume() }
    }
  }
}

extension Observers.State {
  fileprivate mutating func replace(_ key: WatchKey, by new: Observers.Shared) {
    remove(key)
    for subscription in new.subscriptions { insert(new.watch, subscription) }
    shared[key] = new
  }

  fileprivate mutating func remove(_ key: WatchKey) {
    guard let old = shared.removeValue(forKey: key) else { return }
    for subscription in old.allSubscriptions { remove(old.watch, subscription) }
  }

  fileprivate mutating func insert(
    _ watch: any CommitListener, _ subscription: Subscription
  ) {
    for predicate in subscription.predicates {
      places[subscription.place, default: PredicateIndex()].insert(watch, predicate)
    }
  }

  fileprivate mutating func remove(
    _ watch: any CommitListener, _ subscription: Subscription
  ) {
    for predicate in subscription.predicates {
      places[subscription.place]?.remove(watch, predicate)
    }
    if places[subscription.place]?.isEmpty == true { places[subscription.place] = nil }
  }
}

extension Observers.Shared {
  fileprivate var allSubscriptions: [Subscription] {
    subscriptions + documents.map { Subscription(place: .document($0), predicates: [.every]) }
  }
}

extension Database {
  /// The number of listeners.
  package var observerCount: Int { observers.count + treeObservers.count }

  /// The listeners to the tree.
  var treeObservers: TreeObservers { observers.tree }
}
