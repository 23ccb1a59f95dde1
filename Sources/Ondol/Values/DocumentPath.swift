// The location of a document or a collection: segments that alternate between collections and
// documents. They are checked when they are made, and compared by UTF-8, never by Unicode
// equivalence, because the bytes are the key on disk.

internal import OndolEngine

/// The path of a document: an even number of segments, as in `users/alice/posts/p1`.
///
/// The form in which fields hold references: a value without a database. `Database.document(_:)`
/// makes a reference from it. Compared by the UTF-8 of its segments, without normalisation.
public struct DocumentPath: Sendable, Hashable {
  /// Collection, document, collection, document…
  public let segments: [String]

  /// Segments that are known to be valid names, an even number of them.
  package init(unchecked segments: [String]) {
    self.segments = segments
  }

  /// Reads a path. One leading and one trailing "/" are allowed.
  ///
  /// - Throws: `.invalidArgument` when it is empty, contains "//", has an odd number of segments,
  ///   is more than 100 documents deep, or a segment is not a valid name: over 1,500 bytes, ".",
  ///   "..", or of the form `__…__`.
  public init(_ path: String) throws(DatabaseError) {
    try self.init(segments: ResourceName.segments(of: path))
  }

  /// A path of `segments`, each taken literally.
  ///
  /// - Throws: `.invalidArgument` as `init(_:)` does, and when a segment contains "/".
  public init(segments: [String]) throws(DatabaseError) {
    guard !segments.isEmpty, segments.count.isMultiple(of: 2) else {
      let path = segments.joined(separator: "/")
      throw DatabaseError(
        .invalidArgument,
        "\"\(path)\" has \(counted(segments)), and a document's path must have an even"
          + " number of segments; append a document's id or leave the last segment out",
        path: path)
    }
    try ResourceName.check(segments)
    self.segments = segments
  }

  /// The last segment.
  public var documentID: String { segments[segments.count - 1] }

  /// The collection that the document is in.
  public var collection: CollectionPath { CollectionPath(unchecked: Array(segments.dropLast())) }

  /// The path of a collection below this document.
  ///
  /// - Throws: `.invalidArgument` when `id` cannot name a collection.
  public func collection(_ id: String) throws(DatabaseError) -> CollectionPath {
    try CollectionPath(segments: segments + [id])
  }

  /// Whether the UTF-8 of all segments is the same.
  public static func == (left: DocumentPath, right: DocumentPath) -> Bool {
    ValueOrder.compareSegments(left.segments, right.segments) == 0
  }

  /// Hashes the UTF-8 of all segments.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(segments: segments)
  }
}

/// The path of a collection: an odd number of segments, as in `users/alice/posts`.
public struct CollectionPath: Sendable, Hashable {
  /// Collection, document, collection…
  public let segments: [String]

  /// Segments that are known to be valid names, an odd number of them.
  package init(unchecked segments: [String]) {
    self.segments = segments
  }

  /// Reads a path. One leading and one trailing "/" are allowed.
  ///
  /// - Throws: `.invalidArgument` as `DocumentPath.init(_:)` does, here when the number of segments
  ///   is even.
  public init(_ path: String) throws(DatabaseError) {
    try self.init(segments: ResourceName.segments(of: path))
  }

  /// A path of `segments`, each taken literally.
  ///
  /// - Throws: `.invalidArgument` as `init(_:)` does, and when a segment contains "/".
  public init(segments: [String]) throws(DatabaseError) {
    guard !segments.count.isMultiple(of: 2) else {
      let path = segments.joined(separator: "/")
      throw DatabaseError(
        .invalidArgument,
        "\"\(path)\" has \(counted(segments)), and a collection's path must have an odd"
          + " number of segments; append a collection's name or leave the last segment out",
        path: path)
    }
    try ResourceName.check(segments)
    self.segments = segments
  }

  /// The last segment.
  public var collectionID: String { segments[segments.count - 1] }

  /// The document that the collection is below; nil at the top.
  public var parent: DocumentPath? {
    segments.count > 1 ? DocumentPath(unchecked: Array(segments.dropLast())) : nil
  }

  /// The path of a document in this collection.
  ///
  /// - Throws: `.invalidArgument` when `id` cannot name a document.
  public func document(_ id: String) throws(DatabaseError) -> DocumentPath {
    try DocumentPath(segments: segments + [id])
  }

  /// Whether the UTF-8 of all segments is the same.
  public static func == (left: CollectionPath, right: CollectionPath) -> Bool {
    ValueOrder.compareSegments(left.segments, right.segments) == 0
  }

  /// Hashes the UTF-8 of all segments.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(segments: segments)
  }
}

extension DocumentPath: Comparable, CustomStringConvertible {
  /// Segment by segment in the order of their UTF-8, then the shorter first.
  public static func < (left: DocumentPath, right: DocumentPath) -> Bool {
    ValueOrder.compareSegments(left.segments, right.segments) < 0
  }

  /// The segments with "/" between them.
  public var description: String { segments.joined(separator: "/") }
}

extension CollectionPath: Comparable, CustomStringConvertible {
  /// Segment by segment in the order of their UTF-8, then the shorter first.
  public static func < (left: CollectionPath, right: CollectionPath) -> Bool {
    ValueOrder.compareSegments(left.segments, right.segments) < 0
  }

  /// The segments with "/" between them.
  public var description: String { segments.joined(separator: "/") }
}

/// The number of segments, in words for a message.
private func counted(_ segments: [String]) -> String {
  "\(segments.count) segment\(segments.count == 1 ? "" : "s")"
}

extension Hasher {
  /// Hashes the bytes of each segment.
  mutating func combine(segments: [String]) {
    combine(segments.count)
    for segment in segments {
      combine(utf8: segment)
    }
  }
}
