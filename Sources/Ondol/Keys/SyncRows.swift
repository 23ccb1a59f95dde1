// Where a device keeps what synchronisation needs to know. All of it is documents, in collections
// that no app can name, so commits write them together with the app's own documents, and they are
// checked, dumped, backed up and encrypted like these.
//
//   __syncclient__/client   who this device is for the server, and what the server has answered
//   __syncclient__/DIGEST   a content on its way to the server in several requests
//   __follows__/NUMBER      a followed query, and up to which moment it is complete
//   __synced__/DIGEST       a document that a follow contains or that waits: OndolSync/SyncedRow
//   __outbox__/ID           a commit of this device that the server does not have yet
//   __rejections__/ID       one that the server has refused, until the app has seen it

/// How the rows of synchronisation are documents.
package enum SyncRows {
  static let client = "__syncclient__"
  static let follows = "__follows__"
  package static let synced = "__synced__"
  package static let outbox = "__outbox__"
  static let rejections = "__rejections__"

  static let roots = [client, follows, synced, outbox, rejections]

  /// The names of the fields that a database reads which is opened without synchronisation.
  enum Field {
    /// text: the path of the followed collection.
    static let collection = "collection"
    /// text: the id of the followed collections, instead.
    static let group = "group"
    /// boolean: whether the device has had all documents of the follow.
    static let isComplete = "isComplete"
    /// boolean: whether the follow's documents are being removed.
    static let isEnding = "isEnding"
    /// reference: the document that a row of `synced` is about.
    static let path = "path"
    /// array: the entries of the outbox that are about it; missing when there are none.
    static let waiting = "waiting"
  }

  /// Whether a root collection has rows of synchronisation.
  static func isRoot(_ root: String) -> Bool {
    root.utf8.first == UInt8(ascii: "_") && roots.contains { isSame($0, root) }
  }

  /// The document that a row of `synced` is about.
  static func document(_ fields: [String: Value]) -> DocumentPath? {
    if case .reference(let path)? = fields[Field.path] { path } else { nil }
  }

  /// Whether the document of a row of `synced` waits for the server.
  static func isWaiting(_ fields: [String: Value]?) -> Bool { fields?[Field.waiting] != nil }
}

extension SyncRows {
  /// Who made a commit, by the rows that it writes. Synchronisation writes rows of its own with
  /// everything that it brings. A commit of the app has such rows, too, and makes an entry of the
  /// outbox.
  struct Authorship {
    /// Whether the commit writes any of the rows.
    private(set) var hasRows = false
    private var hasEntry = false

    mutating func note(rowIn root: String, isNew: Bool) {
      hasRows = true
      if isNew, isSame(root, SyncRows.outbox) { hasEntry = true }
    }

    var origin: ChangeOrigin { hasRows && !hasEntry ? .server : .local }
  }
}

extension Database {
  /// The collections of the rows of synchronisation. No path that an app gives leads to them.
  package var syncClient: CollectionReference { hidden(SyncRows.client) }
  package var syncFollows: CollectionReference { hidden(SyncRows.follows) }
  package var syncedDocuments: CollectionReference { hidden(SyncRows.synced) }
  package var syncOutbox: CollectionReference { hidden(SyncRows.outbox) }
  package var syncRejections: CollectionReference { hidden(SyncRows.rejections) }

  private func hidden(_ root: String) -> CollectionReference {
    CollectionReference(database: self, place: .success(CollectionPath(unchecked: [root])))
  }
}

extension Database {
  /// The collections that rows say are followed.
  ///
  /// - Complexity: O(follows); one lookup when there are none.
  package func followedCollections() async throws(DatabaseError) -> FollowedCollections {
    var collections = FollowedCollections()
    for document in try await syncFollows.getDocuments().documents {
      collections.add(row: document.data())
    }
    return collections
  }
}
