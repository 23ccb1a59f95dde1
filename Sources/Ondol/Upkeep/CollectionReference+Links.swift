// The public interface of links: fields whose texts are storage paths that documents keep.

internal import OndolEngine

extension CollectionReference {
  /// Makes the texts in a field storage paths that the documents keep alive. From then on
  ///
  /// - a write that names a path without an object throws `.failedPrecondition`: put the object
  ///   first, or in the same transaction;
  /// - an object that a document links cannot be deleted or moved away; overwriting it is allowed;
  /// - the commit that removes an object's last link removes the object: an update, a delete, a
  ///   recursive delete, the document's expiry, or a transaction. An object that this commit puts
  ///   again stays. `drop()` of a collection at the top removes its objects before it returns.
  ///
  /// This checks the existing documents before it returns, while others can be written as usual.
  /// The link is stored with the database, and applies to this collection and those with the same
  /// names below other documents. Does nothing when the link exists.
  ///
  ///     try await items.linkBlobs(field: "imagePath", under: "images/")
  ///     try await albums.linkBlobs(field: "photos[].file")
  ///
  /// - Parameters:
  ///   - field: the field with a path or an array of paths; `[]` after a name means each element of
  ///     an array there.
  ///   - folder: texts that are not paths below it are ignored; when it is empty, all are paths.
  ///   - progress: called each time some documents were checked.
  /// - Throws: `.invalidArgument` for an invalid field or folder; `.failedPrecondition`, naming a
  ///   document that has a path without an object, and then there is no link; `.cancelled` when the
  ///   task was cancelled, and then the build continues when the database is opened, or when the
  ///   link is made again.
  /// - Complexity: O(n log n) in the documents of all collections it belongs to.
  public func linkBlobs(
    field: String, under folder: String = "", progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    let path = try place.get()
    try database.refuseInTransaction("linkBlobs", "\(path)")
    let kind = try IndexKind(linking: field, under: folder)
    try await database.createIndex(kind, of: CollectionPattern(path), progress)
  }

  /// Removes a link: the documents no longer keep the objects, and these stay until they are
  /// deleted. Does nothing when there is no such link.
  ///
  /// - Parameters:
  ///   - field: as it was linked.
  ///   - folder: as it was linked.
  /// - Throws: `.invalidArgument` for an invalid field or folder.
  /// - Complexity: O(segments).
  public func unlinkBlobs(
    field: String, under folder: String = ""
  ) async throws(DatabaseError) {
    let pattern = CollectionPattern(try place.get())
    try database.refuseInTransaction("unlinkBlobs", "\(pattern)")
    let kind = try IndexKind(linking: field, under: folder)
    let family = try await database.family(pattern.root)
    guard let link = family?.collections[pattern]?.links.first(where: { $0.kind == kind }) else {
      return
    }
    try await database.dropIndex(link.keyspace, of: pattern)
  }
}
