// Scripts of the catalog: writes and declarations, and the catalog rows that each changes. New and
// changed rows are printed with "+", deleted ones with "-".
//
//   set PATH FIELDS                    a document
//   delete PATH
//   index COLLECTION FIELDS [unique]   "group:ID" for a collection group
//   array-index COLLECTION FIELD
//   drop-index COLLECTION NAME
//   ends COLLECTION FIELD              when documents expire; never without a field
//   drop COLLECTION [all]              "all" also drops the declarations
//   open                               closes and reopens

import OndolEngine
import OndolJSON
import OndolTestKit
import Testing

@testable import Ondol

private struct CatalogWorld {
  private let environment = Environment.memory()
  private var database: Database?
  private var known: [String: String] = [:]

  mutating func run(_ step: GoldenScript.Step) async throws -> String {
    let database = try await opened()
    let words = step.words
    switch step.name {
    case "set":
      let text = words.dropFirst().joined(separator: " ")
      try await database.document(words[0]).setData(try JSONReader.readDocument(Array(text.utf8)))
    case "delete": try await database.document(words[0]).delete()
    case "index": try await index(words, in: database)
    case "array-index": try await database.collection(words[0]).createIndex(onArray: words[1])
    case "drop-index": try await dropIndex(words, in: database)
    case "ends":
      let field = words.count > 1 ? FieldPath(words[1]) : nil
      try await database.collection(words[0]).setTimeToLive(field: field)
    case "drop":
      try await database.collection(words[0]).drop(includingDeclarations: words.count > 1)
    case "open":
      try await database.close()
      self.database = nil
    default: throw step.unknown
    }
    return try await changes()
  }

  private func index(_ words: [String], in database: Database) async throws {
    let fields = words[1].split(separator: ",").map(String.init)
    if let id = group(words[0]) {
      try await database.collectionGroup(id).createIndex(on: fields)
    } else {
      try await database.collection(words[0]).createIndex(
        on: fields, unique: words.contains("unique"))
    }
  }

  private func dropIndex(_ words: [String], in database: Database) async throws {
    let name = words.dropFirst().joined(separator: " ")
    if let id = group(words[0]) {
      try await database.collectionGroup(id).dropIndex(named: name)
    } else {
      try await database.collection(words[0]).dropIndex(named: name)
    }
  }

  private func group(_ word: String) -> String? {
    word.hasPrefix("group:") ? String(word.dropFirst(6)) : nil
  }

  private mutating func opened() async throws -> Database {
    if let database { return database }
    let database = try await Database.open(at: "/d", environment: environment)
    self.database = database
    return database
  }

  // MARK: - Rows

  /// The changes since the step before, after all removals are done.
  private mutating func changes() async throws -> String {
    var rows = try await rows()
    while rows.values.contains("dropped") || rows.keys.contains(where: { $0.hasPrefix("05") }) {
      await Task.yield()
      rows = try await self.rows()
    }
    let gone = known.keys.filter { rows[$0] == nil }.sorted().map { "- \($0)" }
    let new = rows.keys.filter { rows[$0] != known[$0] }.sorted().map {
      "+ \($0): \(rows[$0] ?? "")"
    }
    known = rows
    return (gone + new).joined(separator: "\n")
  }

  private mutating func rows() async throws -> [String: String] {
    let prefix = Keyspace.catalog.prefix
    var cursor = try await opened().engineSnapshot().cursor(from: prefix, to: prefix + [0xff])
    var rows: [String: String] = [:]
    try cursor.seekToFirst()
    while cursor.isValid {
      let (key, value) = (cursor.key.array, try cursor.value.array)
      let (name, text) = try describe(key, value)
      rows[name] = text
      try cursor.next()
    }
    return rows
  }

  private func describe(_ key: [UInt8], _ value: [UInt8]) throws -> (String, String) {
    let name = String(decoding: key.dropFirst(5), as: UTF8.self)
    switch key[4] {
    case 1: return ("01 next family", bytes(value))
    case 2:
      let row = try FamilyRow(value.bytes)
      return (
        "02 root \(name)",
        "family \(row.number), change \(row.generation), next member \(row.nextMember)"
      )
    case 3 where key[9] == CatalogKey.timeToLiveMark:
      return ("03 \(try keyspace(key)) ends", bytes(value))
    case 3 where key[9] == CatalogKey.schemaMark:
      return ("03 \(try keyspace(key)) schema", bytes(value))
    case 3:
      let (keyspace, symbol) = try CatalogKey.parse(key.bytes)
      if let symbol {
        return ("03 \(text(keyspace)) symbol \(symbol)", String(decoding: value, as: UTF8.self))
      }
      let row = try KeyspaceRow(value.bytes, of: keyspace)
      return ("03 \(text(keyspace))", describe(row))
    case 4: return ("04 group \(name)", bytes(value))
    default: return ("0\(key[4]) \(bytes(Array(key.dropFirst(5))))", bytes(value))
    }
  }

  private func describe(_ row: KeyspaceRow) -> String {
    switch row {
    case .documents(let pattern): return "documents of \(pattern)"
    case .dropped: return "dropped"
    case .index(let index):
      let state = index.state == .ready ? "ready" : "building"
      return "index '\(index.name)' of \(text(index.documents)), \(state)"
    }
  }

  private func keyspace(_ key: [UInt8]) throws -> String {
    try CatalogKey.keyspace(of: key[9], key.bytes).map(text) ?? "?"
  }

  private func text(_ keyspace: Keyspace) -> String {
    "\(keyspace.rawValue / Keyspace.familyCapacity).\(keyspace.rawValue % Keyspace.familyCapacity)"
  }

  private func bytes(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
  }
}

@Suite struct CatalogScriptTests {
  @Test(arguments: try GoldenScript.all(in: "catalog"))
  func `The catalog changes as the script says`(script: GoldenScript) async throws {
    var world = CatalogWorld()
    try await script.check { try await world.run($0) }
  }
}
