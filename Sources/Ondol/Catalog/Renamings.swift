// New names for fields and collections, as values: the form of a document, an index or a pattern
// under the new name.

internal import OndolEngine

/// Another place for a field.
struct FieldRenaming: Sendable, Hashable {
  let field: FieldNames
  let target: FieldNames

  /// Throws `.invalidArgument` when one place equals the other or is within it.
  init(_ field: FieldNames, _ target: FieldNames) throws(DatabaseError) {
    guard !field.isEmpty, !target.isEmpty, !field.begins(with: target),
      !target.begins(with: field)
    else {
      throw DatabaseError(
        .invalidArgument, "a field cannot be renamed to itself, or to what is in it or around it",
        field: WriteCompiler.describe(field))
    }
    self.field = field
    self.target = target
  }

  /// Moves the field of a document, if it has it.
  func apply(to fields: inout [String: Value]) throws(DatabaseError) {
    guard let value = lookUp(field[...], in: fields) else { return }
    try refuseObstacle(in: fields)
    remove(field[...], from: &fields)
    try assign(value, at: target[...], in: &fields)
  }

  /// Throws when the new place, or a map around it, is occupied.
  private func refuseObstacle(in fields: [String: Value]) throws(DatabaseError) {
    for count in 1...target.count {
      guard let found = lookUp(target.prefix(count), in: fields) else { return }
      if count < target.count, case .map = found { continue }
      throw DatabaseError(
        .alreadyExists, "there is something at the field's new place already",
        field: WriteCompiler.describe(Array(target.prefix(count))))
    }
  }

  /// The new place of a field; nil when it stays.
  func renamed(_ names: FieldNames) -> FieldNames? {
    names.begins(with: field) ? target + names.dropFirst(field.count) : nil
  }
}

extension FieldNames {
  /// Whether the place equals the other or is within it.
  fileprivate func begins(with other: FieldNames) -> Bool {
    count >= other.count && ValueOrder.compareSegments(Array(prefix(other.count)), other) == 0
  }
}

extension FieldRenaming {
  static func == (left: FieldRenaming, right: FieldRenaming) -> Bool {
    ValueOrder.compareSegments(left.field, right.field) == 0
      && ValueOrder.compareSegments(left.target, right.target) == 0
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(segments: field)
    hasher.combine(segments: target)
  }
}

// MARK: - Declarations of fields

extension IndexKind {
  /// The same index for documents whose field has its new name; nil when it does not name the
  /// field.
  func renamed(_ renaming: FieldRenaming) -> IndexKind? {
    var kind = self
    if isLink {
      // A link's fields are the parts of one path.
      guard let names = fields.first.flatMap({ renaming.renamed($0.names) }) else { return nil }
      kind.fields[0].names = names
      return kind
    }
    for place in kind.fields.indices {
      if let names = renaming.renamed(kind.fields[place].names) { kind.fields[place].names = names }
    }
    kind.condition = condition?.renamed(renaming)
    return kind == self ? nil : kind
  }
}

extension FilterTree {
  fileprivate func renamed(_ renaming: FieldRenaming) -> FilterTree {
    switch self {
    case .all(let trees): return .all(trees.map { $0.renamed(renaming) })
    case .any(let trees): return .any(trees.map { $0.renamed(renaming) })
    case .field(var filter):
      if filter.field != .documentID, let renamed = renaming.renamed(filter.field.names) {
        filter.field = QueryField(renamed, comparing: filter.field.comparison)
      }
      return .field(filter)
    }
  }
}

/// Another name for a collection, and so for everything below it.
struct CollectionRenaming: Sendable, Hashable {
  let pattern: CollectionPattern
  let target: CollectionPattern

  /// Throws `.invalidArgument` unless the two differ only in their last names.
  init(_ pattern: CollectionPattern, _ target: CollectionPattern) throws(DatabaseError) {
    guard pattern != target, pattern.ancestorCount == target.ancestorCount,
      ValueOrder.compareSegments(
        pattern.collectionIDs.dropLast(), target.collectionIDs.dropLast()) == 0
    else {
      throw DatabaseError(
        .invalidArgument,
        "a collection can have another last name and no other place: \(pattern) cannot become"
          + " \(target)")
    }
    self.pattern = pattern
    self.target = target
  }

  /// The root collections it concerns.
  var roots: [String] {
    pattern.ancestorCount == 0 ? [pattern.root, target.root] : [pattern.root]
  }

  /// The new name of a pattern; nil when it stays.
  func renamed(_ other: CollectionPattern) -> CollectionPattern? {
    guard other.isAtOrBelow(pattern) else { return nil }
    let below = other.collectionIDs.dropFirst(pattern.collectionIDs.count)
    return CollectionPattern(target.collectionIDs + below)
  }
}

extension CollectionPattern {
  /// Whether it equals the other one, or is of collections below documents of that.
  func isAtOrBelow(_ other: CollectionPattern) -> Bool {
    let count = other.collectionIDs.count
    return collectionIDs.count >= count
      && CollectionPattern(Array(collectionIDs.prefix(count))) == other
  }
}
