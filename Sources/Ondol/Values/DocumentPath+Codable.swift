// Paths in Codable types: a text everywhere, except that a document stores a reference.

extension DocumentPath: Codable {
  /// Reads a text.
  ///
  /// - Throws: `DatabaseError` when the text is not a document's path.
  public init(from decoder: any Decoder) throws {
    try self.init(decoder.singleValueContainer().decode(String.self))
  }

  /// Writes a text; inside a document a reference is stored.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
