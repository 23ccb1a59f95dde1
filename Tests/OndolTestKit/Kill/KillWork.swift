// A process's work until it is killed, and the expected state afterwards. All commits follow from a
// seed and come one after another, so the next open can derive the expected contents from their
// number, to the last byte. A kill loses only the process's memory, so this shows the promise of
// `.process`, and nothing about power cuts.

internal import OndolEngine

/// The commits of one database, from its first on.
package struct KillWork: Sendable {
  private static let upkeepInterval = 40

  /// What the process writes.
  package enum Matter: String, Sendable, CaseIterable {
    /// Documents, indexes and transactions.
    case documents
    /// Blobs: put, referred to, replaced, deleted, reclaimed.
    case blobs
  }

  package var path: String
  package var seed: UInt64
  package var matter: Matter

  package init(path: String, seed: UInt64, matter: Matter) {
    self.path = path
    self.seed = seed
    self.matter = matter
  }

  private func open() async throws -> any CrashSubject {
    switch matter {
    case .documents: try await DocumentSubject.open(.live(), options, at: path)
    case .blobs: try await BlobSubject.open(.live(), options, at: path)
    }
  }

  private var options: SubjectOptions { Workload(seed: seed).options }

  private func commit(_ number: Int) -> Workload.Commit {
    Workload.commit(seed: SeededRandom.derive(seed, number))
  }

  /// Continues from the last commit found, and reports each commit that the process's end must not
  /// undo. Does not return.
  package func workUntilKilled(_ acknowledge: (Int) throws -> Void) async throws -> Never {
    let subject = try await open()
    var number = Int(clamping: try await subject.contents().sequence)
    while true {
      number += 1
      let next = commit(number)
      _ = try await subject.commit(next.changes, next.durability)
      if next.durability != .memory { try acknowledge(number) }
      switch number % Self.upkeepInterval {
      case 17: try await subject.flush()
      case 34: try await subject.settle()
      default: break
      }
    }
  }

  /// Opens the remaining database and closes it. Returns the number of commits found. Throws
  /// `BrokenInvariant` if they are fewer than `acknowledged`, or if the contents are not what they
  /// wrote.
  package func check(acknowledged: Int) async throws -> Int {
    let subject = try await open()
    let (count, rows) = try await subject.contents()
    try await subject.close()
    let number = Int(clamping: count)
    guard number >= acknowledged else {
      throw BrokenInvariant("\(number) commits are left, and \(acknowledged) were acknowledged")
    }
    var expected: Rows = [:]
    for number in 0..<number { expected.apply(commit(number + 1).changes) }
    guard rows == expected else {
      let keys = Set(rows.keys).union(expected.keys).filter { rows[$0] != expected[$0] }
      throw BrokenInvariant("after \(number) commits \(keys.count) rows are wrong: \(keys)")
    }
    return number
  }
}
