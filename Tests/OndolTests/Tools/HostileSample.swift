// A database whose every name and text would do something to a terminal, and for each command of
// `ondol` the arguments that print them.

import Foundation
import Ondol

/// A run of a command, after its name.
struct HostileRun {
  var words: [String]
  var status: Int32
  /// The output before ^C ends it; nil for those that end.
  var endsAfter: String?

  init(_ words: String..., status: Int32 = 0, endsAfter: String? = nil) {
    self.words = words
    self.status = status
    self.endsAfter = endsAfter
  }
}

/// The database, and its original contents.
struct HostileSample {
  /// Reverses the order, sets a title, wipes the screen, all in more than one way, and continues on
  /// a line of its own.
  static let orders = "\u{202E}\u{1B}]0;x\u{7}\u{1B}[2J\u{9B}2J\u{2066}\u{200B}\nondol: ok"
  /// The part of it that storage paths and tree keys may contain.
  static let marks = "\u{202E}\u{9B}2J\u{2066}\u{7F}\u{200B}"

  private static let collection = "c\(orders)"
  private static let path = "\(collection)/d\(orders)"
  private static let field = "`f\(orders)`"

  let scratch: ScratchDirectory
  /// The place where runs find the database.
  let place: String
  private let base: String
  private let token: String
  private let digest: String

