// One life of a store in a crash test: opened, used, closed. Every promise that it makes goes into
// the history. The crash comes from outside, in the pictures of the disk. A fault comes from
// inside, as an error at some step, after which the store must still answer truthfully.

internal import OndolEngine

/// The contents of a recovered store.
struct Recovered: Sendable {
  var sequence: UInt64
  var rows: Rows
}

/// The result of a life.
struct LifeOutcome: Sendable {
  /// The contents after opening; nil if that failed.
  var first: Recovered?
  /// The contents before closing, after the error if there was one; nil if they could not be read.
  var last: Recovered?
  /// The first error.
  var error: String?
  /// The broken invariant, whatever the errors.
  var brokenInvariant: String?

  mutating func note(_ error: any Error) {
    if error is BrokenInvariant { brokenInvariant = brokenInvariant ?? "\(error)" }
    self.error = self.error ?? "\(error)"
  }
}

/// Does the steps of a workload and records the promises.
struct LivingStore: Sendable {
  let open: @Sendable () async throws -> any CrashSubject
  let history: History

  /// Runs `steps` on `fileSystem`. `seed` decides everything else in the world.
  static func live(
    _ steps: [Workload.Step], on fileSystem: SimulatedFileSystem, _ history: History,
    seed: UInt64, options: SubjectOptions, open: @escaping OpenSubject
  ) throws -> LifeOutcome {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
      let store = LivingStore(
        open: { try await open(world.environment, options) }, history: history)
      return await store.live(steps)
    }
  }

  private func live(_ steps: [Workload.Step]) async -> LifeOutcome {
    var outcome = LifeOutcome()
    var store: (any CrashSubject)?
    do {
      let opened = try await open()
      store = opened
      if opened.makesCommitsOfItsOwn { history.allowGaps() }
      let first = try await contents(of: opened)
      outcome.first = first
      history.note(.opened(Int(clamping: first.sequence)))
      for step in steps {
        try await take(step, &store)
      }
    } catch {
      outcome.note(error)
    }
    guard let store else { return outcome }
    do {
      outcome.last = try await contents(of: store)
      try await close(store)
    } catch {
      outcome.note(error)
      // Closing again must be harmless, and releases the directory.
      try? await store.close()
    }
    return outcome
  }

  private func take(_ step: Workload.Step, _ store: inout (any CrashSubject)?) async throws {
    guard let open = store else { return }
    switch step {
    case .commit(let changes, let durability):
      try await commit(changes, durability, to: open)
    case .together(let commits, let alsoFlush):
      try await commitTogether(commits, alsoFlush: alsoFlush, to: open)
    case .synchronize:
      try await save { try await open.synchronize() }
    case .flush:
      try await save { try await open.flush() }
    case .settle:
      try await save { try await open.settle() }
    case .reopen:
      try await close(open)
      store = nil
      store = try await self.open()
    }
  }

  private func contents(of store: any CrashSubject) async throws -> Recovered {
    let (sequence, rows) = try await store.contents()
    return Recovered(sequence: sequence, rows: rows)
  }

  private func close(_ store: any CrashSubject) async throws {
    try await save { try await store.close() }
  }

  /// Does `work`, which makes everything acknowledged before it safe.
  private func save(_ work: () async throws -> Void) async throws {
    let newest = history.newestAcknowledged
    try await work()
    history.note(.saved(newest))
  }

  private func commit(
    _ changes: [Change], _ durability: Durability, to store: any CrashSubject
  ) async throws {
    history.began(changes)
    let place = try await store.commit(changes, durability)
    history.acknowledged(place, changes, durability)
  }

  /// Waits for all, and then throws the first error, if any.
  private func commitTogether(
    _ commits: [Workload.Commit], alsoFlush: Bool, to store: any CrashSubject
  ) async throws {
    let error = await withTaskGroup(of: (any Error)?.self) { group in
      for commit in commits {
        group.addTask {
          await catching { try await self.commit(commit.changes, commit.durability, to: store) }
        }
      }
      if alsoFlush {
        group.addTask { await catching { try await save { try await store.flush() } } }
      }
      var first: (any Error)?
      for await error in group { first = first ?? error }
      return first
    }
    if let error { throw error }
  }
}

private func catching(_ work: () async throws -> Void) async -> (any Error)? {
  do {
    try await work()
    return nil
  } catch {
    return error
  }
}
