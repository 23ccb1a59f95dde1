// Wrappers for properties that are more than a field: the document's own id, the time of the
// commit, a nil that is stored, all other fields. All of them also work with other coders, such as
// JSON's, where there is no document: an id is a plain value there, and a time is its date.

public import OndolFoundation

/// A type that can represent the document it was read from.
public protocol DocumentIDConvertible: Codable, Sendable {
  /// The value that represents the document.
  static func make(from document: DocumentReference) -> Self
}

extension String: DocumentIDConvertible {
  /// The document's id.
  public static func make(from document: DocumentReference) -> String { document.documentID }
}

extension DocumentReference: DocumentIDConvertible {
  /// The reference itself.
  public static func make(from document: DocumentReference) -> DocumentReference { document }
}

/// A property that is left out when a document is written.
protocol OmittedFromDocuments {}

/// The id of the document that a value was read from; not stored as a field.
///
/// ```swift
/// struct User: Codable { @DocumentID var id: String?; var name: String }
/// ```
///
/// Reading a document that has a field of the same name throws. With other coders, such as
/// `JSONEncoder`, it is an ordinary optional.
@propertyWrapper
public struct DocumentID<ID: DocumentIDConvertible>: Codable, Sendable, OmittedFromDocuments {
  /// The id; nil when the value was not read from a document.
  public var wrappedValue: ID?

  /// Holds an id.
  public init(wrappedValue: ID?) {
    self.wrappedValue = wrappedValue
  }

  /// Takes the id from the document, or from another coder in the form in which it was written
  /// there.
  ///
  /// - Throws: `DecodingError` when the document has a field of that name, as in Firestore.
  public init(from decoder: any Decoder) throws {
    if let probe = decoder as? ProbeDecoder {
      wrappedValue = probe.documentID(ID.self)
      return
    }
    guard let decoder = decoder as? FieldDecoder else {
      let container = try decoder.singleValueContainer()
      wrappedValue = container.decodeNil() ? nil : try container.decode(ID.self)
      return
    }
    guard decoder.source.isNull else {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: decoder.codingPath,
          debugDescription: "Field '\(dotted(decoder.codingPath))' is stored in the document, and"
            + " is to be its id at the same time; rename one of them"))
    }
    wrappedValue = decoder.context.document.map { ID.make(from: $0) }
  }

  /// Writes the id, for other coders than a document's.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encodeOptional(wrappedValue)
  }
}

extension DocumentID: Equatable where ID: Equatable {}
extension DocumentID: Hashable where ID: Hashable {}

/// A type that can hold the time of a commit.
public protocol ServerTimestampConvertible: Codable, Sendable {
  /// Returns nil when the type cannot hold the time.
  init?(fieldValue: Value)
  /// The value to store.
  func encodeField() throws(DatabaseError) -> FieldInput
}

extension Date: ServerTimestampConvertible {}
extension Timestamp: ServerTimestampConvertible {}

/// A time that becomes the commit's when it is nil: `FieldValue.serverTimestamp()` for Codable
/// types.
///
/// ```swift
/// struct Note: Codable { var text: String; @ServerTimestamp var changed: Date? }
/// ```
///
/// With other coders it is an ordinary optional.
@propertyWrapper
public struct ServerTimestamp<Moment: ServerTimestampConvertible>: Codable, Sendable {
  /// The time; nil requests that of the commit.
  public var wrappedValue: Moment?

  /// Holds a time.
  public init(wrappedValue: Moment?) {
    self.wrappedValue = wrappedValue
  }

  /// Reads a time, or nil.
  ///
  /// - Throws: `DecodingError` for another type.
  public init(from decoder: any Decoder) throws {
    wrappedValue = try decoder.decodeOptional(Moment.self)
  }

  /// Writes the time, for other coders than a document's.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encodeOptional(wrappedValue)
  }
}

extension ServerTimestamp: Equatable where Moment: Equatable {}
extension ServerTimestamp: Hashable where Moment: Hashable {}

extension ServerTimestamp: DirectlyCoded {
  /// The time, or the instruction to store the commit's.
  ///
  /// - Throws: `.invalidArgument` outside the years 1 to 9999.
  public func encodeField() throws(DatabaseError) -> FieldInput {
    guard let wrappedValue else { return try FieldValue.serverTimestamp().encodeField() }
    return try wrappedValue.encodeField()
  }

