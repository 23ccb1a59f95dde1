// A type that no values can be made of, since one of its properties takes none of the examples: an
// enum whose cases have values, a text that is checked. Its documents are stored and read as those
// of any type; only a condition must know in which field a property is, and cannot ask the type.
// Then the property's name tells, where that is sure: it is stored as it is, the type has a coding
// key of its name, and it is not the property that the trouble is with. What else is asked about is
// refused, with what to do.

internal import OndolEngine

/// Why no values of a type can be made, and what was learned of it in the attempt.
struct UnmadeModel: Error, Sendable {
  /// The field of which no values are known; nil when the type as a whole takes none.
  var field: String?
  var reason: String
  /// For the path of each map that was asked for, whether one of its keys is called so.
  var keys: [String: @Sendable (String) -> Bool]

  /// The field that a property is stored in, by its name.
  ///
  /// - Throws: `.failedPrecondition` when the name does not tell.
  func path<Model, Content>(
    of property: ModelProperty<Model, Content>, _ strategy: KeyStrategy
  ) throws(DatabaseError) -> FieldPath {
    guard let names = names(of: property.keyPaths) else {
      throw refusal(of: property, field: field, "its name does not tell where it is stored")
    }
    let path = dotted(names.map { PlainKey($0) })
    // What is in the field, and what the field is in.
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

  /// The keys that the properties are stored under; nil where one of them is not sure.
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

  /// The names of the stored properties that a key path leads through; nil when it leads through
  /// others, as through what a wrapper shows.
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
