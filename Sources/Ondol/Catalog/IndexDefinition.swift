// What an index is: fields with directions, over all collections of one pattern. Its rows are made
// in IndexEntries, chosen by the Planner, and filled for older documents by the IndexBuilder.

/// A field of an index.
struct IndexField: Sendable, Hashable {
  var names: FieldNames
  var descending: Bool

  init(_ names: FieldNames, descending: Bool = false) {
    self.names = names
    self.descending = descending
  }

  /// As an app writes it: `status`, or `-workDate` for descending.
  init(text: String) throws(DatabaseError) {
    let descending = text.utf8.first == UInt8(ascii: "-")
    self.init(
      try FieldPath(descending ? String(text.dropFirst()) : text).names(), descending: descending)
  }

  var path: FieldPath { FieldPath(names) }

  static func == (left: IndexField, right: IndexField) -> Bool {
    left.descending == right.descending
      && ValueOrder.compareSegments(left.names, right.names) == 0
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(segments: names)
    hasher.combine(descending)
  }
}

extension IndexField: CustomStringConvertible {
  var description: String { (descending ? "-" : "") + WriteCompiler.describe(names) }
}

/// An index of a collection pattern.
struct IndexDefinition: Sendable, Hashable {
  enum State: Sendable, Hashable {
    /// Writes maintain the index, but documents older than it are missing from it behind `through`,
    /// the key of the last document that was added; nil when none was.
    case building(through: [UInt8]?)
    /// Every document is in it.
    case ready
  }

  var keyspace: Keyspace
  /// The pattern's documents.
  var documents: Keyspace
  var name: String
  var fields: [IndexField]
  var state: State

  /// The direction of the document's id behind the components: that of the last field, because that
  /// is the direction in which a query that orders by it takes the ids.
  var idDescending: Bool { fields.last?.descending ?? false }

  static func name(for fields: [IndexField]) -> String {
    fields.map(\.description).joined(separator: ",")
  }
}
