// Lists the stored contents one by one, for tools that inspect them. On the read path: a walk over
// the rows of locations and, for each, over its holders.

internal import OndolEngine

/// A stored content, with its holders.
package struct ListedContent: Sendable {
  package var digest: BlobDigest
  package var length: Int
  /// The file it is in; nil when it is in its row.
  package var file: String?
  /// Some of its holders.
  package var holders: [String]
  /// The contents that were derived from it, by their names.
  package var derived: [String: BlobReference]
  /// Whether a lease keeps it without a holder.
  package var isLeased: Bool
}

extension Database {
  /// The contents after `digest`, in the order of their digests, at most `limit`.
  ///
  /// - Complexity: O(contents listed and their holders, at most `holderLimit` of each).
  package func listContents(
    after digest: BlobDigest?, limit: Int, holderLimit: Int
  ) async throws(DatabaseError) -> [ListedContent] {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      let range =
        digest.map { ContentKey.all(ContentKey.locations, after: $0) }
        ?? ContentKey.all(ContentKey.locations)
      var walk = RangeWalk(rows, [range])
      var listed: [ListedContent] = []
      while listed.count < limit, try walk.next() {
        let digest = try ContentKey.digest(in: walk.cursor.key)
        if let content = try rows.listed(digest, holderLimit) { listed.append(content) }
      }
      return listed
    }
  }

  /// One content; nil when it is not stored.
  package func listedContent(
    _ digest: BlobDigest, holderLimit: Int
  ) async throws(DatabaseError) -> ListedContent? {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.listed(digest, holderLimit)
    }
  }

  /// Compares the bytes of contents with their digests, and looks for files without contents.
  ///
  /// - Parameter share: the share of the contents that are read, from 0 to 1, chosen at random.
  package func verifyContents(share: Double = 1) async throws(DatabaseError) -> [Finding] {
    var findings = FindingList()
    try await checkContents(try engineSnapshot(), share: share, &findings)
    return findings.all
  }
}

extension Rows {
  fileprivate func listed(
    _ digest: BlobDigest, _ holderLimit: Int
  ) throws(DatabaseError) -> ListedContent? {
    guard let location = try location(of: digest) else { return nil }
    let file: String? =
      switch location {
      case .inline, .parts, .away: nil
      case .pack(let place): "\(place.pack.rawValue).pack"
      case .file(let place): "\(place.file.rawValue).content"
      }
    var derived: [String: BlobReference] = [:]
    var children = RangeWalk(self, [DerivedRows.children(of: digest)])
    while derived.count < holderLimit, try children.next() {
      let value = try children.value.array
      let name = try DerivedRows.parse(children.cursor.key).name
      derived[name] = try DerivedRows.child(value.bytes)
    }
    let lease = try lease(of: digest)
    let release = try release(of: digest)
    let isLeased = lease != nil || release != nil
    return ListedContent(
      digest: digest, length: Int(clamping: location.length), file: file,
      holders: try holderNames(of: digest, atMost: holderLimit), derived: derived,
      isLeased: isLeased)
  }
}
