// Lists the contents of a folder, one level at a time. On the read path: a walk over the ids of
// storage paths, which are in the order of their names. It skips each folder in one leap, however
// much is in it.

internal import OndolEngine

/// The objects and folders directly below a folder, or a page of them.
public struct StorageListing: Sendable, Hashable {
  /// The objects, in the order of their names.
  public let items: [StorageReference]
  /// The folders, in the order of their names. An object may have the same name.
  public let prefixes: [StorageReference]
  /// Pass this to `list(maxResults:pageToken:)` for the next page; nil at the end.
  public let nextPageToken: String?
}

extension StorageReference {
  /// The most objects and folders on one page.
  private static let pageLimit = 1_000

  /// A page of the objects and folders directly below this folder, together in the order of their
  /// names. A page is as of one moment. An object that is added or removed between two pages may or
  /// may not be on the next one.
  ///
  /// - Parameters:
  ///   - maxResults: objects and folders on the page, 1 to 1,000.
  ///   - pageToken: from the previous page; nil for the first.
  /// - Throws: `.invalidArgument` when the number, the token or the path is invalid.
  /// - Complexity: O(results), one lookup each, whatever is in the folders below.
  public func list(
    maxResults: Int, pageToken: String? = nil
  ) async throws(DatabaseError) -> StorageListing {
    guard (1...Self.pageLimit).contains(maxResults) else {
      throw DatabaseError(
        .invalidArgument, "a page must have 1 to \(Self.pageLimit) results, not \(maxResults)",
        path: fullPath)
    }
    return try await list(limit: maxResults, behind: pageToken)
  }

  /// Everything directly below this folder, as of one moment.
  ///
  /// - Throws: `.invalidArgument` when the path is invalid.
  /// - Complexity: O(results), one lookup each, whatever is in the folders below.
  public func listAll() async throws(DatabaseError) -> StorageListing {
    try await list(limit: .max, behind: nil)
  }

  private func list(
    limit: Int, behind token: String?
  ) async throws(DatabaseError) -> StorageListing {
    try checkFolder()
    let folder = fullPath
    if let token {
      let path = StoragePath.normal(token)
      guard StoragePath.problem(with: path) == nil, StoragePath.parent(of: path) == folder else {
        throw DatabaseError(
          .invalidArgument, "\"\(token)\" is not a page token of this folder", path: folder)
      }
    }
    let page = try await database.read(try database.engineSnapshot(), canBeCancelled: true) {
      (rows) throws(DatabaseError) in
      try FolderPage(of: folder, behind: token, limit: limit, in: rows)
    }
    return StorageListing(
      items: page.items.map { StorageReference(database: database, path: $0) },
      prefixes: page.folders.map { StorageReference(database: database, path: $0) },
      nextPageToken: page.next)
  }
}

/// Names directly below a folder.
private struct FolderPage: Sendable {
  private(set) var items: [String] = []
  private(set) var folders: [String] = []
  /// The last name when there are more: a path, with "/" after a folder's.
  private(set) var next: String?

  /// - Parameter token: the last name of the previous page.
  init(
    of folder: String, behind token: String?, limit: Int, in rows: Rows
  ) throws(DatabaseError) {
    let family = try rows.catalog.family(StorageRows.root, in: rows)
    guard let keyspace = family?.collections[StorageRows.pattern]?.keyspace else { return }
    let naming = DocumentNaming(
      StorageRows.pattern, keyspace, collection: StorageRows.collection)
    var lower = Self.start(keyspace, of: folder)
    let upper = Self.end(keyspace, of: folder)
    if let token {
      let path = StoragePath.normal(token)
      let object = DocumentKey.key(keyspace, StorageRows.document(at: path))
      lower = token == path ? object + [0] : Self.end(keyspace, of: path)
    }
    let prefixLength = StoragePath.prefix(ofFolder: folder).utf8.count
    var last: String?
    while true {
      var walk = RangeWalk(rows, [KeyRange(lower: lower, upper: upper)])
      guard try walk.next() else { return }
      guard let path = try naming.path(of: walk.cursor.key).storagePath else {
        lower = walk.cursor.key.array + [0]
        continue
      }
      let rest = path.utf8.dropFirst(prefixLength)
      let name = String(Substring(rest.prefix { $0 != UInt8(ascii: "/") }))
      let child = StoragePath.prefix(ofFolder: folder) + name
      let isItem = name.utf8.count == rest.count
      guard items.count + folders.count < limit else {
        next = last
        return
      }
      if isItem { items.append(child) } else { folders.append(child) }
      last = isItem ? child : child + "/"
      // An object's row comes before everything below a folder of the same name.
      lower = isItem ? walk.cursor.key.array + [0] : Self.end(keyspace, of: child)
    }
  }

  /// Before everything below a folder.
  private static func start(_ keyspace: Keyspace, of folder: String) -> [UInt8] {
    var writer = KeyWriter(keyspace.prefix)
    writer.append(textPrefix: StorageRows.idPrefix(ofFolder: folder))
    return writer.bytes
  }

  /// After everything below a folder.
  private static func end(_ keyspace: Keyspace, of folder: String) -> [UInt8] {
    let start = start(keyspace, of: folder)
    return KeyCoding.successor(ofPrefix: start) ?? keyspace.prefix + [KeyCoding.afterAll]
  }
}
