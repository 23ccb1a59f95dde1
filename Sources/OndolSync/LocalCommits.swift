// The commits that synchronisation makes itself: what the server has shown, what it has answered,
// and what it has refused. Each is one commit of the database, so listeners never see a part of
// one, and a crash never leaves a part.

#if Sync
  import Ondol
  import OndolEngine

  /// A document as the server has it.
  struct ServerDocument: Sendable {
    var fields: [String: Value]
    var updated: Timestamp
  }

  /// What the server says of a document since the last moment.
  struct ServerChange: Sendable {
    enum State: Sendable {
      case shown(ServerDocument)
      case deleted
      /// It is no longer in the follows; the device does not know what became of it.
      case left
    }

    var state: State
    var joined: Set<Int64> = []
    var left: Set<Int64> = []
  }

  /// A state of the server as of one of its commits, or a part of the first load of a follow.
  struct ServerMoment: Sendable {
    var changes: [DocumentPath: ServerChange] = [:]
    /// Nil for a part of a first load.
    var time: Timestamp?
    /// From where each follow continues. Follows that are not here stay as they are.
    var tokens: [Int64: [UInt8]] = [:]
    /// Follows that are loaded from nothing, so that a document must not show half of what another
    /// follow shows.
    var loading: Set<Int64> = []

    /// Goes on to a later moment.
    mutating func add(_ later: ServerMoment) {
      time = later.time
      tokens.merge(later.tokens) { _, newer in newer }
      for (path, change) in later.changes { changes[path] = changes[path]?.then(change) ?? change }
    }
  }

  extension ServerChange {
    /// What the server has said by a later moment.
    func then(_ later: ServerChange) -> ServerChange {
      var both = later
      both.joined.formUnion(joined.subtracting(later.left))
      both.left.formUnion(left.subtracting(later.joined))
      // It has left one follow, and another still has it.
      if case .left = later.state, !both.joined.isEmpty || !isShown { both.state = state }
      return both
    }

    private var isShown: Bool { if case .shown = state { true } else { false } }
  }

  /// Moments that came while another was committed.
  struct PendingMoment: Sendable {
    var moment: ServerMoment
    /// The entries that were without an answer then, and may be in it.
    var unanswered: Set<String>
  }

  /// Makes commits that no witness sees.
  struct LocalCommits: Sendable {
    let database: Database
    let witness: SyncWitness

    func commit<R: Sendable>(
      _ body: (LocalTransaction) throws(DatabaseError) -> R
    ) async throws(DatabaseError) -> R {
      do {
        return try await database.runTransaction { transaction in
          transaction.leaveUnwitnessed()
          return try body(LocalTransaction(transaction, database))
        }
      } catch {
        throw error as? DatabaseError ?? DatabaseError(.unknown, "\(error)")
      }
    }

    // MARK: - What the server shows

    /// Brings the rows into memory that a transaction will read. It would run again for each that
    /// it does not find there.
    func warm(_ paths: [DocumentPath]) async throws(DatabaseError) {
      for path in paths {
        let row = SyncedRow(try await database.syncedRow(of: path).getDocument().data())
        for name in row?.waiting ?? [] {
          _ = try await database.syncOutbox.document(name).getDocument()
        }
        // One that cannot be upgraded is in memory as well.
        _ = try? await database.document(path).getDocument()
      }
    }

    /// Commits what the server shows as of a moment, with the writes on top that wait. Entries that
    /// the server has committed by then are done.
    ///
    /// - Returns: changes of a part of a first load that must wait for the moment, and the follows
    ///   as they are now.
    func apply(
      _ moment: ServerMoment, finishing entries: [OutboxEntry]
    ) async throws(DatabaseError) -> (kept: [DocumentPath: ServerChange], [FollowedQuery]) {
      let finished = Dictionary(
        entries.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
      let touched = Set(moment.changes.keys).union(entries.flatMap(\.paths)).sorted()
      try await warm(touched)
      let (kept, follows, bytes) = try await commit { (transaction) throws(DatabaseError) in
        var follows: [Int64: FollowedQuery] = [:]
        for document in try transaction.base.getDocuments(database.syncFollows).documents {
          let follow = try FollowedQuery(document)
          if !follow.isEnding { follows[follow.number] = follow }
        }
        var (kept, counts) = ([DocumentPath: ServerChange](), [Int64: Int64]())
        for path in touched {
          let row = try transaction.row(of: path)
          let change = moment.changes[path]
          if moment.time == nil, let change, isShared(row, moment.loading, follows) {
            kept[path] = change
            continue
          }
          try apply(change, to: row, finished, Set(follows.keys), &counts, transaction)
        }
        var bytes = 0
        for entry in entries {
          bytes += try entry.fields().bytes
          try transaction.removeEntry(entry.name)
        }
        for (number, count) in counts { follows[number]?.count += count }
        if let time = moment.time {
          for (number, token) in moment.tokens {
            follows[number]?.token = token
            follows[number]?.readTime = time
            follows[number]?.isComplete = true
          }
        }
        for follow in follows.values.sorted(by: { $0.number < $1.number })
        where moment.tokens[follow.number] != nil || counts[follow.number] != nil {
          try transaction.base.setValues(
            try follow.fields(), database.followRow(follow.number))
        }
        return (kept, follows.values.sorted { $0.number < $1.number }, bytes)
      }
      witness.count(entries: -entries.count, bytes: -bytes)
      return (kept, follows)
    }

    /// Whether a follow that is complete has the document.
    func isShared(
      _ row: SyncedRow, _ loading: Set<Int64>, _ follows: [Int64: FollowedQuery]
    ) -> Bool {
      row.follows.contains { !loading.contains($0) && follows[$0]?.isComplete == true }
    }

    func apply(
      _ change: ServerChange?, to row: SyncedRow, _ finished: [String: OutboxEntry],
      _ follows: Set<Int64>, _ counts: inout [Int64: Int64], _ transaction: LocalTransaction
    ) throws(DatabaseError) {
      var new = row
      if let change {
        // A follow that has ended meanwhile has no documents.
        new.follows.formUnion(change.joined.intersection(follows))
        new.follows.subtract(change.left)
      }
      for number in new.follows.subtracting(row.follows) { counts[number, default: 0] += 1 }
      for number in row.follows.subtracting(new.follows) { counts[number, default: 0] -= 1 }
      switch change?.state {
      case .shown(let document)?:
        if document.updated == row.updated, row.waiting.isEmpty, new.follows == row.follows,
          !row.follows.isEmpty
        {
          return
        }
        (new.base, new.updated) = (document.fields, document.updated)
      case .deleted?: (new.base, new.updated) = (nil, nil)
      case .left?: if new.follows.isEmpty { (new.base, new.updated) = (nil, nil) }
      case nil: break
      }
      try settleSeen(row, new, finished, transaction)
      new.ancestor = try ancestor(of: row, to: new, finished, transaction)
      new.waiting.removeAll { finished[$0] != nil }
      // Without waiting writes, the document itself is the base, and only what the server says of
      // it changes it.
      if row.waiting.isEmpty, change == nil { return }
      if row.waiting.isEmpty, case .left? = change?.state, !new.follows.isEmpty {
        return try transaction.write(new)
      }
      try show(new, transaction)
    }

    /// Tells entries what they rely on that were made on what a write without conditions had left.
    /// That is the server's state only if nobody else has changed the document before. If somebody
    /// has, they rely on a state that is no more, so that the server refuses them.
    func settleSeen(
      _ row: SyncedRow, _ new: SyncedRow, _ finished: [String: OutboxEntry],
      _ transaction: LocalTransaction
    ) throws(DatabaseError) {
      let later = row.waiting.filter { finished[$0] == nil }
      guard !later.isEmpty else { return }
      var entries: [OutboxEntry] = []
      for name in row.waiting {
        if let entry = finished[name] {
          entries.append(entry)
          continue
        }
        if let entry = try transaction.entry(name) { entries.append(entry) }
      }
      let vague = entries.filter { !$0.determines(row.path) }
      guard !vague.isEmpty else { return }
      let done = entries.filter { finished[$0.name] != nil }.flatMap(\.writes)
        .filter { $0.write.path == row.path }.map(\.write)
      let expected =
        done.isEmpty ? row.base : try play(done, on: row.base, at: row.path, transaction)
      var former = row.updated.map { .updated($0) } ?? Reliance.absent
      // The base had the finished writes before they were known to be, and the device has shown
      // them twice. The server has never had that state.
      if !done.isEmpty, new.updated == row.updated { former = .impossible }
      var changes: [Reliance: Reliance] = [:]
      for entry in vague {
        let isFinished = finished[entry.name] != nil
        // It is not known yet how it leaves the document.
        if !isFinished, expected == new.base { continue }
        let update = isFinished && expected == new.base ? entry.update(of: row.path) : nil
        changes[.after(entry.name)] = update ?? former
      }
      guard !changes.isEmpty else { return }
      for name in later { try rely(name, on: row.path, changes, transaction) }
    }

    /// The state that writes were made on that wait to be merged, once the server has another.
    func ancestor(
      of row: SyncedRow, to new: SyncedRow, _ finished: [String: OutboxEntry],
      _ transaction: LocalTransaction
    ) throws(DatabaseError) -> SyncedRow.Ancestor? {
      guard row.ancestor != nil || new.updated != row.updated else { return nil }
      var (done, mayMerge) = ([ClientWrite](), false)
      for name in row.waiting {
        if let entry = finished[name] {
          done += entry.writes.filter { $0.write.path == row.path }.map(\.write)
          continue
        }
        if try transaction.entry(name)?.mergedPaths.contains(row.path) == true {
          mayMerge = true
        }
      }
      guard mayMerge else { return nil }
      let base = row.ancestor.map(\.fields) ?? row.base
      let state = done.isEmpty ? base : try play(done, on: base, at: row.path, transaction)
      return state == new.base ? nil : SyncedRow.Ancestor(state)
    }

    /// Makes the document what its row says, and writes the row, or forgets both.
    func show(
      _ row: SyncedRow, _ transaction: LocalTransaction
    ) throws(DatabaseError) {
      if row.isForgotten {
        try transaction.base.deleteDocument(database.syncedRow(of: row.path))
        return try transaction.base.add(ClientWrite(path: row.path, .delete))
      }
      var replay = Replay(row.path, base: row.base, updated: row.updated)
      for name in row.waiting {
        if let entry = try transaction.entry(name) { replay.play(entry) }
      }
      // Their bytes are with the server, until somebody wants them.
      transaction.base.expectContents(of: row.base ?? [:])
      try transaction.base.show(replay)
      var row = row
      (row.shown, row.lacksEntry) = (replay.state, replay.lacksEntry)
      try transaction.write(row)
    }

    // MARK: - What the server answers

    /// Records that the server has committed entries, and that it has answered the device's groups
    /// up to a number.
    func acknowledge(
      _ answers: [(entry: OutboxEntry, answer: OutboxEntry.Answer)], _ client: SyncClient
    ) async throws(DatabaseError) {
      try await commit { (transaction) throws(DatabaseError) in
        for (entry, answer) in answers {
          guard var entry = try transaction.entry(entry.name) else { continue }
          entry.answer = answer
          try transaction.write(entry)
          for path in entry.paths { try settle(entry, path, transaction) }
        }
        try client.write(transaction.base, in: database)
      }
    }

    /// Tells later entries, which rely on how an entry leaves a document, when the server updated
    /// it. When the server's state may contain more than this device shows, they wait until it has
    /// been seen.
    func settle(
      _ entry: OutboxEntry, _ path: DocumentPath, _ transaction: LocalTransaction
    ) throws(DatabaseError) {
      guard let update = entry.update(of: path), entry.determines(path) else { return }
      var row = try transaction.row(of: path)
      if row.state == .after(entry.name) {
        // Later writes rely on the answer, and not on the entry.
        row.shown = update
        try transaction.write(row)
      }
      for name in row.waiting where name != entry.name {
        try rely(name, on: path, [.after(entry.name): update], transaction)
      }
    }

    /// Has an entry rely on other states of a document.
    ///
    /// - Parameter changes: the states that it may rely on, each with the one instead of it.
    func rely(
      _ name: String, on path: DocumentPath, _ changes: [Reliance: Reliance],
      _ transaction: LocalTransaction
    ) throws(DatabaseError) {
      guard var entry = try transaction.entry(name) else { return }
      var isChanged = false
      for index in entry.writes.indices where entry.writes[index].write.path == path {
        guard let new = changes[entry.writes[index].reliance] else { continue }
        entry.writes[index].reliance = new
        isChanged = true
      }
      guard isChanged else { return }
      let isFree = entry.isDelayed && entry.reliedOn.isEmpty
      if isFree { entry.isDelayed = false }
      try transaction.write(entry, isNew: isFree)
    }

    // MARK: - What the server refuses

    /// Takes back an entry that the server refuses, and all that rely on it. What they said goes to
    /// the rejections.
    ///
    /// - Parameter client: what the server has answered, if this is an answer.
    func takeBack(
      _ entry: OutboxEntry, for reason: Rejection.Reason, _ client: SyncClient? = nil
    ) async throws(DatabaseError) {
      let (count, bytes) = try await commit { (transaction) throws(DatabaseError) in
        var (refused, bytes) = ([OutboxEntry](), 0)
        var waiting = [(entry, reason)]
        while !waiting.isEmpty {
          let (known, reason) = waiting.removeFirst()
          guard let next = try transaction.entry(known.name) else { continue }
          refused.append(next)
          bytes += try next.fields().bytes
          try transaction.removeEntry(next.name)
          try transaction.base.setValues(
            try rejection(of: next, reason, transaction),
            database.syncRejections.document(next.name))
          for later in try followers(of: next, transaction) {
            waiting.append((later, .relied(on: entry.name)))
          }
          for path in next.paths {
            // What may be merged relies on the state before the refused entry from now on.
            let before = next.writes.first { $0.write.path == path }?.reliance ?? Reliance.none
            for name in try transaction.row(of: path).waiting where name != next.name {
              try rely(name, on: path, [.after(next.name): before], transaction)
            }
          }
        }
        let names = Set(refused.map(\.name))
        for path in Set(refused.flatMap(\.paths)).sorted() {
          var row = try transaction.row(of: path)
          guard row.waiting.contains(where: names.contains) else { continue }
          row.waiting.removeAll { names.contains($0) }
          try show(row, transaction)
        }
        try client?.write(transaction.base, in: database)
        return (refused.count, bytes)
      }
      witness.count(entries: -count, bytes: -bytes)
    }

    /// The entries that rely on how an entry leaves its documents.
    func followers(
      of entry: OutboxEntry, _ transaction: LocalTransaction
    ) throws(DatabaseError) -> [OutboxEntry] {
      var followers: [OutboxEntry] = []
      for path in entry.paths {
        for name in try transaction.row(of: path).waiting where name != entry.name {
          guard let later = try transaction.entry(name) else { continue }
          if later.standsOrFalls(with: entry.name) { followers.append(later) }
        }
      }
      return followers
    }

    func rejection(
      of entry: OutboxEntry, _ reason: Rejection.Reason, _ transaction: LocalTransaction
    ) throws(DatabaseError) -> [String: Value] {
      var states: [Rejection.State] = []
      for path in entry.paths {
        // Nil for one that its collection's schema cannot read.
        let mine = try? transaction.base.getDocument(database.document(path))
        let row = try transaction.row(of: path)
        states.append(
          Rejection.State(
            path: path, mine: mine.flatMap { $0.exists ? $0.data() : nil }, theirs: row.base))
      }
      return try Rejection.fields(of: entry, reason, states)
    }
  }

  /// Who a device is for its server.
  struct SyncClient: Sendable {
    /// The name of its stream of writes.
    var id: String
    /// The number of groups that the server has answered.
    var answered: Int64 = 0

    private enum Field {
      static let id = "id"
      static let answered = "answered"
    }

    init(id: String) {
      self.id = id
    }

    /// Nil for fields that are none.
    init?(_ fields: [String: Value]) {
      guard case .string(let id)? = fields[Field.id],
        case .integer(let answered)? = fields[Field.answered]
      else { return nil }
      self.id = id
      self.answered = answered
    }

    func write(_ transaction: Transaction, in database: Database) throws(DatabaseError) {
      try transaction.setValues(
        [Field.id: .string(id), Field.answered: .integer(answered)], Self.row(in: database))
    }

    static func row(in database: Database) -> DocumentReference {
      database.syncClient.document("client")
    }
  }

  extension Transaction {
    /// Makes the document these fields.
    func setValues(
      _ fields: [String: Value], _ reference: DocumentReference
    ) throws(DatabaseError) {
      try setData(fields.mapValues { Optional($0 as any FieldContent) }, forDocument: reference)
    }
  }
#endif
