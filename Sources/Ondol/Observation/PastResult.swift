// A query's result as of an earlier commit, computed by undoing all later changes in the current
// result. So a returning listener receives the difference, and the database need not have kept the
// old result.

internal import OndolEngine

/// Listens to a query on behalf of an app that has seen its result as of a token.
final class ResumedListener: Listener {
  private struct State: Sendable {
    var listener: (any Listener<QuerySnapshot>)?
    var isOver = false
  }

  private let state = Guarded(State())
  private let listening = Listening()
  private let query: Query
  private let token: ChangeToken

  init(_ query: Query, since token: ChangeToken) {
    self.query = query
    self.token = token
  }

  @concurrent
  func next() async throws(DatabaseError) -> QuerySnapshot? {
    if let listener = state.withLock({ $0.listener }) { return try await listener.next() }
    if Task.isCancelled || state.withLock({ $0.isOver }) { return nil }
    do throws(DatabaseError) {
      let listener = try await compare()
      state.withLock { $0.listener = listener }
      return try await listener.next()
    } catch {
      state.withLock { $0.isOver = true }
      throw error
    }
  }

  func poll() async throws(DatabaseError) -> QuerySnapshot? {
    guard let listener = state.withLock({ $0.listener }) else { return try await next() }
    return try await listener.poll()
  }

  /// Computes the earlier result.
  private func compare() async throws(DatabaseError) -> any Listener<QuerySnapshot> {
    let shape = try query.shape.get()
    let plan = try LiveQueryPlan(shape, in: query.database)
    let (seen, last) = try await plan.result(asOf: token)
    // The new result must not be older than the earlier one.
    try await query.database.arrivals.waitUntilAnnounced(last, for: listening)
    return query.listener(to: shape, behind: seen)
  }
}

extension Database {
  /// The present, which has the commit that a token names. Another process may have made that
  /// commit, and this one not have heard of it.
  fileprivate func datedSnapshot(
    notBefore token: ChangeToken
  ) async throws(DatabaseError) -> (Snapshot, CommitPoint) {
    let (snapshot, point) = try datedSnapshot()
    if point.sequence >= token.point.sequence { return (snapshot, point) }
    _ = try await refresh()
    let (later, reached) = try datedSnapshot()
    guard reached.sequence >= token.point.sequence else {
      throw DatabaseError(
        .outOfRange, "the commit that the token names does not exist; read everything and continue")
    }
    return (later, reached)
  }
}

/// The documents that changed since a commit, as they were then.
private struct UndoneChanges {
  /// Nil for a document that did not exist.
  var documents: [DocumentPath: DocumentSnapshot.Contents?] = [:]
  /// The last of these commits that listeners receive.
  var last: SequenceNumber
}

extension LiveQueryPlan {
  /// The result as of the commit that `token` names, and the last commit so far that changed
  /// documents.
  func result(
    asOf token: ChangeToken
  ) async throws(DatabaseError) -> (ResultView, SequenceNumber) {
    let (snapshot, point) = try await database.datedSnapshot(notBefore: token)
    let undone = try await changes(since: token, through: point)
    var wide = shape
    wide.selection = nil
    wide.offset = 0
    wide.limit = shape.limit.map {
      [query.offset, undone.documents.count].reduce($0) { sum, count in
        let (wider, overflow) = sum.addingReportingOverflow(count)
        return overflow ? .max : wider
      }
    }
    let present = try await database.read(snapshot, asOf: token.point.time) {
      [database, wide] (rows) throws(DatabaseError) in
      var executor = try Executor(wide, in: database, rows)
      return try executor.documents()
    }
    let old = take(back: undone, from: present, asOf: token.point.time)
    return (ResultView(self, old, isComplete: true), undone.last)
  }

  /// The earlier states of the documents that changed after `token` and not after `point`.
  private func changes(
    since token: ChangeToken, through point: CommitPoint
  ) async throws(DatabaseError) -> UndoneChanges {
    var history = try database.history(since: token)
    var undone = UndoneChanges(last: .zero)
    let place = ListeningPlace(shape.source)
    repeat {
      let commits = try await history.someCommits()
      for commit in commits where commit.point.sequence <= point.sequence {
        guard let change = try DatabaseChange(commit, in: database) else { continue }
        undone.last = commit.point.sequence
        try refuse(change, place)
        for document in change.documents {
          let path = try document.reference.place.get()
          guard shape.contains(path), undone.documents[path] == nil else { continue }
          undone.documents[path] = .some(document.before.contents)
        }
      }
      if commits.isEmpty { break }
    } while history.position.sequence < point.sequence
    return undone
  }

  /// Throws when a change does not show how it affected the result.
  private func refuse(
    _ change: DatabaseChange, _ place: ListeningPlace
  ) throws(DatabaseError) {
    if let root = change.droppedCollection, place.isBelow(root: root) {
      throw DatabaseError(
        .outOfRange,
        "the collection \(root) was dropped since, which does not say what was in the result;"
          + " listen to snapshots instead")
    }
    if let renaming = change.renamedCollection,
      [renaming.from, renaming.to].contains(where: { place.isBelow(root: $0.root) })
    {
      throw DatabaseError(
        .outOfRange,
        "the collection \(renaming.from) was renamed to \(renaming.to) since, which does not say"
          + " what was in the result; listen to snapshots instead")
    }
  }

  /// The old result, in the query's order.
  ///
  /// - Parameter present: the first documents of the current result, as many beyond the limit as
  ///   have changed since. Among unchanged documents the order has not changed.
  private func take(
    back undone: UndoneChanges, from present: [DocumentSnapshot], asOf time: Int64
  ) -> [DocumentSnapshot] {
    var old: [RankedDocument] = []
    for document in present {
      guard let path = try? document.reference.place.get(), undone.documents[path] == nil else {
        continue
      }
      old.append(
        RankedDocument(
          keys: query.orders.keys(
            of: document.contents, name: shape.name(of: document.reference)),
          document: document))
    }
    for case (let path, let contents?) in undone.documents {
      let fields = contents.fields
      guard let keys = keys(of: fields, at: path), !database.isOver(fields, at: path, asOf: time)
      else { continue }
      let reference = DocumentReference(database: database, place: .success(path))
      old.append(
        RankedDocument(
          keys: keys, document: DocumentSnapshot(reference: reference, contents: contents)))
    }
    old.sort { query.orders.compare($0.keys, $1.keys) < 0 }
    let part = old.dropFirst(query.offset).prefix(query.limit).map(\.document)
    return query.isReversed ? part.reversed() : part
  }
}

extension String {
  /// The first of a pattern's collection ids.
  fileprivate var root: String { split(separator: "/").first.map(String.init) ?? self }
}
