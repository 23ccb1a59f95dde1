// What a reader beside a writer newly shows after one check of the files: from one commit to a
// later one in one step. Listeners receive that step on the thread that made it. The changed rows
// are determined only on request.

/// The new part of what a refresh shows.
package struct FollowerStep: Sendable {
  /// What was shown before.
  package let before: Snapshot
  /// What is shown now: later commits than in `before`.
  package let after: Snapshot
  /// Commits in order, up to the last visible one.
  private let commits: [RecoveredCommit]

  init(before: Snapshot, after: Snapshot, commits: [RecoveredCommit]) {
    self.before = before
    self.after = after
    self.commits = commits.filter { $0.sequence > before.sequence }
  }

  /// Shows every row that the commits of this step changed, with the commit, in the order of
  /// commits. Returns false, and shows nothing, when they are unknown: some of the commits are in
  /// no log any more.
  package func visitRows(
    _ body: (_ key: RawSpan, _ commit: CommitPoint) -> Void
  ) throws(EngineError) -> Bool {
    guard commits.first?.sequence == before.sequence.next else { return false }
    for commit in commits {
      let bytes = commit.bytes
      var operations = OperationReader(bytes.bytes.extracting(commit.payload))
      do throws(MalformedBytes) {
        while let operation = try operations.next() { body(operation.key, commit.point) }
      } catch {
        throw .corrupt(
          file: "LOG", offset: 0,
          reason: "in the rows of commit \(commit.sequence.rawValue): \(error.reason)")
      }
    }
    return true
  }
}
