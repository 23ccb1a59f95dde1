// Whether indexes and documents agree, both ways. Every index is asked for each of its rows by
// queries that must use it: what a scan of the documents calls for must be found, and nothing else.
// A row too many would be passed over by a query, which looks at the document; so the rows are
// counted as well.

internal import Ondol

/// The indexes of one database against its documents, while nobody writes.
struct IndexAudit {
  let database: Database
  /// All documents, by collection, as scans find them.
  let documents: [String: [DocumentSnapshot]]

  /// Throws `BrokenInvariant` where they do not agree.
  func run() async throws {
    for index in DocumentIndex.lasting + [DocumentIndex.passing] {
      guard let information = try await index.information(in: database),
        information.state == .ready
      else { continue }
      let covered = documents.filter { index.covers($0.key) }.values.flatMap(\.self)
      let rows = covered.reduce(0) { $0 + index.rowCount(for: $1.data()) }
      guard information.entries == rows else {
        throw BrokenInvariant(
          "index \(information.name) of \(index.home) has \(information.entries) rows; the"
            + " documents call for \(rows)")
      }
      for question in index.questions(in: database) {
        try await ask(question, information.name, among: covered)
      }
    }
  }

  private func ask(
    _ question: DocumentIndex.Question, _ name: String, among documents: [DocumentSnapshot]
  ) async throws {
    let found = try await question.query.getDocuments().documents
    let expected = documents.filter {
      question.isAnswer($0.reference.parent.path, $0.data())
    }
    guard Set(found) == Set(expected), found.count == expected.count else {
      let lost = Set(expected).subtracting(found).map(\.reference.path).sorted()
      let extra = Set(found).subtracting(expected).map(\.reference.path).sorted()
      throw BrokenInvariant(
        "index \(name), asked for \(question.query), finds \(found.count) documents and not"
          + " \(expected.count): without \(lost), with \(extra)")
    }
  }
}
