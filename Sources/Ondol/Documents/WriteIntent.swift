// What a write means, after compiling and before anything was read: the middle of the write path. A
// call (`setData`, `updateData`, …) becomes an intent; an intent and the stored document become the
// new document in WriteApplication. Keeping the two apart makes both pure, and the first comparable
// with the conformance cases other implementations publish.

/// One write to one document.
struct WriteIntent: Sendable {
  /// What becomes of the document's plain fields.
  enum Change: Sendable {
    /// The document becomes exactly `fields`.
    case replace(fields: [String: Value])
    /// The same, where the fields are encoded already.
    case put(EncodedRow)
    /// The places in `mask` become what `fields` holds there; places `fields` lacks are removed. No
    /// place in the mask is inside another.
    case patch(fields: [String: Value], mask: [FieldNames])
    /// The document goes.
    case delete
    /// The document stays as it is, and the commit is refused when it changes meanwhile.
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

/// What must hold of the stored document for a write to happen.
enum Precondition: Sendable, Hashable {
  case none
  case exists(Bool)
  /// The version zero stands for a document that is not there.
  case version(Version)
  case updateTime(Timestamp)
  /// The document is there, and its time is over; otherwise the write is passed over.
  case isOver
  /// The document is there, has an earlier schema and can be upgraded; otherwise the write is
  /// passed over. One whose time is over goes.
  case isOutdated
  /// The document is there and meets a condition; otherwise the write is passed over.
  case meets(DocumentCondition)
  /// The document is a storage path, and its object is as the condition says.
  case object(StorageCondition)
  /// The document is a storage path, which goes with the commit when no document links it.
  case isUnlinked
}

/// A condition on documents that somebody above states. Equal to itself alone.
final class DocumentCondition: Sendable, Hashable {
  /// Whether the fields of the document at a path meet it.
  let isMet: @Sendable ([String: Value], DocumentPath) -> Bool

  init(_ isMet: @escaping @Sendable ([String: Value], DocumentPath) -> Bool) {
    self.isMet = isMet
  }

  static func == (left: DocumentCondition, right: DocumentCondition) -> Bool { left === right }
  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