  static func decodeField(_ value: Value, in context: DecodingContext) -> ServerTimestamp? {
    if value.isNull { return ServerTimestamp(wrappedValue: nil) }
    return Moment(fieldValue: value).map { ServerTimestamp(wrappedValue: $0) }
  }
}

/// An optional that is stored as null when it is nil, instead of being left out. So a query can ask
/// for it, and a merge replaces the previous value.
@propertyWrapper
public struct ExplicitNull<Content: Codable>: Codable {
  /// The value.
  public var wrappedValue: Content?

  /// Holds a value.
  public init(wrappedValue: Content?) {
    self.wrappedValue = wrappedValue
  }

  /// Reads a value, or nil.
  ///
  /// - Throws: `DecodingError` for another type.
  public init(from decoder: any Decoder) throws {
    wrappedValue = try decoder.decodeOptional(Content.self)
  }

  /// Writes the value, or null.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encodeOptional(wrappedValue)
  }
}

extension ExplicitNull: Sendable where Content: Sendable {}
extension ExplicitNull: Equatable where Content: Equatable {}
extension ExplicitNull: Hashable where Content: Hashable {}

extension Decoder {
  /// The value, or nil for null.
  fileprivate func decodeOptional<Content: Decodable>(_ type: Content.Type) throws -> Content? {
    let container = try singleValueContainer()
    return container.decodeNil() ? nil : try container.decode(type)
  }
}

extension Encoder {
  /// Writes the value, or null for nil.
  fileprivate func encodeOptional(_ value: (some Encodable)?) throws {
    var container = singleValueContainer()
    if let value { try container.encode(value) } else { try container.encodeNil() }
  }
}

/// The fields of a document that its type has no other properties for, so that they are not lost
/// when the document is read, changed and written again.
///
/// ```swift
/// struct Item: Codable { var name: String; @OtherFields var others: [String: Value] }
/// ```
///
/// The fields are in the document beside the others, not in a map of their own. With other coders,
/// such as `JSONEncoder`, it is an ordinary dictionary.
@propertyWrapper
public struct OtherFields: Codable, Sendable, Hashable, OmittedFromDocuments {
  /// The fields, by their names in the document.
  public var wrappedValue: [String: Value]

  /// Holds fields. A field that another property is stored in is not written.
  public init(wrappedValue: [String: Value] = [:]) {
    self.wrappedValue = wrappedValue
  }

  /// Takes the fields without a key in the type, or with another coder the dictionary that was
  /// written there.
  ///
  /// - Throws: `DecodingError` when the document has a field of the property's own name.
  public init(from decoder: any Decoder) throws {
    guard let decoder = decoder as? FieldDecoder else {
      let container = try decoder.singleValueContainer()
      wrappedValue = container.decodeNil() ? [:] : try container.decode([String: Value].self)
      return
    }
    guard decoder.source.isNull else {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: decoder.codingPath,
          debugDescription: "Field '\(dotted(decoder.codingPath))' is stored in the document, and"
            + " stands for all others at the same time; rename one of them"))
    }
    wrappedValue = decoder.otherFields?() ?? [:]
  }

  /// Writes the dictionary, for other coders than a document's.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(wrappedValue)
  }
}

// MARK: - Missing fields

extension KeyedDecodingContainer {
  /// Decodes a document's id, for which there is no field.
  ///
  /// - Throws: `DecodingError` when there is one.
  public func decode<ID>(_ type: DocumentID<ID>.Type, forKey key: Key) throws -> DocumentID<ID> {
    try DocumentID(from: try superDecoder(forKey: key))
  }

  /// Decodes the fields that the type has no other keys for.
  ///
  /// - Throws: `DecodingError` when there is a field of the key's name.
  public func decode(_ type: OtherFields.Type, forKey key: Key) throws -> OtherFields {
    try OtherFields(from: try superDecoder(forKey: key))
  }

  /// Decodes a time; nil when the field is missing.
  ///
  /// - Throws: `DecodingError` for another type.
  public func decode<Moment>(
    _ type: ServerTimestamp<Moment>.Type, forKey key: Key
  ) throws -> ServerTimestamp<Moment> {
    try decodeIfPresent(type, forKey: key) ?? ServerTimestamp(wrappedValue: nil)
  }

  /// Decodes a value; nil when the field is missing.
  ///
  /// - Throws: `DecodingError` for another type.
  public func decode<Content>(
    _ type: ExplicitNull<Content>.Type, forKey key: Key
  ) throws -> ExplicitNull<Content> {
    try decodeIfPresent(type, forKey: key) ?? ExplicitNull(wrappedValue: nil)
  }
}
