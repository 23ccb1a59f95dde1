// One life of a store in a crash test: opened, used, closed; everything it was promised goes into the
// history. The crash comes from outside, in the pictures of the disk.

internal import OndolEngine

/// What a store was found to hold.
struct Recovered: Sendable {
  var sequence: UInt64
  var rows: Rows
}

/// Does the steps of a workload and notes what it was promised.
struct LivingStore: Sendable {
  let open: @Sendable () async throws -> any CrashSubject
  let history: History

  /// What was there at the beginning and at the end.
  func live(_ steps: [Workload.Step]) async throws -> (first: Recovered, last: Recovered) {
    var store = try await open()
    let first = try await contents(of: store)
    history.note(.opened(Int(clamping: first.sequence)))
    for step in steps {
      switch step {
      case .commit(let changes, let durability):
        try await commit(changes, durability, to: store)
      case .together(let commits):
        try await commitTogether(commits, to: store)
      case .flush:
        try await store.flush()
        history.note(.saved)
      case .settle:
        try await store.settle()
        history.note(.saved)
      case .reopen:
        try await close(store)
        store = try await open()
      }
    }
    let last = try await contents(of: store)
    try await close(store)
    return (first, last)
  }

  private func contents(of store: any CrashSubject) async throws -> Recovered {
    let (sequence, rows) = try await store.contents()
    return Recovered(sequence: sequence, rows: rows)
  }

  private func close(_ store: any CrashSubject) async throws {
    try await store.close()
    history.note(.saved)
  }

  private func commit(
    _ changes: [Change], _ durability: Durability, to store: any CrashSubject
  ) async throws {
    history.note(.began)
    let sequence = try await store.commit(changes, durability)
    history.acknowledged(sequence, changes, durability)
  }

  private func commitTogether(
    _ commits: [(changes: [Change], durability: Durability)], to store: any CrashSubject
  ) async throws {
    try await withThrowingTaskGroup { group in
      for (changes, durability) in commits {
        group.addTask {
          try await commit(changes, durability, to: store)
        }
      }
      try await group.waitForAll()
    }
  }
}
