// Rows with sound bytes and a wrong meaning, written without the database's knowledge: each is
// found, with its document.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Verifying rows` {
  private let sample = SampleDatabase()

  /// The rows of an index for a document.
  private func found(
    of id: String, in index: String, _ database: Database
  ) async throws -> (index: IndexDefinition, rows: [IndexRow]) {
    let entry = try #require(try await database.entry("items"))
    let index = try #require(entry.indexes.first { $0.name == index })
    let fields = try await database.document("items/\(id)").getDocument().data()
    return (index, index.rows(of: fields, ancestors: [], id: id))
  }

  /// Expects one finding at full depth, and none at the others.
  private func expectOnly(
    _ kind: Finding.Kind, _ collection: String?, _ id: String?, saying text: String
  ) async throws {
    #expect(try await sample.verify(.blocks) == [])
    let findings = try await sample.verify()
    #expect(findings.count == 1, "\(findings)")
    let finding = try #require(findings.first)
    #expect(finding.kind == kind)
    #expect(finding.severity == .error)
    #expect(finding.collection == collection)
    #expect(finding.id == id)
    #expect(finding.message.contains(text), "\(finding)")
    #expect(finding.hint != nil)
  }

  // MARK: - Indexes

  @Test(arguments: ["n,-name", "code unique", "tags[]"])
  func `A row that an index lacks is found`(name: String) async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let (_, rows) = try await found(of: "i15", in: name, database)
      batch.delete(try #require(rows.first).key)
    }
    try await expectOnly(.index, "items", "i15", saying: "'\(name)' lacks a row")
  }

  @Test func `A row of a missing document is found`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let (index, _) = try await found(of: "i15", in: "n,-name", database)
      let row = index.rows(of: ["n": 5, "name": "ghost"], ancestors: [], id: "ghost")[0]
      batch.put(row)
    }
    try await expectOnly(.index, "items", "ghost", saying: "no such document")
  }

  @Test func `A row with values that its document does not have is found`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let (index, _) = try await found(of: "i15", in: "n,-name", database)
      let row = index.rows(of: ["n": 999, "name": "x"], ancestors: [], id: "i15")[0]
      batch.put(row)
    }
    try await expectOnly(.index, "items", "i15", saying: "values that it does not have")
  }

  @Test func `A wrong row that replaces a right one is found from both sides`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let (index, rows) = try await found(of: "i15", in: "n,-name", database)
      let wrong = index.rows(of: ["n": 999, "name": "x"], ancestors: [], id: "i15")[0]
      batch.delete(rows[0].key)
      batch.put(wrong)
    }
    let findings = try await sample.verify()
    #expect(findings.map(\.kind) == [.index, .index])
    #expect(findings.map(\.id) == ["i15", "i15"])
  }

  @Test func `A unique value that leads to another document is found`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let (_, rows) = try await found(of: "i15", in: "code unique", database)
      let (_, others) = try await found(of: "i20", in: "code unique", database)
      batch.put(rows[0].key, others[0].value)
    }
    try await expectOnly(.index, "items", "i15", saying: "leads elsewhere")
  }

  @Test func `A row outside a partial index's condition is found`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let entry = try #require(try await database.entry("items"))
      var index = try #require(entry.indexes.first { $0.kind.condition != nil })
      index.kind.condition = nil
      // Its n is 3, and the condition requires more than 8.
      let row = index.rows(of: ["n": 3, "name": "item 20"], ancestors: [], id: "i20")[0]
      batch.put(row)
    }
    try await expectOnly(.index, "items", "i20", saying: "values that it does not have")
  }

  @Test func `In a group's index the document is named by its path`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let entry = try #require(try await database.entry("items", "notes"))
      let index = try #require(entry.indexes.first)
      let row = index.rows(of: ["stars": 3], ancestors: ["i15"], id: "a1")[0]
      batch.delete(row.key)
      let ghost = index.rows(of: ["stars": 3], ancestors: ["i15"], id: "ghost")[0]
      batch.put(ghost)
    }
    let findings = try await sample.verify()
    #expect(findings.map(\.kind) == [.index, .index])
    #expect(findings.map(\.collection) == ["items/i15/notes", "items/i15/notes"])
    #expect(findings.map(\.id) == ["a1", "ghost"])
  }

  @Test func `An index that is not ready is left to its builder`() async throws {
    try await sample.make()
    let database = try await sample.open()
    _ = try await database.changeCatalog(of: "items") { (edit) throws(DatabaseError) in
      try edit.declareIndex(
        IndexKind([IndexField(["at"])]), of: CollectionPattern(["items"]))
    }
    #expect(try await database.verify() == [])
    try await database.close()
  }

  // MARK: - Documents

  @Test func `A document that cannot be decoded is found, and its rows are`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let entry = try #require(try await database.entry("items"))
      let key = DocumentKey.key(entry.keyspace, ancestors: [], id: "i15")
      var row = try #require(try await database.engineSnapshot().get(key))
      row[24] = 0x77
      batch.put(key, row)
    }
    let findings = try await sample.verify()
    #expect(findings.first?.kind == .document)
    #expect(findings.first?.collection == "items")
    #expect(findings.first?.id == "i15")
    #expect(Set(findings.dropFirst().map(\.kind)).isSubset(of: [.index]))
  }

  @Test func `A document of a commit that has not been is found`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let entry = try #require(try await database.entry("items"))
      let key = DocumentKey.key(entry.keyspace, ancestors: [], id: "i15")
      var row = try #require(try await database.engineSnapshot().get(key))
      row[5] = 1
      batch.put(key, row)
    }
    try await expectOnly(.document, "items", "i15", saying: "commit")
  }

  @Test func `A key that is no document's is found`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let entry = try #require(try await database.entry("items"))
      let value = [UInt8](repeating: 0, count: 30)
      batch.put(entry.keyspace.prefix + [0x38, 0x00], value)
    }
    try await expectOnly(.document, "items", nil, saying: "key")
  }

  // MARK: - The catalog

  @Test func `A counter that is not above the numbers in use is found`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let family = try await database.read(try database.engineSnapshot()) {
        (rows) throws(DatabaseError) in try rows.catalog.family("items", in: rows)
      }
      var row = try #require(family).row
      row.nextMember = 1
      batch.putCatalogRow(CatalogKey.family("items"), row.bytes)
    }
    let findings = try await sample.verify()
    #expect(!findings.isEmpty)
    #expect(findings.allSatisfy { $0.kind == .catalog && $0.collection == "items" })
  }

  @Test func `Rows in unassigned keyspaces are found`() async throws {
    try await sample.make()
    try await sample.plant { _, batch in
      let value: [UInt8] = [1]
      batch.put(Keyspace(family: 900, member: 3).prefix, value)
    }
    try await expectOnly(.catalog, nil, nil, saying: "not yet in use")
  }

  @Test func `A row of the catalog that cannot be read is found`() async throws {
    try await sample.make()
    try await sample.plant { _, batch in
      let value: [UInt8] = [1]
      batch.putCatalogRow(Keyspace.catalog.prefix + [0x7f, 1], value)
    }
    try await expectOnly(.catalog, nil, nil, saying: "unknown kind")
  }

  @Test func `A row that the mirror of the catalog lacks is found`() async throws {
    try await sample.make()
    try await sample.plant { _, batch in
      batch.delete(CatalogKey.mirrored(CatalogKey.family("items")))
    }
    try await expectOnly(.mirror, nil, nil, saying: "lacks the row of the collection items")
  }

  @Test func `A row that only the mirror of the catalog has is found`() async throws {
    try await sample.make()
    try await sample.plant { _, batch in
      batch.put(CatalogKey.mirrored(CatalogKey.group("ghosts")), [0])
    }
    try await expectOnly(.mirror, nil, nil, saying: "has, and the catalog lacks")
  }

  @Test func `A row that the mirror of the catalog has otherwise is found`() async throws {
    try await sample.make()
    try await sample.plant { _, batch in
      batch.put(CatalogKey.mirrored(CatalogKey.group("notes")), [0])
    }
    try await expectOnly(.mirror, nil, nil, saying: "another row of the collection group notes")
  }

  @Test func `There are a thousand findings at most, and a word on the others`() async throws {
    try await sample.make()
    try await sample.plant { database, batch in
      let (index, _) = try await found(of: "i15", in: "n,-name", database)
      for number in 0..<1_200 {
        let row = index.rows(of: ["n": 5, "name": "x"], ancestors: [], id: "g\(number)")[0]
        batch.put(row)
      }
    }
    let findings = try await sample.verify()
    #expect(findings.count == 1_001)
    #expect(findings.last?.message.hasPrefix("200 more") == true)
  }
}
