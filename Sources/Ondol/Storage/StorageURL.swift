// URLs of objects. They name the database and the path, so they are stable: they lead to the object
// currently at the path, and stay the same after a restart or on a copy of the database.
//
//   ondol://<identity of the database, 32 hexadecimal digits>/<path, percent-encoded>
//
// For a content that is a file of its own, the URL is that file's, with the same text as its
// fragment.

internal import OndolEngine
public import OndolFoundation

extension StorageReference {
  private static let scheme = "ondol"

  /// A URL of the object here. `Storage.reference(for:)` converts it back, as long as this database
  /// exists.
  ///
  /// When the content is a file of its own, as large ones are, the URL is the file's (`isFileURL`),
  /// for code that takes files: players, image views, other processes. Do not change that file. It
  /// is the object's as of now, and stays as long as the content has a holder. When another object
  /// is put here, call this again. Otherwise the URL is one that only Ondol can read.
  ///
  /// - Throws: `.notFound` when there is no object; `.failedPrecondition` when the file would be
  ///   encrypted. In that case, use `bytes(in:)` or `write(toFile:)`.
  /// - Complexity: two lookups.
  public func downloadURL() async throws(DatabaseError) -> URL {
    let metadata = try await getMetadata()
    let place = Self.place(of: fullPath, in: database)
    let reader: ContentReader? =
      if let digest = metadata.sha256 {
        try await database.contents.reader(of: digest)
      } else { nil }
    if reader?.isSealedFile == true {
      throw DatabaseError(
        .failedPrecondition, "the object's file is encrypted, and no URL leads to its bytes",
        suggestion: "read them with bytes(in:), or have them in a file by write(toFile:)",
        path: fullPath)
    }
    if let file = reader?.filePath {
      let url = URL(filePath: file)
      if let url = URL(string: "\(url.absoluteString)#\(Self.scheme)/\(place)") { return url }
    }
    guard let url = URL(string: "\(Self.scheme)://\(place)") else {
      throw DatabaseError(.internal, "the path has no URL", path: fullPath)
    }
    return url
  }

  private static func place(of path: String, in database: Database) -> String {
    let path = PercentCoding.encoded(path) { _, byte in ".~/".utf8.contains(byte) }
    return "\(database.identity)/\(path)"
  }

  /// The reference in the part of a URL after the scheme; nil when it is another database's.
  fileprivate static func reference(
    for place: Substring, in database: Database
  ) -> StorageReference? {
    let prefix = database.identity + "/"
    guard place.hasPrefix(prefix),
      let path = PercentCoding.decoded(place.dropFirst(prefix.count))
    else { return nil }
    return database.storage.reference(withPath: path)
  }

  fileprivate static func reference(
    forText text: String, in database: Database
  ) -> StorageReference? {
    for mark in ["\(scheme)://", "#\(scheme)/"] {
      if let range = text.firstRange(of: mark) {
        return reference(for: text[range.upperBound...], in: database)
      }
    }
    return nil
  }
}

extension Storage {
  /// The location that a URL of `StorageReference.downloadURL()` names.
  ///
  /// - Parameter url: a URL that `downloadURL()` returned, in this opening of the database or in
  ///   another one.
  /// - Throws: `.invalidArgument` when the URL is of another database, or not of an object.
  public func reference(for url: URL) throws(DatabaseError) -> StorageReference {
    let text = url.absoluteString
    guard let reference = StorageReference.reference(forText: text, in: database) else {
      throw DatabaseError(
        .invalidArgument, "\(text) names no object of this database; use a URL from downloadURL()")
    }
    return reference
  }
}
