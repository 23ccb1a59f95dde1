// A store whose keys change while it is in use: any subject of a crash test, and beside its flushes
// and merges a change of keys begins, continues, or is completed. Its contents must be those of the
// subject without this.

package import OndolEngine

/// An open store that is encrypted, decrypted and moved to other keys again and again.
package struct RekeyedSubject: CrashSubject {
  private struct State: Sendable {
    var random: SeededRandom
    /// Commits since the last change began.
    var commits = 0
  }

  private let base: any CrashSubject
  private let engine: Engine
  private let oracle: SealOracle
  /// Continues the part of a change outside the engine; nil completes the change.
  private let goOn: (@Sendable () async throws -> Void)?
  /// Whether it is never decrypted.
  private let staysSealed: Bool
  private let state: Guarded<State>

  /// - Parameter goOn: completes a change; the engine's part of it for nil.
  package init(
    _ base: any CrashSubject, _ engine: Engine, _ oracle: SealOracle, seed: UInt64,
    staysSealed: Bool = false, goOn: (@Sendable () async throws -> Void)? = nil
  ) {
    self.base = base
    self.engine = engine
    self.oracle = oracle
    self.goOn = goOn
    self.staysSealed = staysSealed
    state = Guarded(State(random: SeededRandom(seed: seed)))
  }

  /// Opens a store as an app does that does not know how far the change had come: without a key or
  /// with one, and then the other way.
  package static func open<Subject: CrashSubject>(
    _ environment: Environment, _ oracle: SealOracle,
    _ open: (Environment) async throws -> Subject
  ) async throws -> Subject {
    var vaults: [(any Vault)?] = [nil, oracle]
    if environment.random() & 1 == 1 { vaults.reverse() }
    var environment = environment
    environment.vault = vaults[0]
    do {
      return try await open(environment)
    } catch  where isAboutKeys(error) {
      environment.vault = vaults[1]
      return try await open(environment)
    }
  }

  private static func isAboutKeys(_ error: any Error) -> Bool {
    let text = "\(error)"
    return text.contains("is opened with its key only") || text.contains("is not encrypted")
  }

  package var makesCommitsOfItsOwn: Bool { base.makesCommitsOfItsOwn }

  package func commit(
    _ changes: [Change], _ durability: Durability
  ) async throws -> CommitPlace {
    let place = try await base.commit(changes, durability)
    state.withLock { $0.commits += 1 }
    return place
  }

  package func contents() async throws -> (sequence: UInt64, rows: Rows) {
    try await base.contents()
  }

  package func synchronize() async throws { try await base.synchronize() }

  package func flush() async throws {
    try await base.flush()
    try await change()
  }

  package func settle() async throws {
    try await base.settle()
    try await change()
  }

  package func close() async throws { try await base.close() }

  package func verify() async throws { try await base.verify() }

  // MARK: - Changing keys

  private func draw(_ out: Int) -> Bool { state.withLock { $0.random.chance(1, in: out) } }

  private func change() async throws {
    if engine.border == nil {
      // An empty log is left only after an uncounted commit.
      let isDue = state.withLock { state in
        defer { state.commits = 0 }
        return state.commits > 0
      }
      guard isDue else { return }
      let isToBeClear = engine.isEncrypted && !staysSealed && draw(2)
      try await engine.beginKeyChange(to: isToBeClear ? nil : oracle)
      if draw(3) { return }
    }
    if let goOn { return try await goOn() }
    for _ in 0..<200 where engine.border != nil {
      try await engine.leaveFilesBeforeBorder { _ in }
      if try await engine.finishKeyChange().isEmpty { return }
      await Task.yield()
    }
  }
}
