// Fields of an index with a comparison of texts. Names with signs, as `listIndexes()` shows them,
// are equivalent; this form uses words.

/// A field of an index, with its direction and how its texts are compared.
///
/// ```swift
/// try await people.createIndex(on: [.ascending("name", comparing: .folded), .descending("born")])
/// ```
public struct IndexedField: Sendable, Hashable {
  /// The form with signs that `createIndex(on:)` takes.
  let text: String

  /// The least value first.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps.
  ///   - comparison: how its texts are compared; by their bytes when nil. Such an index serves only
  ///     conditions and orders with the same comparison.
  public static func ascending(
    _ field: FieldPath, comparing comparison: TextComparison? = nil
  ) -> IndexedField {
    IndexedField(text: "\(field)" + (comparison?.suffix ?? ""))
  }

  /// The greatest value first.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps.
  ///   - comparison: how its texts are compared; by their bytes when nil.
  public static func descending(
    _ field: FieldPath, comparing comparison: TextComparison? = nil
  ) -> IndexedField {
    IndexedField(text: "-\(field)" + (comparison?.suffix ?? ""))
  }

  /// A row for each element of the array in the field.
  ///
  /// - Parameter field: a field or a path into maps.
  public static func elements(_ field: FieldPath) -> IndexedField {
    IndexedField(text: "\(field)[]")
  }
}

extension IndexedField: CustomStringConvertible {
  /// The field with `-` before it when it is descending, followed by its special properties, as in
  /// `IndexInformation.fields`.
  public var description: String { text }
}

extension CollectionReference {
  /// Creates an index on fields whose texts may be compared other than by their bytes.
  ///
  /// A unique index with a comparison allows no two documents whose texts are equal in that
  /// comparison: with `.folded`, `"Anna"` and `"anna"` cannot both be a user's name. In all other
  /// respects like `createIndex(on:unique:nullsDistinct:where:progress:)` with names.
  ///
  /// - Parameters:
  ///   - fields: at least one, each once.
  ///   - unique: refuses a write that would give two documents of a collection the same values in
  ///     all fields.
  ///   - nullsDistinct: of a unique index, whether documents with null in one of the fields may
  ///     agree.
  ///   - condition: only documents that meet it are in the index. It compares texts by their bytes.
  ///   - progress: called each time some documents were added.
  /// - Returns: the index's name.
  /// - Throws: as the call with names.
  /// - Complexity: O(n log n) in the documents of all collections it serves.
  @discardableResult
  public func createIndex(
    on fields: [IndexedField], unique: Bool = false, nullsDistinct: Bool = true,
    where condition: Filter? = nil, progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    try await createIndex(
      on: fields.map(\.text), unique: unique, nullsDistinct: nullsDistinct, where: condition,
      progress: progress)
  }
}

extension CollectionGroup {
  /// Creates an index over all collections of the group, on fields whose texts may be compared
  /// other than by their bytes. In all other respects like `createIndex(on:where:progress:)` with
  /// names.
  ///
  /// - Parameters:
  ///   - fields: at least one, each once.
  ///   - condition: only documents that meet it are in the index. It compares texts by their bytes.
  ///   - progress: called each time some documents were added, for one collection after the other.
  /// - Returns: the index's name.
  /// - Throws: as the call with names.
  /// - Complexity: O(n log n) in the documents of the group.
  @discardableResult
  public func createIndex(
    on fields: [IndexedField], where condition: Filter? = nil,
    progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    try await createIndex(on: fields.map(\.text), where: condition, progress: progress)
  }
}
