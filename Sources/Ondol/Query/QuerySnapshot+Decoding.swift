// A query's documents as Codable values. One document that does not fit must not hide the others,
// so each is decoded separately. A document that does not fit is reported with its path, its field
// and the value there.

extension DatabaseError {
  /// Why a document could not be decoded, from any error that its type's decoding threw.
  init(decoding error: any Error, in document: DocumentReference) {
    if let error = error as? DatabaseError {
      self = error.at(path: document.path)
      return
    }
    let (field, reason): (String?, String) =
      switch error as? DecodingError {
      case .typeMismatch(_, let context), .valueNotFound(_, let context),
        .dataCorrupted(let context):
        (dotted(context.codingPath), context.debugDescription)
      case .keyNotFound(let key, let context):
        (dotted(context.codingPath + [key]), context.debugDescription)
      default: (nil, "the document cannot be decoded: \(error)")
      }
    self.init(
      .failedPrecondition, reason, path: document.path, field: field == "" ? nil : field)
    cause = Cause(error: error)
  }
}

/// A query's documents, decoded one by one.
public struct DecodedDocuments<Content> {
  /// For each document, in the query's order, its value or why it does not fit.
  public let results: [Result<Content, DatabaseError>]

  /// The values that fit, in the query's order.
  public var values: [Content] { results.compactMap { try? $0.get() } }

  /// The errors of the documents that do not fit.
  public var failures: [DatabaseError] {
    results.compactMap { if case .failure(let failure) = $0 { failure } else { nil } }
  }
}

extension DecodedDocuments: Sendable where Content: Sendable {}

extension QuerySnapshot {
  /// Every document as a `Decodable` type. A document that does not fit is reported and hides no
  /// other.
  ///
  /// - Complexity: O(size of the fields `type` asks for).
  public func decode<Content: Decodable>(
    as type: Content.Type, decoder: DocumentDecoder = DocumentDecoder()
  ) -> DecodedDocuments<Content> {
    let hints = DecodingHints()
    return DecodedDocuments(
      results: documents.map { document in
        Result { () throws(DatabaseError) in
          try document.data(as: type, decoder: decoder, hints)
        }
      })
  }

  /// Every document as a `Decodable` type, or an error for the first one that does not fit.
  ///
  /// - Throws: as `DocumentSnapshot.data(as:decoder:)`.
  public func data<Content: Decodable>(
    as type: Content.Type, decoder: DocumentDecoder = DocumentDecoder()
  ) throws(DatabaseError) -> [Content] {
    var values: [Content] = []
    values.reserveCapacity(documents.count)
    let hints = DecodingHints()
    for document in documents {
      values.append(try document.data(as: type, decoder: decoder, hints))
    }
    return values
  }
}
