// Schemas for histories: each version's result for a document follows from its number. Documents
// appear that some version cannot upgrade, values change that conditions and orders use, and names
// appear that no document had.

package import Ondol

package enum TrialSchema {
  /// A document that cannot be upgraded.
  package struct Obstacle: Error {}

  /// The field whose number says from which version on the document cannot be upgraded.
  package static let poison = "p"

  /// Converts the fields of a document of version `from` to those of `version`.
  package static func upgrade(
    _ fields: inout [String: Value], from: Int, to version: Int
  ) throws {
    guard from < version else { return }
    for step in from..<version {
      if fields[poison] == .integer(Int64(step)) { throw Obstacle() }
      if let number = fields["a"]?.integer { fields["a"] = .integer((3 * number + 1) % 5) }
      switch step % 3 {
      case 0: fields["b"] = fields["b"] == .string("p") ? .string("q") : .string("p")
      case 1: fields["step\(step)"] = .string("new")
      default: fields["t"] = .array([.integer(Int64(step % 4))])
      }
    }
  }

  /// Declares the version.
  package static func declare(
    _ version: Int, of collection: CollectionReference,
    progress: @escaping @Sendable (SchemaProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    try await collection.setSchema(version: version) { fields, from in
      try upgrade(&fields, from: from, to: version)
    } progress: {
      progress($0)
    }
  }
}
