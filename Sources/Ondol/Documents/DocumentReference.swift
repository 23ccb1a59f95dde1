// Where a document is, in which database. Making a reference reads nothing and cannot throw: what
// is wrong with a path is kept and thrown by the call that uses the reference.

/// A document's place in a database, whether there is a document or not.
///
/// Making one reads nothing and does not throw; what is wrong with the path is thrown by the call
/// that uses it, as `.invalidArgument`. As the value of a field it is stored as a reference, and
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

  /// A collection below this document; `path` may lead on through its documents.
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
  /// Reads the path as a text, where no database is at hand.
  ///
  /// - Throws: always: a reference needs its database, which only a document's decoder knows.
  ///   Decode a `String` there, and make a reference with `Database.document(_:)`.
  public init(from decoder: any Decoder) throws {
    throw DecodingError.dataCorrupted(
      .init(
        codingPath: decoder.codingPath,
        debugDescription: "a DocumentReference can only be decoded from a document"))
  }

  /// Writes the path as a text; inside a document it is stored as a reference.
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
  /// The path that is written so, or what is wrong with it.
  static func parsed(_ path: String) -> Self {
    Result { () throws(DatabaseError) in try Success(path) }
  }

  /// The path; what was written when it is wrong.
  var writtenPath: String {
    switch self {
    case .success(let path): "\(path)"
    case .failure(let error): error.path ?? ""
    }
  }

  /// A longer path: this one's segments and those of `path`, an earlier problem first.
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
  /// Segments that are known to be names, of the right number.
  init(unchecked segments: [String])
  init(_ path: String) throws(DatabaseError)
  init(segments: [String]) throws(DatabaseError)
}

extension DocumentPath: PathSegments {}
extension CollectionPath: PathSegments {}
