// Reads the whole contents of a database of documents as rows, after checking them: documents are
// whole, indexes agree with them both ways, accounts add up, and the diary was written in its
// order.

internal import Ondol
internal import OndolEngine

extension DocumentSubject {
  package func contents() async throws -> (sequence: UInt64, rows: Rows) {
    let snapshot = database.snapshot()
    var rows: Rows = [:]
    var documents: [String: [DocumentSnapshot]] = [:]
    for (keyspace, path) in DocumentForm.collections {
      let collection = database.collection(path)
      let found = try snapshot.getDocuments(collection).documents
      documents[path] = found
      for document in found {
        let key = try DocumentForm.key(of: document.documentID, in: keyspace)
        rows[key] = try DocumentForm.value(of: document)
      }
      let ids = found.map(\.documentID).filter { $0.utf8.last.map { $0 % 4 == 0 } == true }
      guard
        try snapshot.getDocuments(collection, ids: ids)
          == found.filter({ document in
            ids.contains(document.documentID)
          })
      else {
        throw BrokenInvariant("a scan of \(path) finds other documents than a search by id")
      }
    }
    try checkAccounts(snapshot)
    _ = try await readDiary()
    try await IndexAudit(database: database, documents: documents).run()
    if verifies { try await verify() }
    return (UInt64(try commitCount(snapshot)), rows)
  }

  private func verify() async throws {
    let errors = try await database.verify(depth: .full).filter { $0.severity == .error }
    guard let first = errors.first else { return }
    throw BrokenInvariant("the database finds \(errors.count) errors in itself: \(first)")
  }

  private func commitCount(_ snapshot: DatabaseSnapshot) throws -> Int {
    try (0..<Self.counterCount).reduce(0) { sum, number in
      sum + (try snapshot.getDocument(counter(number))["commits"] as Int? ?? 0)
    }
  }

  private func checkAccounts(_ snapshot: DatabaseSnapshot) throws {
    let balances = try (0..<Self.accountCount).map { number in
      try snapshot.getDocument(account(number))["balance"] as Int? ?? 0
    }
    guard balances.reduce(0, +) == 0 else {
      throw BrokenInvariant("the accounts do not add up: \(balances)")
    }
  }
}
