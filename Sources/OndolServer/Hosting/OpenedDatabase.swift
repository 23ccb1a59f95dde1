// A database that the server opens itself: at the first request, and again after a permanent
// failure. A failed write, or a server that lost commits, causes one. Without reopening, the server
// would refuse every write until an operator restarts it.

#if Server
  package import Ondol

  /// A database that is opened on demand.
  package actor OpenedDatabase {
    /// Opens the database.
    package typealias Open = @Sendable () async throws(DatabaseError) -> Database
    private typealias Opening = Task<Result<ServedDatabase, DatabaseError>, Never>

    private let open: Open
    private let executor: (any TaskExecutor)?
    private var opening: Opening?
    private var isClosed = false

    /// - Parameters:
    ///   - executor: runs the opening instead of the default executor: a simulation's.
    ///   - open: opens the database.
    package init(on executor: (any TaskExecutor)? = nil, _ open: @escaping Open) {
      self.executor = executor
      self.open = open
    }

    /// Returns the database, which works or has failed only now.
    ///
    /// - Throws: the error of opening it; the next call tries again. `.unavailable` when it is
    ///   closed.
    @discardableResult
    package func served() async throws(DatabaseError) -> ServedDatabase {
      if let known = opening {
        let served = try await known.value.get()
        if served.database.failure == nil || isClosed { return served }
        // One of the callers that find it failed opens it again, and the others wait.
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
        // Its files are locked until it is closed. Its writes have already reported the error of
        // closing.
        try? await failed?.database.close()
        do throws(DatabaseError) {
          return .success(ServedDatabase(try await open()))
        } catch {
          return .failure(error)
        }
      }
    }

    /// Closes the database permanently.
    ///
    /// - Throws: as `Database.close()`.
    package func close() async throws(DatabaseError) {
      isClosed = true
      guard let last = opening else { return }
      opening = nil
      if case .success(let served) = await last.value { try await served.database.close() }
    }
  }
#endif
