// Checks whether indexes and documents agree, both ways. It reads each row of every index by
// queries that must use the index, and compares them with a scan of the documents. A query would
// skip a superfluous row, because it looks at the document, so the rows are counted as well.

internal import Ondol

/// The indexes of one database against its documents, while nothing writes.
struct IndexAudit {
  let database: Database
  /// All documents, by collection, from scans.
  let documents: [String: [DocumentSnapshot]]

  /// Throws `BrokenInvariant` if they do not agree.
  func run() async throws {
    for index in DocumentIndex.lasting + [DocumentIndex.passing] {
      var isWhole = true
      for pattern in index.patterns {
        isWhole = try await count(index, pattern) && isWhole
      }
      // A group's index is created pattern by pattern. If a fault came in between, the rest is
      // scanned, and the answer is the same.
      guard isWhole || index.patterns.count > 1 else { continue }
      let covered = index.patterns.flatMap(\.self).flatMap { documents[$0] ?? [] }
      for question in index.questions(in: database) {
        try await ask(question, among: covered)
      }
    }
  }

  /// Whether the index serves the pattern, and then whether it has the right number of rows.
  private func count(_ index: DocumentIndex, _ pattern: [String]) async throws -> Bool {
    guard let information = try await index.information(in: database, of: pattern),
      information.state == .ready
    else { return false }
    let rows = pattern.flatMap { documents[$0] ?? [] }
      .reduce(0) { $0 + index.rowCount(for: $1.data()) }
    guard information.entries == rows else {
      throw BrokenInvariant(
        "index \(information.name) of \(pattern) has \(information.entries) rows; the documents"
          + " call for \(rows)")
    }
    return true
  }

  private func ask(
    _ question: DocumentIndex.Question, among documents: [DocumentSnapshot]
  ) async throws {
    let found = try await question.query.getDocuments().documents
    let expected = documents.filter {
      question.isAnswer($0.reference.parent.path, $0.data())
    }
    guard Set(found) == Set(expected), found.count == expected.count else {
      let lost = Set(expected).subtracting(found).map(\.reference.path).sorted()
      let extra = Set(found).subtracting(expected).map(\.reference.path).sorted()
      throw BrokenInvariant(
        "\(question.query) finds \(found.count) documents and not \(expected.count): without"
          + " \(lost), with \(extra)")
    }
  }
}
