// How an app listens: an asynchronous sequence whose iterator is the listener. It listens from its
// creation until it is released; there is nothing to call. Each iterator remembers what it has
// seen, so each one receives the changes since its own last element.

internal import OndolEngine
internal import Synchronization

/// The states of a document, a query's result or an aggregate, as they happen.
///
/// Listening begins when the iterator is made, which for `for await` is at its beginning. The first
/// element is the state at that moment, and each later one is a newer state. A listener that is
/// slower than the writers skips states but misses no change: the next element has everything that
/// happened since its last one. Every commit is one step: no element shows part of one. An iterator
/// that is made and never read keeps the data stored at that moment from being removed.
///
/// The sequence ends, without an error, when the task is cancelled or the database is closed. Each
/// iterator listens independently; releasing it ends that.
public struct Updates<Element: Sendable>: AsyncSequence, Sendable {
  /// The errors of listening.
  public typealias Failure = DatabaseError

  private let listen: @Sendable () -> any Listener<Element>

  /// - Parameter listen: makes a listener; when it throws, the iterator throws the error.
  init(_ listen: @escaping @Sendable () throws(DatabaseError) -> any Listener<Element>) {
    self.listen = {
      do throws(DatabaseError) {
        return try listen()
      } catch {
        return FailedListener(error)
      }
    }
  }

  /// Listens from now on.
  public func makeAsyncIterator() -> Iterator { Iterator(listener: makeListener()) }

  func makeListener() -> any Listener<Element> { listen() }

  /// One listener.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let listener: any Listener<Element>

    /// The next state; nil when the task is cancelled or the database is closed.
    ///
    /// Computing it runs on Swift's own pool and not on the caller's actor, unless it takes only
    /// microseconds.
    ///
    /// - Throws: what the query itself would; an error ends the iterator.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(DatabaseError) -> Element? {
      try await listener.next()
    }

    /// The next state, if there is one without waiting for another commit. Commits whose calls have
    /// returned are included.
    package mutating func poll() async throws(DatabaseError) -> Element? {
      try await listener.poll()
    }
  }
}

/// Listens to a source of states.
protocol Listener<Element>: AnyObject, Sendable {
  associatedtype Element: Sendable

  func next() async throws(DatabaseError) -> Element?

  /// The next element, if there is one without waiting for commits; nil also at the end.
  func poll() async throws(DatabaseError) -> Element?
}

/// A listener to a query with an error.
private final class FailedListener<Element: Sendable>: Listener {
  private let error: DatabaseError

  init(_ error: DatabaseError) {
    self.error = error
  }

  func next() async throws(DatabaseError) -> Element? { throw error }
  func poll() async throws(DatabaseError) -> Element? { throw error }
}

/// Listens to a watch, and remembers what it has seen.
final class WatchListener<View: LiveView, Element: Sendable>: Listener {
  private struct State: Sendable {
    /// The moment at which it was made, until the first read.
    var start: DatedSnapshot?
    var watch: Watch<View>?
    var seen: Watch<View>.Seen?
    var isOver = false
  }

  private let state = Guarded(State())
  private let listening = Listening()
  private let database: Database
  private let key: WatchKey
  private let attach: @Sendable () throws(DatabaseError) -> Watch<View>
  private let element: @Sendable (_ view: View, _ before: View?) -> Element

  /// - Parameters:
  ///   - attach: finds or makes the watch for `key`.
  ///   - element: makes an element of a view and the previously seen one.
  init(
    _ database: Database, _ key: WatchKey,
    attach: @escaping @Sendable () throws(DatabaseError) -> Watch<View>,
    element: @escaping @Sendable (_ view: View, _ before: View?) -> Element
  ) {
    self.database = database
    self.key = key
    self.attach = attach
    self.element = element
    // If the database is closed, attaching throws.
    let start = try? database.datedSnapshot()
    state.withLock { $0.start = start }
  }

  deinit {
    if let watch = state.withLock({ $0.watch }) { database.observers.detach(key, from: watch) }
  }

  func next() async throws(DatabaseError) -> Element? {
    let (watch, before) = state.withLock { ($0.watch, $0.seen) }
    if !listening.isCancelled, let seen = watch?.nextAtOnce(after: before) {
      state.withLock { $0.seen = seen }
      return element(seen.view, before?.view)
    }
    return try await nextFromPool(waits: true)
  }

  func poll() async throws(DatabaseError) -> Element? {
    if let sequence = try? database.engineSnapshot().sequence {
      await database.engine.finishAnnouncing(through: sequence)
    }
    return try await nextFromPool(waits: false)
  }

  @concurrent
  private func nextFromPool(waits: Bool) async throws(DatabaseError) -> Element? {
    let (watch, before, start) = try state.withLock { (state) throws(DatabaseError) in
      if state.watch == nil, !state.isOver { state.watch = try attach() }
      defer { state.start = nil }
      return (state.isOver ? nil : state.watch, state.seen, state.start)
    }
    guard let watch else { return nil }
    do throws(DatabaseError) {
      if let first = try await first(as: start, of: watch) { return first }
      guard let seen = try await watch.next(after: before, for: listening, waits: waits) else {
        if waits || listening.isCancelled { end() }
        return nil
      }
      state.withLock { $0.seen = seen }
      return element(seen.view, before?.view)
    } catch {
      end()
      throw error
    }
  }

  /// The state at the moment of creation, if commits have changed it since; otherwise the current
  /// state serves.
  private func first(
    as start: DatedSnapshot?, of watch: Watch<View>
  ) async throws(DatabaseError) -> Element? {
    guard let start, !Task.isCancelled,
      let present = try? database.engineSnapshot().sequence, present > start.point.sequence
    else { return nil }
    let outages = database.observers.outages
    var view: View
    do throws(DatabaseError) {
      view = try await watch.evaluate(start).view
    } catch {
      // The current state comes once the server answers.
      if outages.outlast(error) { return nil }
      throw error
    }
    view.isAway = outages.isAway
    // The documents are those of the beginning.
    view.isLoading =
      watch.isLoading || database.observers.synced.hasCompleted(after: start.point.sequence)
    // No result of the watch has this number.
    state.withLock { [view] in $0.seen = Watch<View>.Seen(generation: -1, view: view) }
    return element(view, nil)
  }

  /// Stops listening permanently.
  private func end() {
    let watch = state.withLock { state in
      state.isOver = true
      state.seen = nil
      defer { state.watch = nil }
      return state.watch
    }
    if let watch { database.observers.detach(key, from: watch) }
  }
}
