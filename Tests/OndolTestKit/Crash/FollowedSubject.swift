// A store with a follower, which is open only for reading beside it in the same world. At each read
// of the store, the follower looks again, and must see the same.

package import OndolEngine

/// An open store and its follower.
package struct FollowedSubject: CrashSubject {
  private let base: any CrashSubject
  private let keyed: KeyedSubject
  private let environment: Environment
  private let options: SubjectOptions
  private let follower = Guarded<Engine?>(nil)

  /// - Parameters:
  ///   - base: the store in use.
  ///   - keyed: the same store, for reads.
  init(
    _ base: any CrashSubject, _ keyed: KeyedSubject, _ environment: Environment,
    _ options: SubjectOptions
  ) {
    self.base = base
    self.keyed = keyed
    self.environment = environment
    self.options = options
  }

  package var makesCommitsOfItsOwn: Bool { base.makesCommitsOfItsOwn }

  package func commit(
    _ changes: [Change], _ durability: Durability
  ) async throws -> CommitPlace {
    try await base.commit(changes, durability)
  }

  package func contents() async throws -> (sequence: UInt64, rows: Rows) {
    // Commits that are only in memory are invisible to others.
    try await base.synchronize()
    let mine = try await base.contents()
    let theirs = try await keyed.rows(in: try await refreshed())
    guard mine == theirs else {
      throw BrokenInvariant(
        "the follower sees commit \(theirs.sequence) with \(theirs.rows.count) rows, and the last"
          + " is \(mine.sequence) with \(mine.rows.count)")
    }
    return mine
  }

  /// The follower, after it has read the files again.
  private func refreshed() async throws -> Engine {
    if let engine = follower.withLock({ $0 }) {
      _ = try await engine.refresh()
      return engine
    }
    let engine = try await Engine.open(
      at: "/db", options: EngineOptions(options), environment: environment, access: .readOnly)
    follower.withLock { $0 = engine }
    return engine
  }

  package func synchronize() async throws { try await base.synchronize() }

  package func flush() async throws { try await base.flush() }

  package func settle() async throws {
    // So that the follower has files that go.
    _ = try await refreshed()
    try await base.settle()
  }

  package func close() async throws {
    try await base.close()
    if let engine = follower.withLock({ $0 }) { try await engine.close() }
  }

  package func verify() async throws { try await base.verify() }
}
