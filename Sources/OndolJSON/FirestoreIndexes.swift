// The declarations of a `firestore.indexes.json`, as Ondol's indexes. `firebase firestore:indexes`
// writes the file, and `firebase deploy` reads it. Composite indexes are in `indexes`.
// `fieldOverrides` has the single-field indexes, and marks the fields with the time when documents
// expire.
//
// Source: Firebase CLI, "firestore.indexes.json", and the Firestore Admin API's Index resource.

import Ondol

/// The indexes of a `firestore.indexes.json`.
package struct FirestoreIndexes: Sendable {
  package struct Problem: Error {
    package let reason: String
  }

  package struct Index: Sendable, Hashable {
    package var collectionID: String
    package var isOfGroup: Bool
    /// In the form that `createIndex(on:)` takes.
    package var fields: [String]

    package init(collectionID: String, isOfGroup: Bool, fields: [String]) {
      self.collectionID = collectionID
      self.isOfGroup = isOfGroup
      self.fields = fields
    }
  }

  /// The indexes without repetitions, in the order of the file.
  package private(set) var indexes: [Index] = []
  /// The fields with the expiry time of documents, for each collection id.
  package private(set) var timeToLive: [(collectionID: String, field: String)] = []
  /// The declarations without an equivalent, a sentence each.
  package private(set) var others: [String] = []

  /// Reads a file.
  package init(_ bytes: [UInt8]) throws(Problem) {
    let file: Value
    do throws(JSONError) {
      file = try JSONReader.read(bytes, .plain)
    } catch {
      throw Problem(reason: "not JSON: \(error.reason), in column \(error.column)")
    }
    guard case .map = file else { throw Problem(reason: "not an object with \"indexes\"") }
    for (number, index) in try Self.list(file, "indexes").enumerated() {
      try add(index, "index \(number + 1)")
    }
    for (number, override) in try Self.list(file, "fieldOverrides").enumerated() {
      try add(override: override, "field override \(number + 1)")
    }
  }

  private mutating func add(_ declared: Value, _ place: String) throws(Problem) {
    let collectionID = try Self.collectionID(declared, place)
    var fields: [String] = []
    for field in try Self.list(declared, "fields", place) {
      let path = try Self.text(field, "fieldPath", place)
      guard let text = try Self.field(path, field, place) else {
        others.append("\(place), of \(collectionID): there is no index of vectors")
        return
      }
      fields.append(text)
    }
    guard !fields.isEmpty else { throw Problem(reason: "\(place): it has no fields") }
    try add(fields, of: collectionID, declared, place)
  }

  private mutating func add(override: Value, _ place: String) throws(Problem) {
    let collectionID = try Self.collectionID(override, place)
    let path = try Self.text(override, "fieldPath", place)
    switch override["ttl"] {
    case nil, .boolean(false): break
    case .boolean(true): timeToLive.append((collectionID, path))
    default: throw Problem(reason: "\(place): \"ttl\" is neither true nor false")
    }
    // The star represents every field without an override. Its indexes cannot be listed here.
    if path == "*" { return }
    for declared in try Self.list(override, "indexes", place) {
      guard let text = try Self.field(path, declared, place) else {
        others.append("\(place), of \(collectionID): there is no index of vectors")
        continue
      }
      try add([text], of: collectionID, declared, place)
    }
  }

  private mutating func add(
    _ fields: [String], of collectionID: String, _ declared: Value, _ place: String
  ) throws(Problem) {
    let isOfGroup: Bool
    switch declared["queryScope"]?.string {
    case nil, "COLLECTION": isOfGroup = false
    case "COLLECTION_GROUP": isOfGroup = true
    case let scope?: throw Problem(reason: "\(place): the unknown scope \(scope)")
    }
    let index = Index(collectionID: collectionID, isOfGroup: isOfGroup, fields: fields)
    if !indexes.contains(index) { indexes.append(index) }
  }

  // MARK: - Members

  /// A field in the form that `createIndex(on:)` takes; nil for vectors.
  private static func field(
    _ path: String, _ declared: Value, _ place: String
  ) throws(Problem) -> String? {
    if let config = declared["arrayConfig"] {
      guard config.string == "CONTAINS" else {
        throw Problem(reason: "\(place): \"arrayConfig\" of \(path) is not CONTAINS")
      }
      return path + "[]"
    }
    if declared["vectorConfig"] != nil { return nil }
    // Older files say mode.
    switch (declared["order"] ?? declared["mode"])?.string {
    case "ASCENDING": return path
    case "DESCENDING": return "-" + path
    default: throw Problem(reason: "\(place): \(path) has no order")
    }
  }

  private static func collectionID(_ value: Value, _ place: String) throws(Problem) -> String {
    // Older files say collectionId.
    try text(value, value["collectionGroup"] == nil ? "collectionId" : "collectionGroup", place)
  }

  private static func text(
    _ value: Value, _ name: String, _ place: String
  ) throws(Problem) -> String {
    guard let text = value[name]?.string else {
      throw Problem(reason: "\(place): \"\(name)\" is missing or not a text")
    }
    return text
  }

  private static func list(
    _ value: Value, _ name: String, _ place: String? = nil
  ) throws(Problem) -> [Value] {
    guard let member = value[name] else { return [] }
    guard let list = member.array else {
      throw Problem(reason: (place.map { "\($0): " } ?? "") + "\"\(name)\" is not a list")
    }
    return list
  }
}
