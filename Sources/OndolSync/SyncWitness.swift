// Writes down what this device commits, in the same commits: the entry of the outbox, and for each
// document the server's state that the write is made on. Nothing of it waits for a network. What a
// transaction has read by queries is written down as their footprints, where the device has all
// documents that they can find.

#if Sync
  import Ondol
  import OndolEngine
  import OndolMapping

  /// The witness of a synchronised database's commits.
  final class SyncWitness: CommitWitness {
    struct Limits: Sendable {
      var entries = 100_000
      var bytes = 256 << 20
    }

    private struct State: Sendable {
      var collections = FollowedCollections()
      /// Collections that are followed as a whole: what is not here is not on the server either.
      var wholes = FollowedCollections()
      var entries = 0
      var bytes = 0
    }

    private let environment: Environment
    private let session: String
    private let limits: Limits
    private let state = Guarded(State())
    let merges = MergeHandlers()
    /// Rings when an entry was committed.
    let bell = Bell()
    private let board: StateBoard

    init(session: String, limits: Limits, board: StateBoard, _ environment: Environment) {
      self.session = session
      self.limits = limits
      self.board = board
      self.environment = environment
    }

    // MARK: - What is known

    /// Sets what is followed.
    func follow(_ collections: FollowedCollections, wholes: FollowedCollections) {
      state.withLock { state in
        state.collections = collections
        state.wholes = wholes
      }
    }

    /// Counts entries that are in the outbox, or no longer in it.
    func count(entries: Int, bytes: Int) {
      state.withLock { state in
        state.entries += entries
        state.bytes += bytes
      }
      // Before the app's write returns, so that nobody takes the device for settled after it.
      board.change { [state] shown in shown.waitingWrites = state.withLock(\.entries) }
    }

    // MARK: - CommitWitness

    var followed: FollowedCollections { state.withLock(\.collections) }

    func concerns(_ path: DocumentPath) -> Bool {
      state.withLock { $0.collections.contains(path) }
    }

    func committed(_ rows: WitnessedRows) {
      count(entries: 1, bytes: rows.bytes)
      bell.ring()
    }

    func rows(for commit: WitnessedCommit) throws(DatabaseError) -> WitnessedRows? {
      let (entries, bytes, wholes) = state.withLock { ($0.entries, $0.bytes, $0.wholes) }
      guard entries < limits.entries, bytes < limits.bytes else {
        throw DatabaseError(
          .resourceExhausted,
          "the outbox is full: \(entries) commits of \(bytes) bytes wait for the server",
          suggestion: "let the device reach its server, or unfollow what need not be sent",
          path: (commit.writes.first?.write.path).map { "\($0)" })
      }
      var entry = OutboxEntry(
        name: AutomaticID.make(environment.random), writes: [], session: session,
        time: Timestamp(clock: environment.now()), order: 0)
      var rows = WitnessedState(commit, entry.name)
      var read = Set(commit.read)
      for query in commit.queries {
        let found = try commit.documents(of: query)
        read.formUnion(found)
        if let footprint = try footprint(of: query, found, wholes, commit) {
          entry.footprints.append(footprint)
        }
      }
      for seen in commit.writes {
        let path = seen.write.path
        let isFirst = try rows.wait(for: path)
        let isStrict = seen.reliesOnState || read.contains(path)
        var write = OutboxEntry.Write(write: seen.write)
        if isFirst, isStrict || merges.concern(seen.write) {
          write.reliance = rows.reliance(on: path, wholes)
          write.mayMerge = !isStrict && write.reliance != .none
        } else if !isFirst {
          write.mayMerge = entry.writes.contains { $0.mayMerge && $0.write.path == path }
        }
        entry.writes.append(write)
      }
      // What was read and not written must still be as it was, too.
      for path in read.sorted() where concerns(path) && !rows.isWritten(path) {
        let reliance = try rows.read(path, wholes)
        if reliance == .none { continue }
        entry.writes.append(
          OutboxEntry.Write(write: ClientWrite(path: path, .verify), reliance: reliance))
      }
      rows.show(entry)
      let (fields, size) = try entry.fields(isNew: true)
      let row = DocumentPath(unchecked: [SyncRows.outbox, entry.name])
      return WitnessedRows(rows.writes + [ClientWrite(path: row, .replace(fields))], bytes: size)
    }

    /// What the server compares; nil for a query of documents that this device need not have.
    private func footprint(
      of query: Query, _ found: [DocumentPath], _ wholes: FollowedCollections,
      _ commit: WitnessedCommit
    ) throws(DatabaseError) -> QueryFootprint? {
      let source = try query.readSource()
      let isFollowed =
        switch source {
        case .collection(let path): wholes.contains(path)
        case .group(let id): wholes.contains(group: id)
        }
      guard isFollowed else { return nil }
      guard found.count <= QueryFootprint.mostDocuments else {
        throw Self.tooMany(found.count, source)
      }
      do throws(DatabaseError) {
        return QueryFootprint(try FollowedQuery(query, number: 0).target, found: found)
      } catch {
        guard error.code == .unimplemented else { throw error }
      }
      // The protocol cannot ask it. So no document of the collection may come or go.
      let all = query.ofWholeSource
      let everything = try commit.documents(of: all)
      guard everything.count <= QueryFootprint.mostDocuments else {
        throw Self.tooMany(everything.count, source)
      }
      return QueryFootprint(try FollowedQuery(all, number: 0).target, found: everything)
    }

    private static func tooMany(
      _ count: Int, _ source: QueryDescription.Source
    ) -> DatabaseError {
      DatabaseError(
        .resourceExhausted,
        "a transaction's query of a followed collection concerns \(count) documents, and a server"
          + " compares \(QueryFootprint.mostDocuments)",
        suggestion: "read fewer of them, or before the transaction", path: source.text)
    }
  }

  /// The rows of the documents of a commit, as it changes them.
  private struct WitnessedState {
    /// A document that the commit writes or relies on.
    private struct Document {
      /// Where its row is.
      let place: DocumentPath
      var row: SyncedRow
      /// The state before the commit.
      let reliance: Reliance
      var isWritten = false
      /// Whether the commit changes its row.
      var isChanged = false
    }

    private let commit: WitnessedCommit
    private let entry: String
    private var documents: [DocumentPath: Document] = [:]

    init(_ commit: WitnessedCommit, _ entry: String) {
      self.commit = commit
      self.entry = entry
    }

    func isWritten(_ path: DocumentPath) -> Bool { documents[path]?.isWritten == true }

    /// Makes the document wait for the entry; false when it does so already.
    mutating func wait(for path: DocumentPath) throws(DatabaseError) -> Bool {
      guard documents[path] == nil else { return false }
      var document = try load(path)
      if document.row.waiting.isEmpty { document.row.base = try commit.fields(at: path) }
      document.row.waiting.append(entry)
      (document.isWritten, document.isChanged) = (true, true)
      documents[path] = document
      return true
    }

    /// Has the rows say what is shown once the entry is committed.
    mutating func show(_ entry: OutboxEntry) {
      documents = documents.mapValues { document in
        guard document.isWritten else { return document }
        var document = document
        if entry.determines(document.row.path) { document.row.lacksEntry = false }
        document.row.shown = document.row.lacksEntry ? .impossible : nil
        return document
      }
    }

    private func load(_ path: DocumentPath) throws(DatabaseError) -> Document {
      let place = SyncedRow.place(of: path)
      let row = try commit.fields(at: place).flatMap { SyncedRow($0) } ?? SyncedRow(path)
      return Document(place: place, row: row, reliance: row.state)
    }

    /// What a write relies on that was made for the document as it is. Nothing, when this device
    /// does not know whether the server has the document.
    func reliance(on path: DocumentPath, _ wholes: FollowedCollections) -> Reliance {
      guard let document = documents[path] else { return .none }
      // An absence that the server has answered is known as such.
      guard document.reliance == .none else { return document.reliance }
      return wholes.contains(path) && document.row.base == nil ? .absent : .none
    }

    /// What a commit relies on that has read the document. It waits for an entry that made the
    /// state: that entry's answer decides about this one.
    mutating func read(
      _ path: DocumentPath, _ wholes: FollowedCollections
    ) throws(DatabaseError) -> Reliance {
      var document = try load(path)
      if case .after = document.reliance {
        document.row.waiting.append(entry)
        document.row.shown = nil
        document.isChanged = true
      } else if try commit.fields(at: path) != nil, document.reliance == .none {
        return .none
      }
      documents[path] = document
      return reliance(on: path, wholes)
    }

    var writes: [ClientWrite] {
      documents.filter(\.value.isChanged).sorted { $0.key < $1.key }.map { _, document in
        ClientWrite(path: document.place, .replace(document.row.fields))
      }
    }
  }

  extension Timestamp {
    /// A clock's time, or the end of times for a clock that is beyond it.
    init(clock microseconds: Int64) {
      self = (try? Timestamp(microsecondsSince1970: microseconds)) ?? .maximum
    }
  }
#endif
