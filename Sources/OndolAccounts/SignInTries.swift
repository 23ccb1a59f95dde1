// How often somebody may guess. Tries are counted in documents, so that they outlive the process,
// and counted before the guess, in a transaction, so that a thousand at once are a thousand tries.

internal import Foundation
internal import Ondol

/// Something of which there may be only so many in a window.
struct TriesLimit: Sendable {
  /// The document's id: a digest that says nothing of the address outside this database.
  let id: String
  let most: Int
  /// Whether a success forgets the failures before it.
  let isForgotten: Bool
}

extension Accounts {
  /// What a try counts for.
  func triesLimits(_ kind: String, _ address: EmailAddress, _ origin: String?) -> [TriesLimit] {
    func limit(_ label: String, _ text: String, _ most: Int, _ isForgotten: Bool) -> TriesLimit {
      TriesLimit(
        id: settings.digest(label, text).prefix(16).hexadecimal, most: most,
        isForgotten: isForgotten)
    }
    let ofAddress = limit(kind, address.key, options.maximumTries, true)
    // Who has one account of their own could otherwise start anew after each guess at others'.
    let ofOrigin = origin.map { limit("origin", $0, options.maximumTriesOfOrigin, false) }
    return [ofAddress] + (ofOrigin.map { [$0] } ?? [])
  }

  /// Counts a try; throws `.tooManyRequests` when there were too many.
  func count(_ limits: [TriesLimit]) async throws(AuthError) {
    try await authenticating {
      try await database.runTransaction { transaction in
        let now = try now()
        for limit in limits {
          let document = places.tries.document(limit.id)
          var tries = try transaction.getDocument(document).data(as: TriesRecord?.self)
          if let end = tries?.expiresAt, end.microsecondsSince1970 <= now.microsecondsSince1970 {
            tries = nil
          }
          var record =
            try tries
            ?? TriesRecord(
              count: 0, since: now, expiresAt: moment(options.triesWindow, after: now))
          guard record.count < limit.most else {
            let left = record.expiresAt.microsecondsSince1970 - now.microsecondsSince1970
            throw AuthError(
              .tooManyRequests, "too many tries failed; wait before the next one",
              retryAfter: .microseconds(left))
          }
          record.count += 1
          try transaction.setData(from: record, forDocument: document)
        }
      }
    }
  }

  /// Takes the tries back that a success ends.
  func forget(_ limit: TriesLimit, in transaction: Transaction) throws {
    guard limit.isForgotten else { return }
    try transaction.deleteDocument(places.tries.document(limit.id))
  }
}
