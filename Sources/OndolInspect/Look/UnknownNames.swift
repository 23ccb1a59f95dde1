// Unknown names. An empty result looks the same whether nothing matches or a name was mistyped, so
// commands check here before they report an empty result.

import Ondol
import OndolJSON

/// Looks for the names that a command was given.
struct UnknownNames {
  /// All documents of the collection or group.
  let documents: Query
  /// The collection as it was given.
  let collection: String

  /// Throws status 3 if there are no documents, or if no document has one of the fields.
  ///
  /// - Complexity: reads documents until one has the field: all of them if none has it.
  func refuse(fields: [FieldPath]) async throws {
    guard try await hasAny(documents) else {
      throw CommandFailure(.notFound, "there is no collection \(collection)")
    }
    for field in fields where field != .documentID() {
      guard try await !hasAny(documents.order(by: field)) else { continue }
      throw CommandFailure(.notFound, "no document in \(collection) has a field \(field)")
    }
  }

  private func hasAny(_ query: Query) async throws(DatabaseError) -> Bool {
    for try await _ in query.limit(to: 1).documents { return true }
    return false
  }
}
