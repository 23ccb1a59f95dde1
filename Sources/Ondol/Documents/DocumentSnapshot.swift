// A document as it was at one moment: the last step of the read path, and what writes return on
// request.

/// The commit that made a state of a document. Later commits have higher versions, and two
/// documents have the same version only when one commit wrote both. CloudKit calls this a change
/// tag; Firestore's clients have no equivalent.
public struct Version: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
  /// The commit's number.
  public let rawValue: UInt64

  /// Makes a version of a value that the app has stored.
  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The version of a document that does not exist: `ifVersion: .missing` writes only while there
  /// is no document.
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

  /// The stamps of a document that was read only for its location.
  static let unread = DocumentStamps(
    version: .missing, updateTime: .pending, createTime: .pending)
}

/// A document, or its absence, as it was when it was read. A snapshot never changes.
///
/// ```swift
/// let snapshot = try await items.document("lamp").getDocument()
/// let name = snapshot["name"] as String? ?? ""
/// let height = snapshot.get("size.height") as Int?
/// let item = try snapshot.data(as: Item.self)
/// ```
///
/// Its `metadata` says whether a server could not be reached, and in a synchronised database
/// whether the server has everything that it shows.
public struct DocumentSnapshot: Sendable {
  /// Where the document is.
  public let reference: DocumentReference
  /// What happened to the document since the previous snapshot, in a sequence from
  /// `DocumentReference.snapshots`: added when the document exists now and did not before, removed
  /// when it existed and does not now, modified when it has changed. The first snapshot reports an
  /// existing document as added, like a query's first result. Nil when the document existed neither
  /// before nor now, and in snapshots that were read in other ways.
  public private(set) var change: DocumentChange.Kind?
  /// Information about the snapshot itself.
  public private(set) var metadata = SnapshotMetadata(isStale: false)
  /// Who made the last change that it shows.
  private(set) var origin = ChangeOrigin.local
  /// Nil when there is no document.
  let contents: Contents?

  init(reference: DocumentReference, contents: Contents?) {
    self.reference = reference
    self.contents = contents
  }

  /// This snapshot with what happened since the previous one.
  func changed(
    from before: DocumentSnapshot?, isStale: Bool, isComplete: Bool
  ) -> DocumentSnapshot {
    var copy = self
    copy.metadata = SnapshotMetadata(
      isStale: isStale, hasPendingWrites: metadata.hasPendingWrites, isComplete: isComplete)
    // Only the metadata has changed.
    if let before, before.metadata != copy.metadata, showsSame(as: before) { return copy }
    copy.change =
      switch (before?.exists ?? false, exists) {
      case (false, true): .added
      case (true, true): .modified
      case (true, false): .removed
      case (false, false): nil
      }
    return copy
  }

  /// This snapshot with what synchronisation knows of it.
  func marked(
    hasPendingWrites: Bool, isComplete: Bool = true, _ origin: ChangeOrigin
  ) -> DocumentSnapshot {
    var copy = self
    copy.metadata = SnapshotMetadata(
      isStale: metadata.isStale, hasPendingWrites: hasPendingWrites, isComplete: isComplete)
    copy.origin = origin
    return copy
  }

  /// This snapshot with the marks of another one of the same document.
  func marked(as other: DocumentSnapshot) -> DocumentSnapshot {
    var copy = self
    copy.metadata = other.metadata
    copy.origin = other.origin
    return copy
  }

  /// Whether there is a document.
  public var exists: Bool { contents != nil }

  /// The document's id.
  public var documentID: String { reference.documentID }

  /// The commit that made this state; `.missing` when there is no document.
  public var version: Version { contents?.stamps.version ?? .missing }

  /// The time of that commit, in whole microseconds; nil when there is no document, or when the
  /// query asked for ids only. A write that changes nothing keeps it.
  public var updateTime: Timestamp? { readStamps?.updateTime }

  /// The time at which the document was created; nil when there is none, or when the query asked
  /// for ids only. Deleting a document and creating it again sets a new time.
  public var createTime: Timestamp? { readStamps?.createTime }

  /// Nil when a query asked for no fields, so that the document itself was not read.
  private var readStamps: DocumentStamps? {
    contents.flatMap { $0.stamps.version == .missing ? nil : $0.stamps }
  }

  /// All fields; empty when there is no document, where Firestore returns nil.
  ///
  /// - Complexity: O(size of the document) at the first call.
  public func data() -> [String: Value] { contents?.fields ?? [:] }

  /// The value of a field, which may be inside maps; nil when the field is missing or the path is
  /// wrong.
  ///
  /// - Parameter field: a field, a path into maps, or `FieldPath.documentID()`.
  public func get(_ field: FieldPath) -> Value? {
    guard let contents, case .names(let names) = field.form else {
      return field.isDocumentID ? .string(documentID) : nil
    }
    return contents.value(at: names)
  }

  /// The value of a field as a Swift type; nil when the field is missing or has another type. Write
  /// `as Int?` where code for Firestore has `as? Int`. A number can be read as any type that its
  /// value fits: 3.0 as the `Int` 3.
  ///
  /// - Parameter field: a field, a path into maps, or `FieldPath.documentID()`.
  public func get<Field: FieldReadable>(_ field: FieldPath) -> Field? {
    let value: Value? = get(field)
    return value.flatMap { Field(fieldValue: $0) }
  }

  /// The value of a field, which may be inside maps; nil when the field is missing.
  public subscript(field: FieldPath) -> Value? { self.get(field) }

  /// The value of a field as a Swift type; nil when the field is missing or has another type.
  public subscript<Field: FieldReadable>(field: FieldPath) -> Field? { self.get(field) }

  /// The document as a `Decodable` type.
  ///
  /// - Parameters:
  ///   - type: the type to decode. An optional type gives nil when there is no document.
  ///   - decoder: how names and dates were stored, and defaults for fields that are missing.
  /// - Throws: `.notFound` when there is no document, unless `type` is optional;
  ///   `.failedPrecondition` when the document does not fit the type, with the document's path, the
  ///   field and its value. The error that the type's decoding threw, such as a `DecodingError`, is
  ///   in `underlyingError`.
  /// - Complexity: O(size of the fields `type` asks for).
  public func data<Content: Decodable>(
    as type: Content.Type, decoder: DocumentDecoder = DocumentDecoder()
  ) throws(DatabaseError) -> Content {
    try data(as: type, decoder: decoder, nil)
  }

  /// - Parameter hints: from the documents decoded before, when this is one of many.
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

  /// Hashes the location and the version.
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
