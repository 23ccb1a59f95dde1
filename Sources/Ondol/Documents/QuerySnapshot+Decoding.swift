// A query's documents as Codable values, where one document that does not fit must not hide the
// others: each is decoded for itself, and what does not fit is reported with its path, its field
// and what stands there.

/// Why one document could not be decoded.
public struct DecodingFailure: Error, Sendable, CustomStringConvertible {
  /// The document's path.
  public let path: String
  /// The field, as a field path; empty when the document as a whole does not fit.
  public let field: String
  /// What was wanted and what is stored, for a person.
  public let message: String

  /// The path and the message.
  public var description: String { "\(path): \(message)" }

  init(_ error: any Error, in document: DocumentReference) {
    path = document.path
    guard let error = error as? DecodingError else {
      field = (error as? DatabaseError)?.field ?? ""
      message = "\(error)"
      return
    }
    switch error {
    case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
      field = dotted(context.codingPath)
      message = context.debugDescription
    case .keyNotFound(let key, let context):
      field = dotted(context.codingPath + [key])
      message = context.debugDescription
    @unknown default:
      field = ""
      message = "\(error)"
    }
  }
}

/// A query's documents, decoded one by one.
public struct DecodedDocuments<Content> {
  /// For each document, in the query's order, what it holds or why it does not fit.
  public let results: [Result<Content, DecodingFailure>]

  /// What fits, in the query's order.
  public var values: [Content] { results.compactMap { try? $0.get() } }

  /// What does not.
  public var failures: [DecodingFailure] {
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
    DecodedDocuments(
      results: documents.map { document in
        do {
          return .success(try document.data(as: type, decoder: decoder))
        } catch {
          return .failure(DecodingFailure(error, in: document.reference))
        }
      })
  }

  /// Every document as a `Decodable` type, or an error for the first that does not fit.
  ///
  /// - Throws: `DecodingFailure`.
  public func data<Content: Decodable>(
    as type: Content.Type, decoder: DocumentDecoder = DocumentDecoder()
  ) throws(DecodingFailure) -> [Content] {
    var values: [Content] = []
    values.reserveCapacity(documents.count)
    for document in documents {
      do {
        values.append(try document.data(as: type, decoder: decoder))
      } catch {
        throw DecodingFailure(error, in: document.reference)
      }
    }
    return values
  }
}
