// Synchronisation as an app uses it.

#if Sync
  import Foundation
  public import Ondol
  import OndolEngine
  package import OndolMapping

  /// Keeps chosen collections of a database equal to a server's: an `ondol serve`.
  ///
  /// ```swift
  /// let database = try await Database.open(at: "shop.ondol")
  /// let server = try SyncServer.ondol("https://shop.example", project: "shop")
  /// let sync = try await Sync(database, with: server)
  /// try await sync.follow(database.collection("items"))
  /// try await database.document("items/lamp").updateData(["count": FieldValue.increment(-1)])
  /// ```
  ///
  /// The app reads and writes the database as always, with and without a network. A write to a
  /// followed collection is visible at once, and goes to the server when that can be reached,
  /// exactly once. What others commit on the server arrives as one local commit for each of
  /// theirs. A write that the server refuses is taken back and becomes a ``Rejection``.
  ///
  /// Make it directly after opening the database. Until then, writes to followed collections throw
  /// `.failedPrecondition`, because nobody would write them down for the server.
  public final class Sync: Sendable {
    /// How a device synchronises.
    public struct Options: Sendable {
      /// Commits that may wait for the server, beyond which writes throw `.resourceExhausted`.
      public var outboxCount = 100_000
      /// Bytes of writes that may wait for the server, beyond which writes throw
      /// `.resourceExhausted`.
      public var outboxSize = 256 << 20

      /// When the contents of documents from the server are fetched.
      public var contents = ContentFetching.lazy

      /// Bytes of contents in one request.
      package var contentPiece = 4 << 20

      /// 100,000 commits and 256 MiB, and contents when they are read.
      public init() {}
    }

    private struct State: Sendable {
      var isStopped = false
      var follows = FollowedCollections()
      var wholes = FollowedCollections()
      /// Follows that are beginning and have no rows yet.
      var beginning: [Int: FollowedQuery] = [:]
      var next = 0
    }

    let database: Database
    private let engine: SyncEngine
    private let witness: SyncWitness
    private let transport: any SyncTransport
    private let board: StateBoard
    private let stopping = Bell()
    private let stopped = Bell()
    private let state = Guarded(State())
    private let network = Guarded<NetworkMonitor?>(nil)

    /// Begins to synchronise.
    ///
    /// - Parameters:
    ///   - database: the database, open for writing.
    ///   - server: the server.
    ///   - session: who the user is; nil for nobody.
    ///   - options: limits.
    /// - Throws: `.failedPrecondition` when the database is synchronised already, or is open for
    ///   reading only; `.unimplemented` for a database on a server; `.dataLoss` when rows of
    ///   synchronisation are damaged; `.invalidArgument` for a useless address; otherwise as reads
    ///   and writes do.
    /// - Complexity: O(follows + waiting writes). It does not wait for the server.
    public convenience init(
      _ database: Database, with server: SyncServer, as session: (any SyncSession)? = nil,
      options: Options = Options()
    ) async throws(DatabaseError) {
      let transport: GRPCTransport
      do {
        transport = try GRPCTransport(to: server)
      } catch {
        throw DatabaseError(
          .invalidArgument, "the server's address cannot be used: \(error)")
      }
      do throws(DatabaseError) {
        try await self.init(
          database, over: transport, to: server.name,
          bucket: server.storage.map { _ in SyncServer.bucket(of: server.project) },
          isGoogles: server.isGoogles, as: session, options: options)
      } catch {
        await transport.close()
        throw error
      }
      watchNetwork()
    }

    /// Begins to synchronise over streams that the caller supplies.
    ///
    /// - Parameters:
    ///   - bucket: the name of the server's storage; nil for a server without one.
    ///   - isGoogles: whether the server records no names of writes.
    package init(
      _ database: Database, over transport: any SyncTransport, to name: DatabaseName,
      bucket: String? = nil, isGoogles: Bool = false, as session: (any SyncSession)? = nil,
      options: Options = Options()
    ) async throws(DatabaseError) {
      guard !database.isOnStore else {
        throw DatabaseError(
          .unimplemented, "a database on a server is shared already, and is not synchronised",
          suggestion: "open one in a directory for each device", path: database.name)
      }
      self.database = database
      self.transport = transport
      let opening = AutomaticID.make(database.environment.random)
      board = StateBoard()
      witness = SyncWitness(
        session: opening,
        limits: .init(entries: options.outboxCount, bytes: options.outboxSize), board: board,
        database.environment)
      var follows: [FollowedQuery] = []
      for row in try await database.syncFollows.getDocuments().documents {
        follows.append(try FollowedQuery(row))
      }
      let stored = try await SyncClient.row(in: database).getDocument()
      let client = SyncClient(stored.data())
      let exchange = ContentExchange(
        database, transport, bucket: bucket, piece: options.contentPiece)
      engine = SyncEngine(
        database, transport, as: name, witness,
        client ?? SyncClient(id: AutomaticID.make(database.environment.random)), session: opening,
        board: board, credentials: session, exchange, isGoogles: isGoogles,
        isEager: options.contents == .eager)
      await exchange.begin(for: engine)
      for follow in follows { add(follow) }
      try database.attach(witness)
      do throws(DatabaseError) {
        if client == nil { try await engine.commits.write(await engine.client) }
        try await resume(follows)
      } catch {
        database.detach(witness, leaving: absence)
        throw error
      }
      _ = database.attach(exchange)
      start()
    }

    /// Reads the outbox, and finishes what an earlier session has left.
    private func resume(_ follows: [FollowedQuery]) async throws(DatabaseError) {
      var entries: [OutboxEntry] = []
      for try await row in database.syncOutbox.query.documents {
        let entry = try OutboxEntry(row)
        witness.count(entries: 1, bytes: try entry.fields().bytes)
        entries.append(entry)
      }
      var waiting: Set<DocumentPath> = []
      for path in Set(entries.flatMap(\.paths)) {
        let row = try await database.syncedRow(of: path).getDocument()
        if SyncedRow(row.data())?.waiting.isEmpty == false { waiting.insert(path) }
      }
      try await database.noteSynchronised(waiting: Array(waiting))
      await engine.load(follows.filter { !$0.isEnding }, entries)
      for follow in follows where follow.isEnding { try await forget(follow) }
    }

    private func start() {
      database.inBackground { [self] in
        await withTaskGroup(of: Void.self) { group in
          group.addTask { await self.engine.run() }
          group.addTask { await self.stopping.wait() }
          await group.next()
          group.cancelAll()
        }
        database.detach(engine.exchange)
        await engine.exchange.end()
        await transport.close()
        finish()
      }
    }

    /// Has the device try again at once when the system says that its network has changed.
    private func watchNetwork() {
      let monitor = NetworkMonitor { [weak self] in
        guard let self else { return }
        database.inBackground { await self.engine.wakeWhenOffline() }
      }
      network.withLock { $0 = monitor }
      if state.withLock(\.isStopped) { monitor.cancel() }
    }

    private func finish() {
      network.withLock { $0 }?.cancel()
      state.withLock { $0.isStopped = true }
      database.detach(witness, leaving: absence)
      board.finish()
      stopped.ring()
    }

    /// What refuses writes when nobody writes them down.
    private var absence: AbsentWitness? {
      let follows = state.withLock(\.follows)
      return follows.isEmpty ? nil : AbsentWitness(follows)
    }

    /// Stops. Everything stays as it is: the next `Sync` of the database goes on from there. Until
    /// then, writes to followed collections throw `.failedPrecondition`.
    public func stop() async {
      guard !state.withLock(\.isStopped) else { return }
      stopping.ring()
      await stopped.wait()
      stopped.ring()
    }

    private func refuseWhenStopped() throws(DatabaseError) {
      guard !state.withLock(\.isStopped) else {
        throw DatabaseError(.failedPrecondition, "the synchronisation was stopped")
      }
    }

    // MARK: - Follows

    /// Keeps the documents of a query equal to the server's, from now on and after the database is
    /// opened again. Following the same query again does nothing.
    ///
    /// The call does not wait for the documents. `states` says when they are complete.
    ///
    /// - Parameters:
    ///   - source: a collection, a group or a query in the terms of Firestore: conditions, orders
    ///     and a limit.
    ///   - existing: what happens to documents that only this device has.
    /// - Returns: the follow's number in ``SyncState/follows``.
    /// - Throws: `.unimplemented` for a query that Firestore's protocol cannot express;
    ///   `.failedPrecondition` when there are documents and `existing` is `.refuse`, when they may
    ///   be in a collection with a key of its own, or after `stop()`; otherwise as reads and writes
    ///   do.
    /// - Complexity: O(documents of the query on this device).
    @discardableResult
    public func follow(
      _ source: some QuerySource, existing: ExistingDocuments = .refuse
    ) async throws(DatabaseError) -> Int64 {
      try refuseWhenStopped()
      let query = source.query
      try await database.refuseOwnKeys(of: try query.readSource())
      // From here on, what the app writes is written down.
      let beginning = try FollowedQuery(query, number: 0)
      let place = state.withLock { state in
        state.next += 1
        state.beginning[state.next] = beginning
        return state.next
      }
      defer { state.withLock { _ = $0.beginning.removeValue(forKey: place) } }
      add(beginning)
      do throws(DatabaseError) {
        let own = try await ownDocuments(of: query)
        guard own.isEmpty || existing != .refuse else {
          throw DatabaseError(
            .failedPrecondition,
            "the collection has \(own.count) documents that only this device has",
            suggestion: "follow it with existing: .upload or .replace",
            path: own.first?.reference.path)
        }
        let paths = try own.map { (own) throws(DatabaseError) in
          try DocumentPath(own.reference.path)
        }
        let follow = try await engine.commits.begin(
          query, removing: existing == .replace ? paths : [],
          uploading: existing == .upload ? paths : [], session: engine.session,
          database.environment)
        await engine.begin(follow)
        return follow.number
      } catch {
        state.withLock { _ = $0.beginning.removeValue(forKey: place) }
        await forgetFailed()
        throw error
      }
    }

    /// Watches only the collections of follows that exist, after a call that has failed.
    private func forgetFailed() async {
      // The caller's task may be cancelled, and reads with it.
      let task = Task(executorPreference: database.environment.executor) { [self] in
        try? await watchFollowed()
      }
      await task.value
    }

    /// Watches the collections of all follows.
    private func watchFollowed() async throws(DatabaseError) {
      var (follows, wholes) = (FollowedCollections(), FollowedCollections())
      for row in try await database.syncFollows.getDocuments().documents {
        Self.add(try FollowedQuery(row), &follows, &wholes)
      }
      (follows, wholes) = state.withLock { [follows, wholes] state in
        (state.follows, state.wholes) = (follows, wholes)
        for beginning in state.beginning.values {
          Self.add(beginning, &state.follows, &state.wholes)
        }
        return (state.follows, state.wholes)
      }
      witness.follow(follows, wholes: wholes)
    }

    /// The documents of a query that the server does not know of.
    private func ownDocuments(of query: Query) async throws(DatabaseError) -> [DocumentSnapshot] {
      var own: [DocumentSnapshot] = []
      for try await document in query.documents {
        let path = try DocumentPath(document.reference.path)
        let row = try await database.syncedRow(of: path).getDocument()
        if !row.exists { own.append(document) }
      }
      return own
    }

    /// Ends a follow, and removes its documents from this device, unless another follow has them or
    /// they have writes that wait. The server keeps them.
    ///
    /// - Parameter source: the query, as it was followed.
    /// - Throws: `.notFound` when it is not followed; otherwise as writes do.
    /// - Complexity: O(documents on this device that are followed).
    public func unfollow(_ source: some QuerySource) async throws(DatabaseError) {
      try refuseWhenStopped()
      let wanted = try FollowedQuery(source.query, number: 0)
      for row in try await database.syncFollows.getDocuments().documents {
        var follow = try FollowedQuery(row)
        guard follow.isSame(as: wanted) else { continue }
        follow.isEnding = true
        await engine.end(follow.number)
        try await engine.commits.write(follow)
        try await forget(follow)
        return
      }
      throw DatabaseError(.notFound, "the query is not followed", path: wanted.source.text)
    }

    /// Documents that are removed in one commit.
    private static let stretch = 500

    private func forget(_ follow: FollowedQuery) async throws(DatabaseError) {
      var paths: [DocumentPath] = []
      let members = database.syncedDocuments.whereField(
        SyncedRow.followsField, arrayContains: follow.number)
      for try await row in members.documents {
        guard let path = SyncedRow(row.data())?.path else { continue }
        paths.append(path)
      }
      while !paths.isEmpty {
        let next = Array(paths.prefix(Self.stretch))
        paths.removeFirst(next.count)
        try await engine.commits.leave(follow.number, next)
      }
      try await engine.commits.remove(follow)
      try await watchFollowed()
    }

    private static func add(
      _ follow: FollowedQuery, _ follows: inout FollowedCollections,
      _ wholes: inout FollowedCollections
    ) {
      guard !follow.isEnding else { return }
      follow.add(to: &follows)
      if follow.isWhole { follow.add(to: &wholes) }
    }

    private func add(_ follow: FollowedQuery) {
      let (follows, wholes) = state.withLock { state in
        Self.add(follow, &state.follows, &state.wholes)
        return (state.follows, state.wholes)
      }
      witness.follow(follows, wholes: wholes)
    }

    // MARK: - Watching

    /// What synchronisation is doing: the present state, and each later one. A slow reader gets the
    /// newest.
    public var states: AsyncStream<SyncState> { board.watch() }

    /// What synchronisation is doing now.
    public var currentState: SyncState { board.newest }

    /// Waits until this device has all that it follows and the server all that was written here.
    /// What others write at the same time may still be on its way to this device.
    ///
    /// - Throws: `.cancelled` when the task is cancelled or synchronisation stops.
    public func settle() async throws(DatabaseError) {
      for await state in states where state.isSettled { return }
      throw DatabaseError(.cancelled, "the synchronisation ended before all was exchanged")
    }

    /// The commits that the server has refused and that were not dismissed, the earliest first.
    ///
    /// - Throws: as reads do.
    public func pendingRejections() async throws(DatabaseError) -> [Rejection] {
      try await database.syncRejections.getDocuments().documents.compactMap { Rejection($0) }
        .sorted { ($0.time, $0.id) < ($1.time, $1.id) }
    }

    /// The commits that the server has refused: those that were not dismissed, and each later one.
    /// The sequence ends when the database is closed.
    public var rejections: Rejections { Rejections(rows: database.syncRejections.snapshots) }

    /// Forgets a rejection: the app has dealt with it.
    ///
    /// - Throws: as writes do.
    public func dismiss(_ rejection: Rejection) async throws(DatabaseError) {
      try await engine.commits.remove(rejection: rejection.id)
    }

    /// Makes the refused commit again, as it would be made now, and forgets the rejection.
    ///
    /// - Throws: as the writes do.
    public func retry(_ rejection: Rejection) async throws(DatabaseError) {
      try refuseWhenStopped()
      let writes = rejection.writes.filter { !$0.isVerify }
      if !writes.isEmpty { _ = try await database.commit(writes) }
      try await dismiss(rejection)
    }

    // MARK: - Conflicts

    /// Gives the rule by which documents are merged that this device and others have changed in the
    /// same fields, in collections with an id. Without a rule, the commit that reaches the server
    /// last decides, field by field.
    ///
    /// ```swift
    /// try await sync.merge(of: "notes") { base, mine, theirs in
    ///   guard let mine, let theirs else { return mine ?? theirs }
    ///   var merged = theirs
    ///   merged["tags"] = union(mine["tags"], theirs["tags"])
    ///   return merged
    /// }
    /// ```
    ///
    /// Give it directly after making the `Sync`, at each start of the app: it is code, and not
    /// stored. Commits that were made under a rule, and meet a conflict while there is none, wait
    /// until there is one; ``SyncState/collectionsToMerge`` names the collections. The rule's
    /// result takes the place of what the commit meant, and waits in its stead.
    ///
    /// The rule is asked about writes that do not rely on what they have read: not about those of
    /// transactions, with `ifVersion`, or that create a document. These are refused.
    ///
    /// - Parameters:
    ///   - id: the collections' id: `notes` is also that of `users/ann/notes`.
    ///   - rule: must depend on nothing but its arguments, because it may be asked again. It runs
    ///     in a transaction, and must not use the database. When it throws, the commit becomes a
    ///     rejection with the reason `.unmerged`. Nil has all commits merged by fields, also those
    ///     that wait for a rule.
    /// - Throws: as writes do.
    public func merge(of id: String, by rule: MergeRule?) async throws(DatabaseError) {
      try refuseWhenStopped()
      witness.merges.set(rule, of: id)
      try await engine.mergeHeld(decided: [])
    }

    // MARK: - Network and user

    /// Tries to reach the server at once, and not after a pause: for an app that knows that the
    /// server is back. The device learns of its own network from the system, on Linux and on
    /// Apple's systems.
    public func reconnect() async { await engine.wake() }

    /// Identifies as another user from now on; nil for nobody. Waiting writes are sent as the new
    /// user.
    public func signIn(as session: (any SyncSession)?) async { await engine.use(session) }
  }
#endif
