// Whom a commit waits for. Without a queue, writers of one document or one place of the tree would
// race: all derive from the same state, one wins and the others derive again. So they queue, and
// each finds the result of the previous one. A transaction does not know beforehand what it will
// write. It proceeds optimistically, and when it keeps losing commits, it closes gates (Gates) that
// hold the others for a while. So does a write to the tree that replaces much.

internal import OndolEngine

/// The kind of a commit, which decides with which others it queues.
enum CommitKind {
  case documents([DocumentWrite])
  /// Changes of the tree, below one place when that is known.
  case tree(TreePath?)
  /// Runs the app's code at most that often. A transaction that lost commits before may have closed
  /// gates.
  case transaction(attempts: Int, holdsGates: Bool = false)
  /// Changes the declarations of a root collection.
  case catalog(root: String)
  /// Gives one of the root collections, in their order, the name of the other; or renames a
  /// collection in the only one.
  case renaming(roots: [String])
  /// A step of background work, which lets all other writers go first.
  case upkeep
}

/// The latches one commit holds.
struct CommitQueue {
  private let kind: CommitKind
  private let latches: Latches
  private var held: [LatchKey] = []
  private var hasFamilies = false

  init(_ kind: CommitKind, _ latches: Latches) {
    self.kind = kind
    self.latches = latches
  }

  /// Whether the written documents are known only afterwards.
  var isOptimistic: Bool {
    if case .transaction = kind { true } else { false }
  }

  /// The gates to pass before queueing.
  var gates: Set<ExactText> {
    switch kind {
    case .documents(let writes): roots(of: writes)
    case .tree: [Database.treeGate]
    case .transaction, .catalog, .renaming, .upkeep: []
    }
  }

  /// Waits for the writers of the same documents or place.
  mutating func enter() async throws(DatabaseError) {
    switch kind {
    case .documents(let writes): try await enterDocuments(of: writes)
    case .tree(let path?): try await enter(.node(path))
    case .catalog(let root): try await enter(.family(ExactText(root)))
    case .renaming(let roots): for root in roots { try await enter(.family(ExactText(root))) }
    case .tree(nil), .transaction, .upkeep: return
    }
  }

  /// At once when no other writer holds any of the documents; otherwise one after the other, in the
  /// order in which all queued writers do so.
  private mutating func enterDocuments(of writes: [DocumentWrite]) async throws(DatabaseError) {
    guard writes.count > 1 else {
      for write in writes { try await enter(.document(write.path)) }
      return
    }
    if let taken = latches.acquireAtOnce(writes.lazy.map { LatchKey.document($0.path) }) {
      held = taken
      return
    }
    for path in Set(writes.map(\.path)).sorted() { try await enter(.document(path)) }
  }

  /// Waits for writers that change the catalog of the written collections: only these can come
  /// between the writers of a document. Returns false when there is none to wait for.
  mutating func enterFamilies() async throws(DatabaseError) -> Bool {
    guard case .documents(let writes) = kind, !hasFamilies else { return false }
    hasFamilies = true
    for root in roots(of: writes).sorted(by: { ValueOrder.compare($0.text, $1.text) < 0 }) {
      try await enter(.family(root))
    }
    return true
  }

  private func roots(of writes: [DocumentWrite]) -> Set<ExactText> {
    Set(writes.map { ExactText($0.path.segments[0]) })
  }

  private mutating func enter(_ key: LatchKey) async throws(DatabaseError) {
    try await latches.acquire(key)
    held.append(key)
  }

  mutating func leave() {
    latches.release(held)
    held = []
  }
}
