// A document as it was at one moment: the last step of the read path, and what writes give back
// when they are asked to.

/// The commit that made a state of a document. Later commits have higher versions, and no two
/// documents' writes share one unless they were written together. What CloudKit calls a change tag;
/// Firestore's clients have nothing like it.
public struct Version: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
  /// The commit's number.
  public let rawValue: UInt64

  /// A version read back from where an app kept it.
  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The version of a document that is not there: `ifVersion: .missing` writes only while there is
  /// none.
  public static let missing = Version(rawValue: 0)

  /// The earlier commit first.
  public static func < (left: Version, right: Version) -> Bool { left.rawValue < right.rawValue }

  /// The commit's number.
  public var description: String { "\(rawValue)" }
}

/// What is stored beside a document's fields.
struct DocumentStamps: Sendable, Hashable {
  var version: Version
  var updateTime: Timestamp
  var createTime: Timestamp

  /// Of a document of which nothing but its place was asked for.
  static let unread = DocumentStamps(
    version: .missing, updateTime: .pending, createTime: .pending)
}

/// A document, or its absence, as it was when it was read. It does not change afterwards.
///
/// ```swift
/// let snapshot = try await items.document("lamp").getDocument()
/// let name = snapshot["name"] as String? ?? ""
/// let height = snapshot.get("size.height") as Int?
/// let item = try snapshot.data(as: Item.self)
/// ```
///
/// Unlike in Firestore nothing in it is pending; its `metadata` says whether a server was away.
public struct DocumentSnapshot: Sendable {
  /// Where the document is.
  public let reference: DocumentReference
  /// What happened to the document since the snapshot before, in those of
  /// `DocumentReference.snapshots`: added when it is there and was not, removed when it was there
  /// and is not, modified when it is another. The first one has it as added, as in a query's first
  /// result. Nil where there was nothing before and is nothing, and in snapshots that were read in
  /// other ways.
  public private(set) var change: DocumentChange.Kind?
  /// What is known of it beside its content, for a listener.
  public private(set) var metadata = SnapshotMetadata(isStale: false)
  /// Nil when there is no document.
  let contents: Contents?

  init(reference: DocumentReference, contents: Contents?) {
    self.reference = reference
    self.contents = contents
  }

  /// The snapshot with what happened since the one before.
  func changed(from before: DocumentSnapshot?, isStale: Bool) -> DocumentSnapshot {
    var copy = self
    copy.metadata = SnapshotMetadata(isStale: isStale)
    // Nothing has happened but to the server.
    if let before, before.metadata.isStale != isStale, showsSame(as: before) { return copy }
    copy.change =
      switch (before?.exists ?? false, exists) {
      case (false, true): .added
      case (true, true): .modified
      case (true, false): .removed
      case (false, false): nil
      }
    return copy
  }

  /// Whether there is a document.
  public var exists: Bool { contents != nil }

  /// The document's id.
  public var documentID: String { reference.documentID }

  /// The commit that made this state; `.missing` when there is no document.
  public var version: Version { contents?.stamps.version ?? .missing }

  /// The moment of that commit, in whole microseconds; nil when there is no document, or when the
  /// query asked for ids only. A write that changed nothing leaves it.
  public var updateTime: Timestamp? { readStamps?.updateTime }

  /// The moment the document was created; nil when there is none, or when the query asked for ids
  /// only. One that was deleted and made again was created then.
  public var createTime: Timestamp? { readStamps?.createTime }

  /// Nil when a query asked for no field, so that the document itself was not read.
  private var readStamps: DocumentStamps? {
    contents.flatMap { $0.stamps.version == .missing ? nil : $0.stamps }
  }

  /// All fields; none when there is no document, where Firestore's is nil.
  ///
  /// - Complexity: O(size of the document) at the first call.
  public func data() -> [String: Value] { contents?.fields ?? [:] }

  /// The value of a field, which may be one inside maps; nil when it is missing or the path is
  /// wrong.
  ///
  /// - Parameter field: a field, a path into maps, or `FieldPath.documentID()`.
  public func get(_ field: FieldPath) -> Value? {
    guard let contents, case .names(let names) = field.form else {
      return field.isDocumentID ? .string(documentID) : nil
    }
    return contents.value(at: names)
  }

  /// The value of a field as a Swift type; nil when it is missing or of another type. Write
  /// `as Int?`, where Firestore's code has `as? Int`. A number is read as any type that its value
  /// fits: 3.0 as the `Int` 3.
  ///
  /// - Parameter field: a field, a path into maps, or `FieldPath.documentID()`.
  public func get<Field: FieldReadable>(_ field: FieldPath) -> Field? {
    let value: Value? = get(field)
    return value.flatMap { Field(fieldValue: $0) }
  }

  /// The value of a field, which may be one inside maps; nil when it is missing.
  public subscript(field: FieldPath) -> Value? { self.get(field) }

  /// The value of a field as a Swift type; nil when it is missing or of another type.
  public subscript<Field: FieldReadable>(field: FieldPath) -> Field? { self.get(field) }

  /// The document as a `Decodable` type.
  ///
  /// - Parameters:
  ///   - type: what the fields are to fit. One that is optional gives nil where there is no
  ///     document.
  ///   - decoder: how names and dates were stored, and defaults for fields that are missing.
  /// - Throws: `.notFound` when there is no document, unless `type` is optional;
  ///   `.failedPrecondition` when it does not fit, with the document's path, the field and what
  ///   stands there. What the type's decoding threw, a `DecodingError` for one, is in
  ///   `underlyingError`.
  /// - Complexity: O(size of the fields `type` asks for).
  public func data<Content: Decodable>(
    as type: Content.Type, decoder: DocumentDecoder = DocumentDecoder()
  ) throws(DatabaseError) -> Content {
    try data(as: type, decoder: decoder, nil)
  }

  /// - Parameter hints: of the documents decoded before, where this is one of many.
  func data<Content: Decodable>(
    as type: Content.Type, decoder: DocumentDecoder, _ hints: DecodingHints?
  ) throws(DatabaseError) -> Content {
    guard contents != nil || type is any ExpressibleByNilLiteral.Type else {
      throw DatabaseError(
        .notFound, "there is no document to decode as \(type)", path: reference.path)
    }
    do {
      return try decoder.decode(
        type, from: contents?.source ?? .value(.null), of: reference, hints)
    } catch {
      throw DatabaseError(decoding: error, in: reference)
    }
  }
}

extension DocumentSnapshot: Hashable {
  /// Whether both are the same document in the same state.
  public static func == (left: DocumentSnapshot, right: DocumentSnapshot) -> Bool {
    left.reference == right.reference && left.contents == right.contents
  }

  /// Feeds the place and the version.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(reference)
    hasher.combine(version)
  }
}

extension DocumentSnapshot: Identifiable {
  /// The document's path.
  public var id: String { reference.path }
}

extension DocumentSnapshot: CustomStringConvertible {
  /// The path and the fields.
  public var description: String {
    exists ? "\(reference) \(Value.map(data()))" : "\(reference) (no document)"
  }
}
