// Live storage: listens to the object at a path and to everything below it. Paths are documents, so
// this is one query over the ids that begin with the path.

internal import OndolEngine

/// The state of a path in storage, as of one commit.
public struct StorageSnapshot: Sendable {
  /// The location.
  public let reference: StorageReference
  /// The object's metadata; nil while there is no object here.
  public let metadata: StorageMetadata?
  /// The objects directly below, with their metadata, in the order of their names.
  public let items: [StorageMetadata]
  /// The folders directly below, in the order of their names.
  public let prefixes: [StorageReference]

  /// Whether there is an object here.
  public var exists: Bool { metadata != nil }
}

extension StorageReference {
  /// The object here and the objects and folders directly below, and every later state of them.
  ///
  ///     for try await images in storage.reference(withPath: "images").snapshots {
  ///       show(images.items)
  ///     }
  ///
  /// The first snapshot comes at once. Later ones come when an object here or anywhere below is
  /// added, removed or changed. Each commit is one step: a listener never sees half of a move.
  ///
  /// A listener costs memory for the metadata of everything below, and O(log n) for each change
  /// there. A commit elsewhere costs nothing.
  public var snapshots: Updates<StorageSnapshot> {
    let reference = self
    return Updates { () throws(DatabaseError) in
      try reference.checkFolder()
      let below = StorageRows.idPrefix(ofFolder: reference.fullPath)
      let everything = Query(
        database: reference.database, source: .success(.collection(StorageRows.collection)))
      let name = FieldPath.documentID()
      let query =
        reference.fullPath.isEmpty
        ? everything
        : everything.whereFilter(
          .orFilter([
            .whereField(name, isEqualTo: StorageRows.id(of: reference.fullPath)),
            .andFilter([
              .whereField(name, isGreaterThan: below),
              .whereField(name, isLessThan: StorageRows.idEnd(ofFolder: reference.fullPath)),
            ]),
          ]))
      return query.listener(to: try query.shape.get(), behind: nil) { view, _ in
        StorageSnapshot(reference, view.picture.documents)
      }
    }
  }
}

extension StorageSnapshot {
  /// - Parameter documents: those of the paths here and below, in order.
  fileprivate init(_ reference: StorageReference, _ documents: [DocumentSnapshot]) {
    self.reference = reference
    var metadata: StorageMetadata?
    var items: [StorageMetadata] = []
    var prefixes: [StorageReference] = []
    let length = StoragePath.prefix(ofFolder: reference.fullPath).utf8.count
    let slash = UInt8(ascii: "/")
    for document in documents {
      guard let object = StorageMetadata(document) else { continue }
      if ValueOrder.compare(object.path, reference.fullPath) == 0 {
        metadata = object
        continue
      }
      let rest = object.path.utf8.dropFirst(length)
      guard let end = rest.firstIndex(of: slash) else {
        items.append(object)
        continue
      }
      let folder = StorageReference(
        database: reference.database, path: String(Substring(object.path.utf8[..<end])))
      if prefixes.last != folder { prefixes.append(folder) }
    }
    self.metadata = metadata
    self.items = items
    self.prefixes = prefixes
  }
}
