// A check of an encrypted database without its key: for a server that keeps copies, or for
// scrubbing a disk.

package import OndolEngine

/// The findings of a check without the key, and how much it covered.
public struct KeylessVerification: Sendable, Hashable {
  /// Everything that is wrong, at most a thousand findings.
  public var findings: [Finding] = []
  /// Bytes of files whose checksums were compared.
  public var checkedBytes: UInt64 = 0
  /// Bytes of files that cannot be checked without the key: mostly contents with a file of their
  /// own, whose checksums are sealed in rows.
  public var uncheckedBytes: UInt64 = 0
}

extension Database {
  /// Checks the files of an encrypted database without its key, by the checksums of the stored
  /// bytes, and changes nothing. A process that has the database open may continue.
  ///
  /// It finds damage. It does not detect missing files, files that are older than they should be,
  /// or bytes and checksums that an attacker with write access to the device has exchanged.
  /// `verify(at:depth:encryption:progress:)` does, with the key.
  ///
  /// When the task is cancelled, this throws `.cancelled`.
  ///
  /// - Parameters:
  ///   - path: the database's directory.
  ///   - progress: called from time to time.
  /// - Returns: what is wrong, and how much was checked.
  /// - Throws: `.failedPrecondition` when the database is not encrypted, `.notFound` or `.dataLoss`
  ///   when there is none at `path`, `.unimplemented` when a newer version wrote it, `.cancelled`,
  ///   `.permissionDenied` and `.internal` when a system call fails. Damage is not thrown but
  ///   reported.
  /// - Complexity: O(bytes); in memory are one log, or as much as the longest value.
  public static func verifyWithoutKey(
    at path: String, progress: (VerificationProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> KeylessVerification {
    try await verifyWithoutKey(at: path, environment: .live(), progress: progress)
  }

  /// The same in an environment that the caller supplies.
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
