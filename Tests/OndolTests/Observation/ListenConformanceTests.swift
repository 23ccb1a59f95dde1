// Published listen cases for the system that has these events. Each step of a case becomes one
// commit, and the next snapshot is compared: documents, kinds and indices of changes. Cases about
// the protocol between a client and its server have no meaning here.

import Foundation
import Testing

@testable import Ondol

private let folder = URL(filePath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent().appending(path: "../shared/conformance/firestore")

private let isPresent = FileManager.default.fileExists(atPath: folder.path)

@Suite struct ListenConformanceTests {
  /// An embedded database cannot have targets that are added, removed and reset, or a document that
  /// changes without changing its update time.
  private static let aboutTheProtocol: Set<String> = [
    "listen-nomod.json", "listen-removed-target-ids.json", "listen-reset.json",
    "listen-target-add-nop.json", "listen-target-add-wrong-id.json",
    "listen-target-remove.json",
  ]

  @Test(.enabled(if: isPresent, "the conformance data is not beside the project"))
  func `Published listen cases give the snapshots they expect`() async throws {
    var passed = 0
    var cases = 0
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    where file.hasPrefix("listen-") && !Self.aboutTheProtocol.contains(file) {
      let data = try Data(contentsOf: folder.appending(path: file))
      let published = try JSONDecoder().decode(ListenFile.self, from: data)
      for test in published.tests {
        cases += 1
        let problem = try await problem(with: test.listen)
        passed += problem == nil ? 1 : 0
        if let problem { Issue.record("\(file): \(problem)") }
      }
    }
    print("Conformance, listens: \(passed) of \(cases)")
    #expect(cases == 8)
  }

  /// Returns what is wrong with the snapshots of a case; nil if nothing is.
  private func problem(with test: ListenCase) async throws -> String? {
    let database = try await Database.underTest()
    let query = database.collection("C").order(by: "a")
    var steps = test.steps[...]
    // The state when listening begins.
    try await commit(steps.popFirst() ?? [], in: database)
    var snapshots = query.snapshots.makeAsyncIterator()
    for expected in test.snapshots {
      guard let snapshot = try await snapshots.next() else { return "the sequence ended" }
      let ours = snapshot.documentChanges.map(Change.init)
      let theirs = (expected.changes ?? []).map(Change.init)
      if ours != theirs { return "\(ours) instead of \(theirs)" }
      let ids = (expected.docs ?? []).map(\.id)
      if snapshot.documents.map(\.documentID) != ids { return "\(snapshot.documents), not \(ids)" }
      try await commit(steps.popFirst() ?? [], in: database)
    }
    try await database.close()
    return nil
  }

  private func commit(_ step: [ListenResponse], in database: Database) async throws {
    let batch = database.batch()
    for response in step {
      if let document = response.documentChange?.document {
        try batch.setData(
          ["a": document.a], forDocument: database.document("C/\(document.id)"))
      } else if let gone = response.documentDelete ?? response.documentRemove {
        batch.deleteDocument(database.document("C/\(gone.id)"))
      }
    }
    try await batch.commit(durability: .memory)
  }
}

/// A change, as far as the cases describe it.
private struct Change: Equatable, CustomStringConvertible {
  var kind: String
  var id: String
  var a: Int?
  var oldIndex: Int
  var newIndex: Int

  init(_ change: DocumentChange) {
    kind = "\(change.type)".uppercased()
    id = change.document.documentID
    a = change.document.get("a")
    oldIndex = change.oldIndex ?? -1
    newIndex = change.newIndex ?? -1
  }

  init(_ change: ListenChange) {
    kind = change.kind
    id = change.doc.id
    a = change.doc.a
    oldIndex = change.oldIndex ?? 0
    newIndex = change.newIndex ?? 0
  }

  var description: String { "\(kind) \(id) \(oldIndex)->\(newIndex)" }
}

private struct ListenFile: Decodable {
  struct Test: Decodable {
    var listen: ListenCase
  }

  var tests: [Test]
}

private struct ListenCase: Decodable {
  var responses: [ListenResponse]
  var snapshots: [ListenSnapshot]

  /// The messages before each one in which the server reports completeness.
  var steps: [[ListenResponse]] {
    var steps: [[ListenResponse]] = [[]]
    var isCurrent = false
    for response in responses {
      steps[steps.count - 1].append(response)
      if response.targetChange?.targetChangeType == "CURRENT" { isCurrent = true }
      if isCurrent, response.targetChange?.readTime != nil { steps.append([]) }
    }
    return steps
  }
}

private struct ListenResponse: Decodable {
  struct DocumentState: Decodable {
    var document: ListenDocument
  }

  struct Gone: Decodable {
    var document: String

    var id: String { document.split(separator: "/").last.map(String.init) ?? "" }
  }

  struct TargetChange: Decodable {
    var targetChangeType: String?
    var readTime: String?
  }

  var documentChange: DocumentState?
  var documentDelete: Gone?
  var documentRemove: Gone?
  var targetChange: TargetChange?
}

private struct ListenSnapshot: Decodable {
  var docs: [ListenDocument]?
  var changes: [ListenChange]?
}

private struct ListenChange: Decodable {
  var kind: String
  var doc: ListenDocument
  var oldIndex: Int?
  var newIndex: Int?
}

private struct ListenDocument: Decodable {
  var name: String
  var fields: [String: [String: String]]

  var id: String { name.split(separator: "/").last.map(String.init) ?? "" }
  var a: Int { fields["a"]?["integerValue"].flatMap { Int($0) } ?? 0 }
}
