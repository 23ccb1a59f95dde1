// Limits on guesses. The database records tries as documents, so they survive a restart. It records
// each try in a transaction before the guess, so a thousand concurrent tries count as a thousand. A
// correct guess removes its try, and so does a guess that was never checked. The window slides: a
// try counts for one window from its own moment, regardless of earlier tries.

internal import Foundation
internal import Ondol

/// A limit on tries within a window.
struct TriesLimit: Sendable {
  /// The largest number of tries that a document keeps.
  static let greatest = 10_000

  /// The document's id: a digest that reveals nothing about the address outside this database.
  let id: String
  let most: Int
  /// Whether a success also removes earlier failures.
  let isForgotten: Bool
}

/// Recorded tries for one guess.
struct NotedTries: Sendable {
  let limits: [TriesLimit]
  /// The time of the tries, which identifies them.
  let moment: Timestamp
}

extension TriesRecord {
  /// The times of the tries that count at `now`, oldest first. A try more than a window in the
  /// future comes from a wrong clock and does not count.
  func counting(at now: Timestamp, within window: Int64) -> [Timestamp] {
    // Records from before sliding windows have one time for all tries.
    let moments = times ?? Array(repeating: since, count: min(max(count, 0), TriesLimit.greatest))
    return
      moments
      .filter { abs($0.microsecondsSince1970 - now.microsecondsSince1970) < window }
      .sorted { $0.microsecondsSince1970 < $1.microsecondsSince1970 }
  }
}

extension Accounts {
  /// The limits that a try counts against: its subject and its origin.
  func triesLimits(
    _ kind: String, of subject: String, _ origin: String?, most: Int? = nil
  ) -> [TriesLimit] {
    func limit(_ label: String, _ text: String, _ most: Int, _ isForgotten: Bool) -> TriesLimit {
      TriesLimit(
        id: settings.digest(label, text).prefix(16).hexadecimal,
        most: min(max(most, 1), TriesLimit.greatest), isForgotten: isForgotten)
    }
    let ofSubject = limit(kind, subject, most ?? options.maximumTries, true)
    // Otherwise an attacker with one account could remove each guess at other accounts.
    let ofOrigin = origin.map { limit("origin", $0, options.maximumTriesOfOrigin, false) }
    return [ofSubject] + (ofOrigin.map { [$0] } ?? [])
  }

  /// Records a try while `body` runs. An error other than a wrong guess removes the try, because
  /// nothing was guessed.
  func counting<Result>(
    _ limits: [TriesLimit], _ body: (NotedTries) async throws(AuthError) -> Result
  ) async throws(AuthError) -> Result {
    let noted = try await authenticating {
      try await database.runTransaction { transaction in try note(limits, in: transaction) }
    }
    do throws(AuthError) {
      return try await body(noted)
    } catch {
      if !error.isOfWrongGuess {
        // If this also fails, the try counts. That allows fewer guesses, never more.
        try? await database.runTransaction { transaction in
          try takeBack(noted, forgetting: false, in: transaction)
        }
      }
      throw error
    }
  }

  /// Records a try; throws `.tooManyRequests` when the limit is reached.
  func note(_ limits: [TriesLimit], in transaction: Transaction) throws -> NotedTries {
    let now = try now()
    for limit in limits {
      let document = places.tries.document(limit.id)
      let tries = try transaction.getDocument(document).data(as: TriesRecord?.self)
      let moments = tries?.counting(at: now, within: window) ?? []
      guard moments.count < limit.most else {
        let first = moments[moments.count - limit.most].microsecondsSince1970
        throw AuthError(
          .tooManyRequests, "too many tries failed; wait before the next one",
          retryAfter: .microseconds(first + window - now.microsecondsSince1970))
      }
      try keep(moments + [now], of: document, in: transaction)
    }
    return NotedTries(limits: limits, moment: now)
  }

  /// Removes tries. With `forgetting`, after a correct guess, also removes earlier failures where a
  /// success does so.
  func takeBack(_ noted: NotedTries, forgetting: Bool, in transaction: Transaction) throws {
    let now = try now()
    let own = noted.moment.microsecondsSince1970
    for limit in noted.limits {
      let document = places.tries.document(limit.id)
      let tries = try transaction.getDocument(document).data(as: TriesRecord?.self)
      guard let tries else { continue }
      var moments = tries.counting(at: now, within: window)
      if forgetting, limit.isForgotten {
        moments.removeAll { $0.microsecondsSince1970 <= own }
      } else if let place = moments.firstIndex(where: { $0.microsecondsSince1970 == own }) {
        moments.remove(at: place)
      }
      try keep(moments, of: document, in: transaction)
    }
  }

  /// Removes all tries, because the secret they guessed at has changed.
  func forget(_ limits: [TriesLimit], in transaction: Transaction) throws {
    for limit in limits where limit.isForgotten {
      try transaction.deleteDocument(places.tries.document(limit.id))
    }
  }

  private func keep(
    _ moments: [Timestamp], of document: DocumentReference, in transaction: Transaction
  ) throws {
    guard let first = moments.first, let last = moments.last else {
      try transaction.deleteDocument(document)
      return
    }
    let record = TriesRecord(
      count: moments.count, since: first, times: moments,
      expiresAt: try moment(.microseconds(window), after: last))
    try transaction.setData(from: record, forDocument: document)
  }

  /// The window in microseconds, at most a year, so that sums of times stay in range.
  private var window: Int64 {
    let (seconds, attoseconds) = options.triesWindow.components
    let most: Int64 = 366 * 86_400
    guard seconds < most else { return most * 1_000_000 }
    return max(1, max(0, seconds) * 1_000_000 + attoseconds / 1_000_000_000_000)
  }
}

extension AuthError {
  /// Whether the guess was wrong.
  var isOfWrongGuess: Bool { code == .invalidCredential || code == .invalidActionCode }
}
