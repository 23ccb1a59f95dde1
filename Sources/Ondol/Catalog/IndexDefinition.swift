// The definition of an index: fields with directions, over all collections of one pattern.
// IndexEntries makes its rows, Planner chooses it, and IndexBuilder fills it for older documents.
// IndexCoding defines its row in the catalog.

/// A field of an index.
struct IndexField: Sendable, Hashable {
  var names: FieldNames
  var descending: Bool
  /// Whether there is a row for each distinct element of the field, which is an array.
  var isOfElements: Bool
  /// How its texts are compared; nil when by their bytes.
  var comparison: TextComparison?

  init(
    _ names: FieldNames, descending: Bool = false, isOfElements: Bool = false,
    comparing comparison: TextComparison? = nil
  ) {
    self.names = names
    self.descending = descending
    self.isOfElements = isOfElements
    self.comparison = comparison
  }

  /// The field in conditions and orders.
  var field: QueryField { QueryField(names, comparing: comparison) }

  /// The value in a row for a value of the field.
  func component(of value: Value) -> Value { comparison?.value(of: value) ?? value }

  /// The same field with its texts compared by their bytes.
  var plain: IndexField { IndexField(names, descending: descending) }

  /// Parses a field as an app writes it: `status`, `-workDate` for descending, `tags[]` for the
  /// elements, `name~folded` for texts in a comparison.
  init(text: String) throws(DatabaseError) {
    let descending = text.utf8.first == UInt8(ascii: "-")
    let isOfElements = text.utf8.suffix(2).elementsEqual("[]".utf8)
    guard !descending || !isOfElements else {
      throw DatabaseError(
        .invalidArgument, "an array's elements are found one by one, and so have no direction",
        field: text)
    }
    let (path, comparison) = TextComparison.split(
      text.dropFirst(descending ? 1 : 0).dropLast(isOfElements ? 2 : 0))
    guard comparison == nil || !isOfElements else {
      throw DatabaseError(
        .invalidArgument,
        "an array's elements are compared by their bytes; leave the comparison out, or keep an"
          + " array of folded texts beside it", field: text)
    }
    self.init(
      try FieldPath(path).names(), descending: descending, isOfElements: isOfElements,
      comparing: comparison)
  }

  var path: FieldPath { FieldPath(names) }

  static func == (left: IndexField, right: IndexField) -> Bool {
    left.descending == right.descending && left.isOfElements == right.isOfElements
      && left.comparison == right.comparison
      && ValueOrder.compareSegments(left.names, right.names) == 0
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(segments: names)
    hasher.combine(descending)
    hasher.combine(isOfElements)
    if let comparison { hasher.combine(comparison.code) }
  }
}

extension IndexField: CustomStringConvertible {
  var description: String {
    (descending ? "-" : "") + WriteCompiler.describe(names) + (comparison?.suffix ?? "")
      + (isOfElements ? "[]" : "")
  }
}

extension [IndexField] {
  /// Each field with a comparison of texts is followed by the field itself, so that texts with
  /// equal keys are in the order of their bytes.
  var withTies: [IndexField] { flatMap { $0.comparison == nil ? [$0] : [$0, $0.plain] } }

  /// The fields as an app named them.
  var withoutTies: [IndexField] {
    indices.filter { place in
      place == 0 || self[place - 1].comparison == nil || self[place] != self[place - 1].plain
    }.map { self[$0] }
  }
}

/// An index of a collection pattern.
struct IndexDefinition: Sendable, Hashable {
  enum State: Sendable, Hashable {
    /// Writes maintain the index, but older documents after `through` are missing from it.
    /// `through` is the key of the last document that was added; nil when none was. It is sealed
    /// when the collection has a key of its own: see `lastBuilt`.
    case building(through: [UInt8]?)
    /// Every document is in it.
    case ready
  }

  var keyspace: Keyspace
  /// The pattern's documents.
  var documents: Keyspace
  var kind: IndexKind
  var state: State

