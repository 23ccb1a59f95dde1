// How often somebody may guess. Tries are kept as documents, so that they outlive the process, and
// noted before the guess, in a transaction, so that a thousand at once are a thousand tries. A
// guess that was right, and one that was never looked at, takes its try back. The window slides:
// a try counts for as long as the window from its own moment on, whatever came before it.

internal import Foundation
internal import Ondol

/// Something of which there may be only so many in a window.
struct TriesLimit: Sendable {
  /// Tries that a document keeps at most.
  static let greatest = 10_000

  /// The document's id: a digest that says nothing of the address outside this database.
  let id: String
  let most: Int
  /// Whether a success forgets the failures before it, too.
  let isForgotten: Bool
}

/// Tries that were noted for one guess.
struct NotedTries: Sendable {
  let limits: [TriesLimit]
  /// When; what they are found by again.
  let moment: Timestamp
}

extension TriesRecord {
  /// The moments of tries that count at `now`, oldest first. One that lies further ahead than a
  /// window was noted by a clock that was wrong, and does not count.
  func counting(at now: Timestamp, within window: Int64) -> [Timestamp] {
    // Before windows slid there was one moment for all.
    let moments = times ?? Array(repeating: since, count: min(max(count, 0), TriesLimit.greatest))
    return
      moments
      .filter { abs($0.microsecondsSince1970 - now.microsecondsSince1970) < window }
      .sorted { $0.microsecondsSince1970 < $1.microsecondsSince1970 }
  }
}

extension Accounts {
  /// What a try counts for: somebody, and where it comes from.
  func triesLimits(
    _ kind: String, of subject: String, _ origin: String?, most: Int? = nil
  ) -> [TriesLimit] {
    func limit(_ label: String, _ text: String, _ most: Int, _ isForgotten: Bool) -> TriesLimit {
      TriesLimit(
        id: settings.digest(label, text).prefix(16).hexadecimal,
        most: min(max(most, 1), TriesLimit.greatest), isForgotten: isForgotten)
    }
    let ofSubject = limit(kind, subject, most ?? options.maximumTries, true)
    // Who has one account of their own could otherwise forget each guess at others'.
    let ofOrigin = origin.map { limit("origin", $0, options.maximumTriesOfOrigin, false) }
    return [ofSubject] + (ofOrigin.map { [$0] } ?? [])
  }

  /// Notes a try, for as long as `body` may turn out right: what it throws but
  /// a wrong guess's error gives the try back, because nothing was guessed.
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
        // Where this fails, too, the try counts: there are fewer guesses then, and not more.
        try? await database.runTransaction { transaction in
          try takeBack(noted, forgetting: false, in: transaction)
        }
      }
      throw error
    }
  }

  /// Notes a try; throws `.tooManyRequests` when there were too many.
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

  /// Takes tries back; with `forgetting`, because the guess was right, also the failures before it,
  /// where a success forgets them.
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

  /// Forgets all tries, because what was guessed at is no more.
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

  /// The window in microseconds: a year at most, so that sums of moments stay in range.
  private var window: Int64 {
    let (seconds, attoseconds) = options.triesWindow.components
    let most: Int64 = 366 * 86_400
    guard seconds < most else { return most * 1_000_000 }
    return max(1, max(0, seconds) * 1_000_000 + attoseconds / 1_000_000_000_000)
  }
}

extension AuthError {
  /// Whether somebody guessed, and was wrong.
  var isOfWrongGuess: Bool { code == .invalidCredential || code == .invalidActionCode }
}