  init(_ scratch: ScratchDirectory) async throws {
    self.scratch = scratch
    base = scratch.path("base")
    place = scratch.path("p\(Self.orders)")
    let options = Database.Options(changeRetention: .init(bytes: 1 << 20))
    let database = try await Database.open(at: base, options: options)
    token = try database.changeToken().description
    let collection = database.collection(Self.collection)
    try await collection.createIndex(on: [Self.field])
    try await collection.createSearchIndex(on: ["text"])
    for (id, text) in [("d", "a lamp"), ("e", "a lantern")] {
      try await collection.document(id + Self.orders).setData([
        "f\(Self.orders)": "v\(Self.orders)", "same": Self.orders,
        "text": "\(text) \(Self.orders) lamp", "n": 1,
        "deep": ["m\(Self.orders)": [Self.orders]],
      ])
    }
    let object = database.storage.reference(withPath: "o\(Self.marks).txt")
    let bytes = Array("bytes \(Self.orders)".utf8)
    try await object.putData(bytes, metadata: StorageMetadata(contentType: "text/plain"))
    let blob = try await database.storage.put(bytes)
    digest = blob.digest.hex
    try await database.document("\(Self.collection)/b").setData([
      "blob\(Self.orders)": blob
    ])
    try await database.tree.child("t\(Self.marks)").setValue(Self.orders)
    try await database.close()
    try write("key", String(repeating: "k", count: 32))
    try write(
      "lines\(Self.orders)", "{\"\(Self.marks)\": }\n{\"__\(Self.marks)__\": 1}\n{\"id\": \"i\"}")
    try write("rules\(Self.orders)", "service cloud.firestore { match /\(Self.orders)")
    try write("whole.rules", "service cloud.firestore { match /{p=**} { allow get: if true; } }")
    try write("indexes.json", Self.declared(#""order": "\#(Self.json)""#))
    try write("vectors.json", Self.declared(#""vectorConfig": {"dimension": 3}"#))
  }

  /// Copies the original database to the place where runs find it.
  func restore() throws {
    let files = FileManager.default
    for name in ["p", "q", "r"] {
      try? files.removeItem(atPath: scratch.path(name + Self.orders))
    }
    try files.copyItem(atPath: base, toPath: place)
  }

  /// The control sequences within a JSON text.
  private static let json =
    #"\u202e\u001b]0;x\u0007\u001b[2J\u009b2J\u2066\u200b\nondol: ok"#

  /// The indexes of a Firestore, one of which has this in its second field.
  private static func declared(_ field: String) -> String {
    """
    {"indexes": [{"collectionGroup": "\(json)", "queryScope": "COLLECTION", "fields": [
      {"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "\(json)", \(field)}
    ]}]}
    """
  }

  private func write(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(filePath: scratch.path(name)))
  }
}

// MARK: - Runs

extension HostileSample {
  /// The runs of each command, by its name.
  var runs: [String: [HostileRun]] {
    looking.merging(writing) { $0 + $1 }.merging(moving) { $0 + $1 }.merging(inside) { $0 + $1 }
  }

  private var looking: [String: [HostileRun]] {
    let (c, field, path) = (Self.collection, Self.field, Self.path)
    let none = "q\(Self.orders)"
    let condition = "\(field) = \"\(Self.json)\""
    return [
      "info": [.init(place), .init(none, status: 3)],
      "colls": [.init(place)],
      "ls": [
        .init(place), .init(place, c), .init(place, c, "--ids"), .init(place, c, "-l"),
        .init(place, c, "--format", "raw"), .init(place, c, "--format", "csv"),
        .init(place, c, "--format", "json"), .init(place, c, "--format", "jsonl"),
        .init(place, none, status: 3),
      ],
      "get": [
        .init(place, path), .init(place, path, "\(c)/b", "--rev"),
        .init(place, path, "--format", "json", "--ejson", "canonical"),
        .init(place, path, "\(c)/\(none)", "--field", field, status: 3),
        .init(place, "\(c)//\(none)", status: 1),
      ],
      "query": [
        .init(place, c, condition), .init(place, c, condition, "--explain"),
        .init(place, c, condition, "--analyze", "--format", "jsonl"),
        .init(place, c, "\(condition) and \(none)", status: 2),
        .init(place, c, "`\(none)` = 1", status: 3),
      ],
      "search": [
        .init(place, c, "lamp"), .init(place, c, "lamp", "--explain"),
        .init(place, none, "lamp", status: 1),
      ],
      "count": [.init(place, c), .init(place, none, status: 3)],
      "agg": [
        .init(place, c, "--max", field, "--group-by", field),
        .init(place, c, "--max", field, "--group-by", "same", "--format", "csv"),
      ],
      "pipe": [
        .init(place, "`\(c)`"), .init(place, "* | where same = \"\(Self.json)\""),
        .init(place, "* | select `f\(Self.orders)`", "--analyze"),
        .init(place, "* | where \(none)(n)", status: 2),
        .init(place, "* | where `\(none)`(n)", status: 1),
      ],
      "schema": [.init(place), .init(place, c, "--format", "raw")],
      "indexes": [.init(place), .init(place, none, status: 3)],
      "tree get": [.init(place), .init(place, "t\(Self.marks)", "--format", "raw")],
      "tree ls": [.init(place)],
      "tree watch": [.init(place, status: 130, endsAfter: "t\\u202e")],
      "stats": [.init(place)],
      "watch": [.init(place, c, "--snapshot", status: 130, endsAfter: "\"current\"")],
      "tail": [.init(place, "--since", token, status: 130, endsAfter: "blob\\u202e")],
      "shell": [.init(place, status: 0, endsAfter: "ondol> ")],
      "console": [
        .init(none, status: 3), .init(place, "--port", Self.orders, status: 2),
        .init(place, "--port=\(Self.orders)", status: 2),
      ],
      "serve": [.init(place, "--grace=-1", status: 2)],
      "sync": [
        .init(place, "--with", "ftp://\(Self.orders)", "--follow", c, status: 1),
        .init(place, "--with", "http://127.0.0.1:1", "--follow", "\(c)/\(none)", status: 1),
      ],
      "tokens rotate": [.init(none, "--format", Self.orders, status: 2)],
      "rules check": [.init(scratch.path("rules\(Self.orders)"), status: 1)],
      "rules test": [
        .init(scratch.path("whole.rules"), scratch.path("lines\(Self.orders)"), status: 1)
      ],
      "rules deploy": [
        .init(place, scratch.path("rules\(Self.orders)"), status: 1),
        .init("http://127.0.0.1:1/\(Self.orders)", scratch.path("whole.rules"), status: 1),
      ],
      "rules explain": [
        .init(
          place, "get", "\(Self.collection)/\(Self.orders)", "--as", Self.orders, "--rules",
          scratch.path("whole.rules"))
      ],
    ]
  }

  private var writing: [String: [HostileRun]] {
    let (c, field, path) = (Self.collection, Self.field, Self.path)
    let fields = #"{"f": "\#(Self.json)"}"#
    let lines = scratch.path("lines\(Self.orders)")
    return [
      "put": [
        .init(place, path, fields), .init(place, path, fields, "--create", status: 9),
        .init(place, path, "{\(Self.marks)", status: 1),
      ],
      "patch": [.init(place, path, fields), .init(place, "\(path)x", fields, status: 3)],
      "edit": [.init(place, path), .init(place, "\(path)x", status: 3)],
      "update": [.init(place, c, fields, "--yes"), .init(place, c, fields, "--dry-run")],
      "rm": [
        .init(place, path, "--recursive", "--yes"), .init(place, path, "--dry-run"),
        .init(place, "\(path)x", status: 3), .init(place, c, "--where", field, status: 2),
      ],
      "mkindex": [
        .init(place, c, "\(field) desc"), .init(place, c, "same", "--unique", status: 9),
      ],
      "mkindexes": [
        .init(place, scratch.path("indexes.json"), status: 2),
        .init(place, scratch.path("vectors.json"), status: 1),
        .init(place, lines, status: 2),
      ],
      "rmindex": [.init(place, c, "i\(Self.orders)", status: 3)],
      "reindex": [.init(place, c), .init(place, c, "i\(Self.orders)", status: 3)],
      "mkcoll": [.init(place, c, "--own-key", status: 1)],
      "rmcoll": [.init(place, c, "--yes"), .init(place, "q\(Self.orders)", "--yes", status: 3)],
    ]
  }

  private var moving: [String: [HostileRun]] {
    let c = Self.collection
    let (other, target) = (scratch.path("q\(Self.orders)"), scratch.path("r\(Self.orders)"))
    let lines = scratch.path("lines\(Self.orders)")
    return [
      "import": [
        .init(place, lines, "--into", c, "--id-field", "id", status: 1),
        .init(place, lines, "--into", c, "--id-field", "id", "--stop-on-error", status: 1),
        .init(place, other, "--into", c, status: 1),
        .init(
          place, lines, "--into", c, "--dry-run", "--rejects", scratch.path("s\(Self.orders)"),
          status: 1),
        .init(place, lines, "--into", c, "--at", "x\(Self.orders)", status: 1),
        .init(place, lines, "--into", c, "--as", "csv", "--id-field", "id", status: 1),
      ],
      "export": [
        .init(place, "-o", "-"), .init(place, c, "-o", "-", "--format", "csv"),
        .init(place, c, "-o", "-", "--format", "csv", "--columns", "y"),
        .init(place, c, "-o", "-", "--format", "geojson"),
        .init(place, "q\(Self.orders)", "-o", "-", status: 3),
      ],
      "dump": [.init(place, "-o", "-"), .init(place, "-o", place, status: 1)],
      "load": [.init(place, other, status: 1), .init(target, place, status: 1)],
      "diff": [.init(base, place), .init(place, other, status: 3)],
      "digest": [.init(place), .init(place, c), .init(place, other, status: 3)],
      "check": [.init(place), .init(place, "--full"), .init(other, status: 3)],
      "backup": [
        .init(place, target), .init(place, place, status: 1), .init(place, "-", status: 2),
      ],
      "verify-backup": [.init(place)],
      "restore": [.init(place, target), .init(place, place, status: 1)],
      "recover": [.init(place, target), .init(place, place, status: 1)],
      "repair": [.init(place, "--rebuild-index")],
      "compact": [.init(place)],
      "encrypt": [.init(place, "--key-file", scratch.path("key")), .init(place, status: 2)],
      "decrypt": [.init(place, status: 1)],
      "rekey": [.init(place, "--key-file", scratch.path("key"), status: 1)],
      "new": [
        .init(place, "--ondol", "https://example.com/o", status: 1),
        .init(target, "--ondol", "https://example.com/o"),
      ],
    ]
  }

  private var inside: [String: [HostileRun]] {
    let (c, field) = (Self.collection, Self.field)
    let (object, file) = ("o\(Self.marks).txt", "n\(Self.orders)")
    // An address without a server.
    let server = "postgresql://nobody@127.0.0.1:1/\(Self.orders)"
    return [
      "server prepare": [.init(server, "--role", Self.orders, status: 1)],
      "server upgrade": [.init(server, status: 1)],
      "server list": [.init(server, status: 1)],
      "server remove": [.init(server, "--yes", status: 1)],
      "blob ls": [.init(place)],
      "blob refs": [.init(place, digest), .init(place, object, status: 2)],
      "blob cat": [
        .init(place, object), .init(place, digest), .init(place, digest, "--range", "0-7"),
        .init(place, "x\(object)", status: 3),
      ],
      "blob put": [
        .init(place, scratch.path("key"), "--path", object, "--content-type", object, status: 1),
        .init(place, file, status: 1),
      ],
      "blob verify": [.init(place)],
      "blob gc": [.init(place)],
      "blob stats": [.init(place)],
      "index dump": [
        .init(place, c, field), .init(place, c, file, status: 3),
      ],
      "log dump": [.init(place, "--hex")],
      "segment ls": [.init(place)],
      "segment dump": [.init(place, file, status: 3)],
      "segment verify": [.init(place, file, status: 3)],
      "manifest dump": [.init(place)],
      "hexdump": [.init(place, "LOCK"), .init(place, file, status: 3)],
      "snapshots": [.init(place)],
    ]
  }
}
