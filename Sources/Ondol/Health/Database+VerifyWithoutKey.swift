// A check for whoever keeps an encrypted database and has not its key: a server that has copies, a
// disk that is scrubbed.

package import OndolEngine

/// What a check without the key has found, and how far it went.
public struct KeylessVerification: Sendable, Hashable {
  /// Everything that is wrong, a thousand findings at most.
  public var findings: [Finding] = []
  /// Bytes of files whose checksums were compared.
  public var checkedBytes: UInt64 = 0
  /// Bytes of files of which nothing can be said without the key: mostly contents that have a file
  /// of their own, whose checksums are sealed in rows.
  public var uncheckedBytes: UInt64 = 0
}

extension Database {
  /// Checks the files of an encrypted database without its key, by the checksums of what is stored,
  /// and changes nothing. Whoever has it open may go on.
  ///
  /// It finds damage. It does not find that files are missing, or older than they should be, or
  /// that somebody who can write to the device has exchanged bytes and their checksums for others;
  /// `verify(at:depth:encryption:progress:)` does, with the key.
  ///
  /// When the task is cancelled this throws `.cancelled`.
  ///
  /// - Parameters:
  ///   - path: the database's directory.
  ///   - progress: called from time to time.
  /// - Returns: what is wrong, and how much was looked at.
  /// - Throws: `.failedPrecondition` when the database is in the clear, `.notFound` or `.dataLoss`
  ///   when there is none at `path`, `.unimplemented` when a newer version wrote it, `.cancelled`,
  ///   `.permissionDenied` and `.internal` when the system refuses. Damage is not thrown but found.
  /// - Complexity: O(bytes); in memory are one log, or as much as the longest value.
  public static func verifyWithoutKey(
    at path: String, progress: (VerificationProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> KeylessVerification {
    try await verifyWithoutKey(at: path, environment: .live(), progress: progress)
  }

  /// The same in a world of the caller's making.
  package static func verifyWithoutKey(
    at path: String, environment: Environment,
    progress: (VerificationProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> KeylessVerification {
    do throws(EngineError) {
      var state = VerificationProgress()
      let checkup = try UnopenedCheckup(ofDatabaseAt: path, environment: environment)
      let outcome = try await checkup.outcome { done, total in
        state.completedBytes = done
        state.totalBytes = total
        progress(state)
      }
      var findings = FindingList()
      findings.append(outcome.findings.lazy.map { Finding(stored: $0) })
      return KeylessVerification(
        findings: findings.all, checkedBytes: outcome.checkedBytes,
        uncheckedBytes: outcome.uncheckedBytes)
    } catch {
      if case .notEncrypted = error {
        throw DatabaseError(
          .failedPrecondition, "it is in the clear: a check of all of it needs no key",
          path: path)
      }
      throw DatabaseError(error)
    }
  }
}
