// A type of which no values can be made, because one of its properties accepts none of the
// examples: an enum with associated values, or a text that is validated. Its documents are stored
// and read like those of any type. Only a condition must know a property's field, and the type's
// coding cannot tell it. In that case the property's name determines the field when that is
// certain: the property is stored, the type has a coding key with its name, and it is not the
// property that refused the examples. Other properties are refused, with a suggestion.

internal import OndolEngine

/// Why no values of a type can be made, and what the attempt has shown about it.
struct UnmadeModel: Error, Sendable {
  /// The field that accepts no examples; nil when the type as a whole accepts none.
  var field: String?
  var reason: String
  /// For the path of each map that the type asked for, whether one of its keys has this name.
  var keys: [String: @Sendable (String) -> Bool]

  /// The field that a property is stored in, by its name.
  ///
  /// - Throws: `.failedPrecondition` when the name does not determine the field.
  func path<Model, Content>(
    of property: ModelProperty<Model, Content>, _ strategy: KeyStrategy
  ) throws(DatabaseError) -> FieldPath {
    guard let names = names(of: property.keyPaths) else {
      throw refusal(of: property, field: field, "its name does not tell where it is stored")
    }
    let path = dotted(names.map { PlainKey($0) })
    // Everything in the field, and everything that contains it.
    if let field, path == field || field.hasPrefix(path + ".") || field.hasPrefix(path + "[") {
      throw refusal(of: property, field: field, "it holds what no values are known of")
    }
    return FieldPath(names.map { strategy.name(for: PlainKey($0)) })
  }

  private func refusal<Model, Content>(
    of property: ModelProperty<Model, Content>, field: String?, _ why: String
  ) -> DatabaseError {
    DatabaseError(
      .failedPrecondition,
      "nothing can be asked about \(property) by its property, since \(why): \(reason); or name"
        + " the field, as in query.whereField(\"\(field ?? "name")\", isEqualTo: …)", field: field)
  }

  /// The keys that the properties are stored under; nil when one of them is uncertain.
  private func names(of keyPaths: [AnyKeyPath]) -> [String]? {
    var names: [String] = []
    for keyPath in keyPaths {
      guard let properties = Self.storedNames(of: keyPath) else { return nil }
      for name in properties {
        guard keys[dotted(names.map { PlainKey($0) })]?(name) == true else { return nil }
        names.append(name)
      }
    }
    return names.isEmpty ? nil : names
  }

  /// The names of the stored properties on a key path; nil when it goes through other properties,
  /// such as a wrapper's value.
  private static func storedNames(of keyPath: AnyKeyPath) -> [String]? {
    let root: any Any.Type = type(of: keyPath).rootType
    guard isStored(keyPath, in: root) else { return nil }
    let parts = "\(keyPath)".split(separator: ".", omittingEmptySubsequences: false)
    let names = parts.dropFirst().map(String.init)
    return names.isEmpty || names.contains { !FieldPath.isIdentifier($0) } ? nil : names
  }

  private static func isStored<Root>(_ keyPath: AnyKeyPath, in root: Root.Type) -> Bool {
    (keyPath as? PartialKeyPath<Root>).map { MemoryLayout<Root>.offset(of: $0) != nil } ?? false
  }
}
