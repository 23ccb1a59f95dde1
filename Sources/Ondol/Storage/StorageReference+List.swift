// What is below a folder, one level at a time. On the read path: a walk over the ids of storage
// paths, which are in the order of their names; a folder below is one leap, however much is in it.

internal import OndolEngine

/// What is directly below a folder, or a page of it.
public struct StorageListing: Sendable, Hashable {
  /// The objects, in the order of their names.
  public let items: [StorageReference]
  /// The folders, in the order of their names. A name may be that of an object, too.
  public let prefixes: [StorageReference]
  /// Gives the next page to `list(maxResults:pageToken:)`; nil at the end.
  public let nextPageToken: String?
}

extension StorageReference {
  /// Objects and folders on one page, at most.
  private static let pageLimit = 1_000

  /// A page of what is directly below this folder: names in order, objects and folders together. As
  /// of one moment; what comes or goes between two pages is on the next one or not.
  ///
  /// - Parameters:
  ///   - maxResults: objects and folders on the page, 1 to 1,000.
  ///   - pageToken: from the page before; nil for the first.
  /// - Throws: `.invalidArgument` when the number, the token or the path cannot be one.
  /// - Complexity: O(results), one lookup each, whatever is in the folders below.
  public func list(
    maxResults: Int, pageToken: String? = nil
  ) async throws(DatabaseError) -> StorageListing {
    guard (1...Self.pageLimit).contains(maxResults) else {
      throw DatabaseError(
        .invalidArgument, "a page has 1 to \(Self.pageLimit) results, not \(maxResults)",
        path: fullPath)
    }
    return try await list(limit: maxResults, behind: pageToken)
  }

  /// Everything directly below this folder, as of one moment.
  ///
  /// - Throws: `.invalidArgument` when the path cannot be one.
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
          .invalidArgument, "\"\(token)\" is no token of a page of this folder", path: folder)
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
  /// The last of them when there are more: a path, with "/" behind a folder's.
  private(set) var next: String?

  /// - Parameter token: the last of the page before.
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
      // An object's row is in front of what is below a folder of the same name.
      lower = isItem ? walk.cursor.key.array + [0] : Self.end(keyspace, of: child)
    }
  }

  /// In front of everything below a folder.
  private static func start(_ keyspace: Keyspace, of folder: String) -> [UInt8] {
    var writer = KeyWriter(keyspace.prefix)
    writer.append(textPrefix: StorageRows.idPrefix(ofFolder: folder))
    return writer.bytes
  }

  /// Behind everything below a folder.
  private static func end(_ keyspace: Keyspace, of folder: String) -> [UInt8] {
    let start = start(keyspace, of: folder)
    return KeyCoding.successor(ofPrefix: start) ?? keyspace.prefix + [KeyCoding.afterAll]
  }
}
