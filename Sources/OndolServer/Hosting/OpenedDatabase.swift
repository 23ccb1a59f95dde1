// A database that the server opens itself: when it is first asked for, and again when it has failed
// for good, which a write that failed and a server that lost commits bring about. A server that ran
// on with such a database would refuse every write until somebody restarted it.

#if Server
  package import Ondol

  /// A database that is opened when it must be.
  package actor OpenedDatabase {
    /// Opens the database.
    package typealias Open = @Sendable () async throws(DatabaseError) -> Database
    private typealias Opening = Task<Result<ServedDatabase, DatabaseError>, Never>

    private let open: Open
    private let executor: (any TaskExecutor)?
    private var opening: Opening?
    private var isClosed = false

    /// - Parameters:
    ///   - executor: runs what opens it, instead of the usual one: a simulation's.
    ///   - open: opens it.
    package init(on executor: (any TaskExecutor)? = nil, _ open: @escaping Open) {
      self.executor = executor
      self.open = open
    }

    /// The database, which works or has failed just now.
    ///
    /// - Throws: what opening it throws; the next call tries again. `.unavailable` when it is
    ///   closed.
    func served() async throws(DatabaseError) -> ServedDatabase {
      if let known = opening {
        let served = try await known.value.get()
        if served.database.failure == nil || isClosed { return served }
        // One of those who find it so opens it again, and the others wait for that.
        if opening == known { opening = start(insteadOf: served) }
      }
      guard !isClosed else {
        throw DatabaseError(.unavailable, "the server is shutting down")
      }
      let current = opening ?? start(insteadOf: nil)
      opening = current
      let result = await current.value
      if case .failure = result, opening == current { opening = nil }
      return try result.get()
    }

    private func start(insteadOf failed: ServedDatabase?) -> Opening {
      Task(executorPreference: executor) { [open] in
        // Its files are locked until it is closed. What closing it says, its writes have said.
        try? await failed?.database.close()
        do throws(DatabaseError) {
          return .success(ServedDatabase(try await open()))
        } catch {
          return .failure(error)
        }
      }
    }

    /// Closes the database for good.
    ///
    /// - Throws: as `Database.close()`.
    package func close() async throws(DatabaseError) {
      isClosed = true
      guard let last = opening else { return }
      opening = nil
      if case .success(let served) = await last.value { try await served.database.close() }
    }
  }

  extension OpenedDatabase {
    /// Opens the database, so that what is wrong with it is known before anybody asks for it.
    ///
    /// - Throws: what opening it throws.
    package func begin() async throws(DatabaseError) { _ = try await served() }
  }
#endif
