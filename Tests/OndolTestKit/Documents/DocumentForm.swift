// Converts a row of a workload to a document, and back. Rows are in five collections, at the top
// and below other documents, two of them with one pattern and three in one group. All fields of a
// document follow from its row, so that a mistake in any field shows.

internal import Ondol
internal import OndolEngine

/// The places and forms of a workload's rows as documents.
package enum DocumentForm {
  /// The collections, by the keyspace of a workload's rows.
  static let collections: [(keyspace: UInt32, path: String)] = [
    (0x0000, "cities"),
    (0x1000, "users/ada/posts"),
    (0x1001, "users/한/posts"),
    (0x2000, "users/ada/posts/first/notes"),
    (0x3000, "posts"),
  ]

  /// The path of the document for the row at `key`.
  static func path(of key: [UInt8]) throws -> String {
    let keyspace = key.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    guard let collection = collections.first(where: { $0.keyspace == keyspace })?.path,
      let number = key.last, key.count > 4
    else { throw BrokenInvariant("no collection stands for the row \(key)") }
    return collection + "/" + String(repeating: "k", count: key.count - 5) + "\(number)"
  }

  /// The key of the document's row.
  static func key(of id: String, in keyspace: UInt32) throws -> [UInt8] {
    let letters = id.prefix { $0 == "k" }
    guard let number = UInt8(id.dropFirst(letters.count)) else {
      throw BrokenInvariant("the document \(id) stands for no row")
    }
    var key: [UInt8] = []
    key.appendBigEndian(keyspace)
    return key + [UInt8](repeating: 0x6B, count: letters.count) + [number]
  }

  /// All fields of the document with this id and the row's value.
  ///
  /// - `mark` differs from document to document, for unique indexes.
  /// - `tags` repeats elements, is sometimes empty, and sometimes missing.
  /// - `note` is sometimes null or missing.
  /// - `n` is sometimes a decimal, and `grid`, which most lack, has arrays in an array.
  static func fields(of value: [UInt8], id: String) -> [String: Value] {
    let sum = crc32c(value.bytes)
    var fields: [String: Value] = [
      "value": .bytes(value),
      "n": .integer(Int64(sum % 16) - 8),
      "size": .integer(Int64(value.count)),
      "mark": .string("\(id):\(sum)"),
      "flag": .boolean(sum & 0x10 != 0),
      "place": .map(["x": .double(Double(sum % 64) / 4), "y": .integer(Int64(value.count % 7))]),
    ]
    if sum & 0x70000 == 0 {
      fields["n"] = DecimalValue("\(Int(sum % 16) - 8).5").map { .decimal($0) }
    }
    if sum & 0x380000 == 0 {
      fields["grid"] = .array([.array([.integer(Int64(sum % 3))]), .array([])])
    }
    if sum & 0x300 != 0 {
      fields["tags"] = .array(value.prefix(Int(sum >> 10 & 3)).map { .integer(Int64($0 % 6)) })
    }
    if sum & 0x3000 != 0 {
      fields["note"] = sum & 0x4000 != 0 ? .null : .string(String(repeating: "한", count: 3))
    }
    return fields
  }

  /// Fields that some documents have and others lack.
  static let optionalFields = ["tags", "note", "grid"]

  /// The row's value, from a document in which everything is correct.
  static func value(of document: DocumentSnapshot) throws -> [UInt8] {
    let fields = document.data()
    guard let value = fields["value"]?.bytes else {
      throw BrokenInvariant("\(document.reference.path) has no value: \(fields)")
    }
    guard fields == Self.fields(of: value, id: document.documentID) else {
      throw BrokenInvariant("\(document.reference.path) is a mixture: \(fields)")
    }
    return value
  }
}
