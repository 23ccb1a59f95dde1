// The rules for a value anywhere in a document: names of fields, and depth. Part of stage 1 of the
// write path.

/// Checks values before they are written.
enum ValueCheck {
  /// Throws `.invalidArgument` when `value`, to be stored at `place`, breaks a rule. `depth` counts
  /// the maps and arrays around it.
  static func check(
    _ value: Value, at place: @autoclosure () -> FieldNames, depth: Int
  ) throws(DatabaseError) {
    switch value {
    case .map(let fields):
      try checkDepth(depth, place())
      for (name, child) in fields {
        try WriteCompiler.checkName(name, at: place() + [name])
        try check(child, at: place() + [name], depth: depth + 1)
      }
    case .array(let elements):
      try checkDepth(depth, place())
      for element in elements {
        try check(element, at: place(), depth: depth + 1)
      }
    case .null, .boolean, .integer, .double, .decimal, .timestamp, .string, .bytes, .reference,
      .geoPoint, .vector, .blob:
      break
    }
  }

  private static func checkDepth(
    _ depth: Int, _ place: @autoclosure () -> FieldNames
  ) throws(DatabaseError) {
    guard depth <= ValueCoding.maximumNesting else {
      throw DatabaseError(
        .invalidArgument,
        "maps and arrays may be nested \(ValueCoding.maximumNesting) deep; use a subcollection",
        field: WriteCompiler.describe(place()))
    }
  }
}
