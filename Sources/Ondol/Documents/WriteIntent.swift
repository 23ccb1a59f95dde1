// The meaning of a write, after compiling and before anything is read: the middle of the write
// path. A call (`setData`, `updateData`, …) becomes an intent, and WriteApplication makes the new
// document of an intent and the stored document. Keeping the two apart makes both pure, and makes
// the first comparable with the conformance cases that other implementations publish.

/// One write to one document.
struct WriteIntent: Sendable {
  /// What happens to the document's plain fields.
  enum Change: Sendable {
    /// The document becomes exactly `fields`.
    case replace(fields: [String: Value])
    /// The same, with fields that are encoded already.
    case put(EncodedRow)
    /// The places in `mask` get their values in `fields`; places that `fields` lacks are removed.
    /// No place in the mask is inside another.
    case patch(fields: [String: Value], mask: [FieldNames])
    /// The document is deleted.
    case delete
    /// The document stays unchanged, and the commit is refused when it changes meanwhile.
    case keep
  }

  var change: Change
  /// Applied after the change, in this order.
  var transforms: [FieldTransform] = []
  var precondition = Precondition.none
}

/// A change of one field that depends on what is stored, or on the commit itself.
struct FieldTransform: Sendable {
  var path: FieldNames
  var operation: FieldValue.Operation
}

/// What must hold for the stored document for a write to happen.
enum Precondition: Sendable, Hashable {
  case none
  case exists(Bool)
  /// The version zero means that the document does not exist.
  case version(Version)
  case updateTime(Timestamp)
  /// The document exists and has expired; otherwise the write is skipped.
  case isOver
  /// The document exists, has an earlier schema and can be upgraded; otherwise the write is
  /// skipped. An expired document is deleted.
  case isOutdated
  /// The document exists and meets a condition; otherwise the write is skipped.
  case meets(DocumentCondition)
  /// The document is a storage path, and its object meets the condition.
  case object(StorageCondition)
  /// The document is a storage path, which the commit removes when no document links to it.
  case isUnlinked
}

/// A condition on documents that a higher layer states. It is equal only to itself.
final class DocumentCondition: Sendable, Hashable {
  /// Whether the fields of the document at a path meet it.
  let isMet: @Sendable ([String: Value], DocumentPath) -> Bool

  init(_ isMet: @escaping @Sendable ([String: Value], DocumentPath) -> Bool) {
    self.isMet = isMet
  }

  static func == (left: DocumentCondition, right: DocumentCondition) -> Bool { left === right }
  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
