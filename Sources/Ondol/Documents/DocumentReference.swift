// The location of a document in a database. Making a reference reads nothing and cannot throw: the
// reference keeps the error of a wrong path, and the call that uses the reference throws it.

/// The location of a document in a database, whether the document exists or not.
///
/// Making a reference reads nothing and does not throw. When its path is wrong, the call that uses
/// it throws `.invalidArgument`. As a field's value it is stored as a reference, and
/// `QuerySource.lookup(_:in:as:)` follows it.
public struct DocumentReference: Sendable, Hashable {
  /// The database the document is in.
  public let database: Database
  let place: Result<DocumentPath, DatabaseError>

  /// The last segment of the path; empty when the path is wrong.
  public var documentID: String {
    if case .success(let path) = place { path.documentID } else { "" }
  }

  /// The path from the root, as in `users/alice/posts/p1`.
  public var path: String { place.writtenPath }

  /// The collection the document is in.
  public var parent: CollectionReference {
    CollectionReference(database: database, place: place.map(\.collection))
  }

  /// A collection below this document; `path` may continue through that collection's documents.
  ///
  /// - Parameter path: an odd number of segments with `/` between; see
  ///   `CollectionReference.document(_:)` for what a segment may be. Documents may be nested 100
  ///   deep.
  public func collection(_ path: String) -> CollectionReference {
    CollectionReference(database: database, place: place.appending(path))
  }
}

extension DocumentReference: CustomStringConvertible {
  /// The path.
  public var description: String { path }
}

extension DocumentReference: FieldConvertible {
  /// A reference to the document. Throws when the path is wrong.
  public func encodeField() throws(DatabaseError) -> FieldInput {
    FieldInput(.reference(try place.get()))
  }
}

extension DocumentReference: Codable, DirectlyCoded {
  /// Reads the path as a string, where no database is at hand.
  ///
  /// - Throws: always. A reference needs its database, which only a document's decoder knows.
  ///   Decode a `String` there, and make a reference with `Database.document(_:)`.
  public init(from decoder: any Decoder) throws {
    throw DecodingError.dataCorrupted(
      .init(
        codingPath: decoder.codingPath,
        debugDescription: "a DocumentReference can only be decoded from a document"))
  }

  /// Writes the path as a string. In a document it is stored as a reference.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(path)
  }

  static func decodeField(_ value: Value, in context: DecodingContext) -> DocumentReference? {
    guard let path = value.reference, let database = context.document?.database else { return nil }
    return DocumentReference(database: database, place: .success(path))
  }
}

extension Result where Success: PathSegments, Failure == DatabaseError {
  /// The path that the text spells, or the error in it.
  static func parsed(_ path: String) -> Self {
    Result { () throws(DatabaseError) in try Success(path) }
  }

  /// The path; when it is wrong, the text it was made from.
  var writtenPath: String {
    switch self {
    case .success(let path): "\(path)"
    case .failure(let error): error.path ?? ""
    }
  }

  /// A longer path: the segments of this one and those of `path`. If both have an error, the result
  /// has this one's.
  func appending<Longer: PathSegments>(_ path: String) -> Result<Longer, DatabaseError> {
    if case .success(let place) = self, place.segments.count < 2 * ResourceName.maximumDepth,
      ResourceName.isPlainID(path)
    {
      return .success(Longer(unchecked: place.segments + CollectionOfOne(path)))
    }
    return flatMap { place in
      do throws(DatabaseError) {
        return .success(try Longer(segments: place.segments + ResourceName.segments(of: path)))
      } catch {
        return .failure(error.at(path: "\(place)/\(path)"))
      }
    }
  }
}

/// What the paths of documents and collections have in common.
protocol PathSegments {
  var segments: [String] { get }
  /// Takes segments that are known to be valid names, of the right number.
  init(unchecked segments: [String])
  init(_ path: String) throws(DatabaseError)
  init(segments: [String]) throws(DatabaseError)
}

extension DocumentPath: PathSegments {}
extension CollectionPath: PathSegments {}
