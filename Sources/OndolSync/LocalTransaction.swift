// A transaction that synchronisation makes itself. It reads and decodes each entry of the outbox
// once: a document may have thousands of them, and each step of a commit looks at all.

#if Sync
  import Ondol

  /// The rows of one commit, as it changes them.
  final class LocalTransaction {
    /// For all that is no row of an entry.
    let base: Transaction
    private let database: Database
    /// The entries that were read or written; nil for those that there are not.
    private var entries: [String: OutboxEntry?] = [:]
    /// The names of those that take a new place.
    private var replaced: Set<String> = []

    init(_ base: Transaction, _ database: Database) {
      self.base = base
      self.database = database
    }

    /// The entry of this name; nil when there is none.
    func entry(_ name: String) throws(DatabaseError) -> OutboxEntry? {
      if let known = entries[name] { return known }
      let stored = try base.getDocument(database.syncOutbox.document(name))
      let entry = stored.exists ? try OutboxEntry(stored) : nil
      entries[name] = .some(entry)
      return entry
    }

    /// Writes an entry.
    ///
    /// - Parameter isNew: whether it takes a place after all others.
    /// - Returns: the bytes of its writes.
    @discardableResult
    func write(_ entry: OutboxEntry, isNew: Bool = false) throws(DatabaseError) -> Int {
      if isNew { replaced.insert(entry.name) }
      let (fields, bytes) = try entry.fields(isNew: replaced.contains(entry.name))
      try base.setValues(fields, database.syncOutbox.document(entry.name))
      entries[entry.name] = .some(entry)
      return bytes
    }

    /// Removes the entry of this name.
    func removeEntry(_ name: String) throws(DatabaseError) {
      try base.deleteDocument(database.syncOutbox.document(name))
      entries[name] = .some(nil)
    }

    /// The row of a document.
    func row(of path: DocumentPath) throws(DatabaseError) -> SyncedRow {
      SyncedRow(try base.getDocument(database.syncedRow(of: path)).data()) ?? SyncedRow(path)
    }

    /// Writes the row of a document.
    func write(_ row: SyncedRow) throws(DatabaseError) {
      try base.setValues(row.fields, database.syncedRow(of: row.path))
    }
  }
#endif
