// Who listens, and the way from a commit to those it concerns. Each commit that is announced is
// looked up in the predicate indexes; those it may concern take its changes into their inboxes,
// all of a commit's at once, and are woken. That is all that happens on the committer's thread:
// what the changes do to a result is worked out by whoever waits for it, see Watch.

internal import OndolEngine

/// Where a listener looks.
enum ListeningPlace: Hashable, Sendable {
  case document(DocumentPath)
  case collection(CollectionPath)
  /// All collections with this id.
  case group(ExactText)

  init(_ source: QueryShape.Source) {
    switch source {
    case .collection(let path): self = .collection(path)
    case .group(let id): self = .group(id)
    }
  }

  /// Where a change of a document is listened to.
  static func all(of path: DocumentPath) -> [ListeningPlace] {
    let collection = path.collection
    return [
      .document(path), .collection(collection), .group(ExactText(collection.collectionID)),
    ]
  }

  /// Whether documents below the root collection can be there.
  func isBelow(root: String) -> Bool {
    switch self {
    case .document(let path): ExactText(path.segments[0]) == ExactText(root)
    case .collection(let path): ExactText(CollectionPattern(path).root) == ExactText(root)
    case .group: true
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

/// Everybody who listens to a database.
final class Observers: Sendable {
  fileprivate struct Shared: Sendable {
    var watch: any CommitListener
    var subscriptions: [Subscription]
    /// Documents listened to beside them.
    var documents: Set<DocumentPath> = []
    var listenerCount: Int
  }

  fileprivate struct State: Sendable {
    var places: [ListeningPlace: PredicateIndex] = [:]
    var shared: [WatchKey: Shared] = [:]
    var isClosed = false
  }

  private let state = Guarded(State())
  /// Those who listen to the tree.
  let tree = TreeObservers()
  /// Not held: it holds this one, to tell it of commits.
  private weak let engine: Engine?
  /// Told of all who listen.
  private let audience: Audience
  /// Whether the server is away.
  let outages: Outages

  init(_ engine: Engine, _ audience: Audience) {
    self.engine = engine
    outages = Outages(engine)
    self.audience = audience
  }

  /// Listeners of all kinds.
  var count: Int {
    state.withLock { $0.shared.values.reduce(0) { $0 + $1.listenerCount } }
  }

  /// Evaluations that are kept up to date for them.
  var watchCount: Int { state.withLock { $0.shared.count } }

  /// Changes that wait for listeners to ask for them.
  var pendingCount: Int {
    let watches = state.withLock { $0.shared.values.map(\.watch) }
    return watches.reduce(0) { $0 + $1.pendingCount }
  }

  // MARK: - Coming and going

  /// Adds a listener to the watch for `key`, which is made when there is none yet. Commits that
  /// become visible from now on reach it.
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

  /// Adds a listener that is nobody else's, found by nothing yet: see `listen(by:for:)`.
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

  /// Has the watch for `key` listen to these documents, too, and to no others that it was told of
  /// before; answers whether it did not to some of them.
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

  /// Has the watch for `key` found by these subscriptions and by no others; answers whether it was
  /// found by others before.
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

  /// Takes a listener away; with the last one goes its watch.
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

  /// Has all who listen get the error, once. Who begins to listen afterwards begins anew.
  func fail(with error: DatabaseError) {
    let watches = state.withLock { $0.shared.values.map(\.watch) }
    for watch in watches { watch.fail(with: error) }
    // Those of the tree get it when they read.
    wake(tree.invalidate())
  }

  /// Tells all who listen that the server is away, or is not any more.
  func note(isAway: Bool) {
    guard outages.note(isAway: isAway) else { return }
    let watches = state.withLock { $0.shared.values.map(\.watch) }
    for watch in watches { watch.note(isAway: isAway) }
  }

  // MARK: - Commits

  /// Tells whom a commit concerns.
  func announce(_ announcement: Announcement) {
    guard let note = announcement.note as? CommitNote else { return }
    let version = Version(rawValue: announcement.sequence.rawValue)
    var wakeups: [Wakeup] = []
    switch note.content {
    case .documents(let documents):
      let changed = documents.lazy.filter(\.isChanged)
      let concerned = concerned(by: changed, \.path) { ObservedChange($0, announcement) }
      for concerned in concerned {
        concerned.listener.take(concerned.changes, version, &wakeups)
      }
      for document in changed where document.isUnreadable {
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

  /// Tells whom a step from one commit to a later one concerns, in a database that another writes.
  func announce(_ changes: StepChanges, through version: Version) {
    var wakeups: [Wakeup] = []
    // First, so that nobody sees a part of the step: whoever asks anew sees all of it.
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

  /// Has everything evaluated anew that may have named the document as unreadable: nobody knows
  /// whom it concerned.
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

  /// Has everything below a root collection evaluated anew, because documents are read in another
  /// way from now on.
  func invalidate(below root: String) {
    var wakeups: [Wakeup] = []
    let any = Version(rawValue: .max)
    for listener in listeners(below: root) { listener.invalidate(any, &wakeups) }
    wake(wakeups)
  }

  /// Whether anybody may have to be told of a change of the document.
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

  /// Listeners woken on the committer's thread; more are left to a task of their own.
  private static let wokenAtOnce = 64

  private func wake(_ wakeups: [Wakeup]) {
    guard wakeups.count > Self.wokenAtOnce else {
      for wakeup in wakeups { wakeup.resume() }
      return
    }
    // Finished even when the database is closed meanwhile: a continuation must be resumed.
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
  /// How many listen.
  package var observerCount: Int { observers.count + treeObservers.count }

  /// Who listens to the tree.
  var treeObservers: TreeObservers { observers.tree }
}
