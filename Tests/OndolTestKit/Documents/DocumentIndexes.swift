// The indexes of the documents under test, of every kind, with their expected contents: the queries
// that each serves, and the documents in it.

internal import Ondol

/// An index and its expected answers.
struct DocumentIndex: Sendable {
  /// A query and the expected documents.
  struct Question: Sendable {
    var query: Query
    /// Whether it finds a document of the collection with this path and these fields.
    var isAnswer: @Sendable (String, [String: Value]) -> Bool
  }

  /// The patterns or the group of the index.
  enum Home: Sendable {
    /// Collections of one pattern.
    case collections([String])
    /// All collections with the id.
    case group(String)
  }

  enum Kind: Sendable {
    /// On fields, `-` before a descending one. Every document has them.
    case fields([String], isUnique: Bool = false)
    /// On the elements of `tags`.
    case tags
    /// On `size`, of the documents that have `flag`.
    case sizesOfFlagged
  }

  var home: Home
  var kind: Kind

  /// The lasting ones, which stay after their creation.
  static let lasting: [DocumentIndex] = [
    DocumentIndex(home: posts, kind: .fields(["-n", "size"])),
    DocumentIndex(home: posts, kind: .fields(["mark"], isUnique: true)),
    DocumentIndex(home: .collections(["cities"]), kind: .tags),
    DocumentIndex(home: .collections(["cities"]), kind: .sizesOfFlagged),
    DocumentIndex(home: .collections(["users/ada/posts/first/notes"]), kind: .fields(["place.x"])),
    DocumentIndex(home: .collections(["posts"]), kind: .fields(["n"])),
    DocumentIndex(home: .collections(["posts"]), kind: .fields(["-mark"], isUnique: true)),
    DocumentIndex(home: .group("posts"), kind: .fields(["-size"])),
    DocumentIndex(home: .group("posts"), kind: .tags),
  ]

  /// The one that comes and goes.
  static let passing = DocumentIndex(home: .collections(["cities"]), kind: .fields(["-n"]))

  private static let posts = Home.collections(["users/ada/posts", "users/한/posts"])

  /// Creates it if it does not exist.
  func create(in database: Database) async throws {
    switch (home, kind) {
    case (.collections(let paths), .fields(let fields, let isUnique)):
      try await database.collection(paths[0]).createIndex(on: fields, unique: isUnique)
    case (.collections(let paths), .tags):
      try await database.collection(paths[0]).createIndex(onArray: "tags")
    case (.collections(let paths), .sizesOfFlagged):
      try await database.collection(paths[0]).createIndex(
        on: ["size"], where: .whereField("flag", isEqualTo: true))
    case (.group(let id), .fields(let fields, _)):
      try await database.collectionGroup(id).createIndex(on: fields)
    case (.group(let id), .tags), (.group(let id), .sizesOfFlagged):
      try await database.collectionGroup(id).createIndex(onArray: "tags")
    }
  }

  /// The collections that it serves, grouped by pattern.
  var patterns: [[String]] {
    switch home {
    case .collections(let paths): [paths]
    case .group(let id):
      [["users/ada/posts", "users/한/posts"], ["posts"]].filter { $0.allSatisfy(isIn(id)) }
    }
  }

  private func isIn(_ id: String) -> (String) -> Bool {
    { path in path.split(separator: "/").last.map(String.init) == id }
  }

  /// The database's description for one pattern; nil if it does not exist.
  func information(
    in database: Database, of pattern: [String]
  ) async throws -> IndexInformation? {
    let isOfGroup = if case .group = home { true } else { false }
    return try await database.collection(pattern[0]).listIndexes().first { information in
      guard information.name.hasSuffix(" group") == isOfGroup else { return false }
      return switch kind {
      case .fields(let fields, let isUnique):
        information.fields == fields && information.isUnique == isUnique
      case .tags: information.fields == ["tags[]"]
      case .sizesOfFlagged: information.fields == ["size"]
      }
    }
  }

  /// Drops it if it exists.
  func drop(from database: Database) async throws {
    guard case .collections(let paths) = home,
      let name = try await information(in: database, of: paths)?.name
    else { return }
    try await database.collection(paths[0]).dropIndex(named: name)
  }

  // MARK: - Expected contents

  /// The number of its rows for a document with these fields.
  func rowCount(for fields: [String: Value]) -> Int {
    switch kind {
    case .fields: 1
    case .tags: Set(fields["tags"]?.array ?? []).count
    case .sizesOfFlagged: fields["flag"] == .boolean(true) ? 1 : 0
    }
  }

  /// Queries that together read each of its rows.
  func questions(in database: Database) -> [Question] {
    switch home {
    case .collections(let paths):
      paths.flatMap { path in
        questions(to: database.collection(path).query) { $0 == path }
      }
    case .group(let id):
      questions(to: database.collectionGroup(id).query) { isIn(id)($0) }
    }
  }

  private func questions(
    to source: Query, _ isInSource: @escaping @Sendable (String) -> Bool
  ) -> [Question] {
    switch kind {
    case .fields(let fields, _):
      [Question(query: ordered(source, by: fields)) { collection, _ in isInSource(collection) }]
    case .tags:
      (Int64(0)..<6).map { tag in
        Question(query: source.whereField("tags", arrayContains: tag)) { collection, fields in
          isInSource(collection) && fields["tags"]?.array?.contains(.integer(tag)) == true
        }
      }
    case .sizesOfFlagged:
      [
        Question(query: source.whereField("flag", isEqualTo: true).order(by: "size")) {
          isInSource($0) && $1["flag"] == .boolean(true)
        }
      ]
    }
  }

  private func ordered(_ source: Query, by fields: [String]) -> Query {
    fields.reduce(source) { query, field in
      field.hasPrefix("-")
        ? query.order(by: FieldPath(String(field.dropFirst())), descending: true)
        : query.order(by: FieldPath(field))
    }
  }
}
