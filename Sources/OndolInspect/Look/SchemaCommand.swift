// `ondol schema`: the structure of a collection's documents, found by reading them: each field with
// the types of its values, the share of documents that have it, and examples.

import ArgumentParser
import Ondol
import OndolJSON

struct SchemaCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema", abstract: "Prints the fields of a collection's documents.",
    discussion: "Without a collection, of all collections at the top.")

  @OptionGroup var place: CollectionArgument

  @Option(help: "Look at most at this many documents of a collection.")
  var sample = 100_000

  @OptionGroup var globals: GlobalOptions

  var database: DatabaseArgument { place.database }

  func validate() throws {
    guard sample > 0 else { throw ValidationError("--sample must be positive") }
  }

  func run(in database: Database) async throws {
    let columns = ["collection", "field", "kinds", "documents", "share", "examples"]
    let collections =
      if let collection = place.collection {
        [database.collection(collection)]
      } else {
        try await database.listCollections()
      }
    try await globals.report("schema/1", columns) { rows in
      for collection in collections {
        let fields = try await census(of: collection)
        for row in fields.rows { try rows.write([("collection", .string(collection.path))] + row) }
      }
    }
  }

  private func census(of collection: CollectionReference) async throws -> FieldCensus {
    var fields = FieldCensus()
    var pages = Pages(collection, limit: sample)
    while let page = try await pages.next() {
      for document in page { fields.add(document.data()) }
    }
    if !pages.hasShown {
      try await UnknownNames(documents: collection.query, collection: collection.path)
        .refuse(fields: [])
    }
    return fields
  }
}

/// The information about the fields of the documents read so far.
struct FieldCensus {
  private struct Field {
    var documents = 0
    var kinds: [String: Int] = [:]
    var examples: [String] = []
  }

  private static let exampleCount = 3
  private static let exampleLength = 24
  /// Maps used as dictionaries have any number of names. Names beyond this number are omitted.
  private static let maximumFields = 2_000
  /// The nesting depth that is examined, which is the most that a document may have.
  private static let maximumDepth = 100

  private var documents = 0
  private var fields: [String: Field] = [:]

  mutating func add(_ document: [String: Value]) {
    documents += 1
    var seen: Set<String> = []
    for (name, value) in document { add(value, at: "\(FieldPath([name]))", &seen, depth: 0) }
    for name in seen { fields[name]?.documents += 1 }
  }

  private mutating func add(
    _ value: Value, at path: String, _ seen: inout Set<String>, depth: Int
  ) {
    guard fields[path] != nil || fields.count < Self.maximumFields else { return }
    seen.insert(path)
    fields[path, default: Field()].kinds[ValueText.kind(value), default: 0] += 1
    switch value {
    case .map(let inner) where depth <= Self.maximumDepth:
      for (name, value) in inner {
        add(value, at: path + ".\(FieldPath([name]))", &seen, depth: depth + 1)
      }
    case .array(let elements) where depth <= Self.maximumDepth:
      for element in elements.prefix(100) {
        add(element, at: path + "[]", &seen, depth: depth + 1)
      }
    case .map, .array: break
    default: addExample(ValueText.plain(value, .relaxed), at: path)
    }
  }

  private mutating func addExample(_ text: String, at path: String) {
    let text =
      text.count > Self.exampleLength ? text.prefix(Self.exampleLength) + "…" : text
    guard let field = fields[path], field.examples.count < Self.exampleCount,
      !field.examples.contains(text)
    else { return }
    fields[path]?.examples.append(text)
  }

  /// A row for each field, sorted by path.
  var rows: [[Cell]] {
    fields.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map { path, field in
      let kinds = field.kinds.sorted {
        $0.value != $1.value ? $0.value > $1.value : $0.key < $1.key
      }
      let share = Double(field.documents) / Double(max(1, documents))
      return [
        ("field", .string(path)), ("kinds", .string(kinds.map(\.key).joined(separator: " | "))),
        ("documents", .number(field.documents)),
        ("share", .double((share * 1_000).rounded() / 1_000)),
        ("examples", .strings(field.examples)),
      ]
    }
  }
}
