// Documents in pages, so that a list may be larger than memory. A database that is open for reading
// stays as it was at the open, so the pages are consistent with each other.

import Ondol

/// A collection's documents in id order, or in reverse.
struct Pages {
  private static let pageLength = 1_000

  private let collection: CollectionReference
  private let prefix: String?
  private let isDescending: Bool
  private var offset: Int
  private var rest: Int
  private var lastID: String?
  /// Whether any document was returned.
  private(set) var hasShown = false

  init(
    _ collection: CollectionReference, prefix: String? = nil, isDescending: Bool = false,
    offset: Int? = nil, limit: Int? = nil
  ) {
    self.collection = collection
    self.prefix = prefix
    self.isDescending = isDescending
    self.offset = offset ?? 0
    rest = limit ?? .max
  }

  /// The next documents, at least one; nil at the end.
  mutating func next() async throws(DatabaseError) -> [DocumentSnapshot]? {
    let id = FieldPath.documentID()
    while rest > 0 {
      let length = min(Self.pageLength, offset > Self.pageLength - rest ? Self.pageLength : rest)
      var query = collection.order(by: id, descending: isDescending).limit(to: max(1, length))
      if let prefix { query = query.whereField(id, hasPrefix: prefix) }
      if let lastID {
        query =
          isDescending
          ? query.whereField(id, isLessThan: lastID) : query.whereField(id, isGreaterThan: lastID)
      }
      let page = try await query.getDocuments().documents
      guard let last = page.last else { return nil }
      lastID = last.documentID
      let shown = Array(page.dropFirst(offset).prefix(rest))
      offset -= min(offset, page.count)
      rest -= shown.count
      guard shown.isEmpty else {
        hasShown = true
        return shown
      }
    }
    return nil
  }
}