  var name: String { kind.name }
  var fields: [IndexField] { kind.fields }

  /// The fields that its rows are made of, including those of its condition.
  var read: [FieldNames] {
    if kind.isLink { return fields.prefix(1).map(\.names) }
    return fields.map(\.names)
      + (kind.condition?.fieldFilters ?? []).compactMap { filter in
        filter.field == .documentID ? nil : filter.field.names
      }
  }

  /// The direction of the document's id after the components.
  var idDescending: Bool { kind.idDescending }
}

/// What an index contains, and how.
struct IndexKind: Sendable, Hashable {
  var fields: [IndexField]
  /// Whether ids have the opposite direction of the last field. A query that only orders by the
  /// field has them in the same direction.
  var opposesIDs = false
  /// Whether no two documents of a collection may have the same values in all fields.
  var isUnique = false
  /// Whether a unique index treats null like a missing field, so that documents with null may
  /// agree. If false, null is a value like any other.
  var nullsDistinct = false
  /// Whether the ids of ancestors come after the components, so that all collections of the pattern
  /// are one range.
  var isOfGroup = false
  /// The condition of documents in the index; nil for all.
  var condition: FilterTree?
  /// For a link, the folder below which the field's texts are storage paths: see BlobLink. Nil for
  /// an index that serves queries.
  var linkedFolder: String?
  /// Whether it serves the removal of expired documents. It has a row for each time in the one
  /// field, ordered by time regardless of the collection.
  var isOfEnds = false
  /// For a word index, how words are found; nil for an index of values. See SearchRows.
  var search: SearchKind?

  init(
    _ fields: [IndexField], isUnique: Bool = false, nullsDistinct: Bool = true,
    isOfGroup: Bool = false, condition: FilterTree? = nil
  ) {
    self.fields = fields
    self.isUnique = isUnique
    self.nullsDistinct = isUnique && nullsDistinct
    self.isOfGroup = isOfGroup
    self.condition = condition
  }

  var isLink: Bool { linkedFolder != nil }
  var isOfWords: Bool { search != nil }
  /// Whether there is a row for each distinct element of one of the fields.
  var isOfElements: Bool { fields.contains(where: \.isOfElements) }
  /// The direction of the document's id after the components.
  var idDescending: Bool { (fields.last?.descending ?? false) != opposesIDs }
  /// Whether the components come first and the ids of ancestors after them.
  var putsAncestorsBehind: Bool { isOfGroup || isLink || isOfEnds }

  /// The index of the expiry times of documents.
  static func ends(_ field: FieldNames) -> IndexKind {
    var kind = IndexKind([IndexField(field)])
    kind.isOfEnds = true
    return kind
  }

  /// The fields as an app writes them, followed by the direction of ids when it is special.
  var texts: [String] {
    fields.withoutTies.map(\.description)
      + (opposesIDs ? [idDescending ? "-__name__" : "__name__"] : [])
  }

  private static let nullsNotDistinct = " nulls not distinct"

  /// The name that the index had before null could be treated as a missing field; nil when that is
  /// still its name.
  var formerName: String? {
    guard isUnique, !nullsDistinct else { return nil }
    var kind = self
    kind.nullsDistinct = true
    return kind.name
  }

  /// The fields with `-` before the descending ones, separated by commas, then the special
  /// properties. Different indexes of a pattern have different names.
  var name: String {
    if let linkedFolder {
      let field = fields.map(\.description).joined(separator: "[].")
      return "\(field) linked" + (linkedFolder.isEmpty ? "" : " under \(linkedFolder)")
    }
    if let search {
      return search.name(of: fields) + (isOfGroup ? " group" : "")
    }
    var name = texts.joined(separator: ",")
    if isOfEnds { name += " ends" }
    if isUnique { name += nullsDistinct ? " unique" : " unique\(Self.nullsNotDistinct)" }
    if isOfGroup { name += " group" }
    if let condition { name += " where \(condition)" }
    return name
  }
}
