// The public side of links: fields whose texts are storage paths that documents keep.

internal import OndolEngine

extension CollectionReference {
  /// Makes the texts in a field storage paths that the documents keep alive. From then on
  ///
  /// - a write that names a path where there is no object throws `.failedPrecondition`: put the
  ///   object first, or in the same transaction;
  /// - an object that a document links cannot be deleted or moved away; to overwrite it is fine;
  /// - an object goes in the commit that takes its last link away, be it an update, a delete, a
  ///   recursive one, the end of the document's time, or a transaction. One that this commit puts
  ///   anew stays. After `drop()` of a collection at the top, its objects go before that returns.
  ///
  /// The documents there are are looked through before this returns, while others are written as
  /// usual. The link is kept with the database, and belongs to this collection and those with the
  /// same names below other documents. Does nothing when there is one.
  ///
  ///     try await items.linkBlobs(field: "imagePath", under: "images/")
  ///     try await albums.linkBlobs(field: "photos[].file")
  ///
  /// - Parameters:
  ///   - field: the field with a path or an array of paths; `[]` behind a name stands for each
  ///     element of an array there.
  ///   - folder: texts that are no paths below it are left alone; all are paths when it is empty.
  ///   - progress: called each time some documents were looked through.
  /// - Throws: `.invalidArgument` when the field or the folder cannot be one; `.failedPrecondition`
  ///   naming a document that has a path without an object, and then there is no link;
  ///   `.cancelled` when the task was cancelled, and then the link goes on being built when the
  ///   database is opened, or when it is made again.
  /// - Complexity: O(n log n) in the documents of all collections it belongs to.
  public func linkBlobs(
    field: String, under folder: String = "", progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    let path = try place.get()
    try database.refuseInTransaction("linkBlobs", "\(path)")
    let kind = try IndexKind(linking: field, under: folder)
    try await database.createIndex(kind, of: CollectionPattern(path), progress)
  }

  /// Takes a link back: the documents keep the objects no longer, and these stay until somebody
  /// deletes them. Does nothing when there is none.
  ///
  /// - Parameters:
  ///   - field: as it was linked.
  ///   - folder: as it was linked.
  /// - Throws: `.invalidArgument` when the field or the folder cannot be one.
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
