// What happened between two results, in Firestore's form: removed documents, then added ones, then
// modified ones, each in the result's order. Indices apply in sequence: removing each document at
// its `oldIndex` and inserting it at its `newIndex`, change after change, turns the old list into
// the new one. A document that moved counts as modified.

/// The changes from one result to a later one.
struct DocumentChanges {
  private struct Replacement {
    var old: RankedDocument
    var new: RankedDocument
  }

  private let start: RankedTree
  private let isReversed: Bool
  private var removed: [RankedDocument] = []
  private var added: [RankedDocument] = []
  private var modified: [Replacement] = []

  var isEmpty: Bool { removed.isEmpty && added.isEmpty && modified.isEmpty }

  /// - Parameter includingMetadata: whether documents count of which only the metadata changed; as
  ///   the plan says when nil.
  /// - Complexity: O(c log n) where the results share all but c documents.
  init(
    from old: RankedTree, to new: RankedTree, _ plan: LiveQueryPlan,
    includingMetadata: Bool? = nil
  ) {
    start = old
    isReversed = plan.query.isReversed
    let difference = old.difference(to: new)
    var gone: [DocumentPath: RankedDocument] = [:]
    for ranked in difference.old {
      if let path = ranked.path { gone[path] = ranked }
    }
    for ranked in difference.new {
      guard let path = ranked.path, let before = gone.removeValue(forKey: path) else {
        added.append(ranked)
        continue
      }
      let isSame = plan.isSame(before, ranked, includingMetadata ?? plan.includesMetadata)
      if !isSame { modified.append(Replacement(old: before, new: ranked)) }
    }
    removed = difference.old.filter { $0.path.map { gone[$0] != nil } ?? false }
    if isReversed {
      removed.reverse()
      added.reverse()
      modified.reverse()
    }
  }

  /// The documents that the later result shows and the earlier one did not, or showed in another
  /// state.
  var shown: [DocumentSnapshot] { added.map(\.document) + modified.map(\.new.document) }

  /// The documents that the earlier result showed and the later one does not, as they were.
  var left: [DocumentSnapshot] { removed.map(\.document) }

  /// The changes with their indices.
  ///
  /// - Parameter departures: documents that left because of synchronisation.
  func list(_ departures: Set<DocumentPath>) -> [DocumentChange] {
    var standing = Standing(start, isReversed: isReversed, changes: count)
    var changes: [DocumentChange] = []
    changes.reserveCapacity(count)
    for ranked in removed {
      changes.append(
        DocumentChange(
          type: .removed, document: ranked.document, oldIndex: standing.take(ranked),
          newIndex: nil,
          origin: ranked.path.map { departures.contains($0) ? .server : .local } ?? .local))
    }
    for ranked in added {
      changes.append(
        DocumentChange(
          type: .added, document: ranked.document, oldIndex: nil, newIndex: standing.put(ranked)))
    }
    for replacement in modified {
      let oldIndex = standing.take(replacement.old)
      changes.append(
        DocumentChange(
          type: .modified, document: replacement.new.document, oldIndex: oldIndex,
          newIndex: standing.put(replacement.new)))
    }
    return changes
  }

  private var count: Int { removed.count + added.count + modified.count }
}

/// The positions of documents while they are removed from and inserted into a list one by one. With
/// few changes it counts from the unchanged list; with many it uses a tree.
private struct Standing {
  private static let fewChanges = 8

  private var tree: RankedTree
  private let isReversed: Bool
  private let isCounted: Bool
  private var gone: [RankedDocument] = []
  private var come: [RankedDocument] = []

  init(_ start: RankedTree, isReversed: Bool, changes: Int) {
    tree = start
    self.isReversed = isReversed
    isCounted = changes <= Self.fewChanges
  }

  /// Removes a document of the original list; returns its position.
  mutating func take(_ ranked: RankedDocument) -> Int {
    let index = index(of: ranked)
    if isCounted { gone.append(ranked) } else { tree.remove(ranked.keys) }
    return index
  }

  /// Inserts a document; returns its position.
  mutating func put(_ ranked: RankedDocument) -> Int {
    if isCounted { come.append(ranked) } else { tree.insert(ranked) }
    return index(of: ranked)
  }

  /// The position of a document in the list.
  private func index(of ranked: RankedDocument) -> Int {
    let rank =
      tree.find(ranked.keys).rank - gone.count { isBefore($0, ranked) }
      + come.count { isBefore($0, ranked) }
    return isReversed ? tree.count - gone.count + come.count - 1 - rank : rank
  }

  private func isBefore(_ left: RankedDocument, _ right: RankedDocument) -> Bool {
    left !== right && tree.orders.compare(left.keys, right.keys) < 0
  }
}

extension LiveQueryPlan {
  /// Whether a listener sees no difference between two states of a document, their place included.
  ///
  /// - Parameter includingMetadata: whether it sees the metadata.
  func isSame(
    _ before: RankedDocument, _ after: RankedDocument, _ includingMetadata: Bool
  ) -> Bool {
    before.document.showsSame(as: after.document, comparesFields: comparesFields)
      && query.orders.compare(before.keys, after.keys) == 0
      && (!includingMetadata || before.document.metadata == after.document.metadata)
  }
}

extension RankedDocument {
  fileprivate var path: DocumentPath? { try? document.reference.place.get() }
}

extension DocumentSnapshot {
  /// Whether both show the same document in the same state. Documents of one version can differ
  /// when a schema was declared between reading them.
  ///
  /// - Parameter comparesFields: whether documents of different versions can be the same.
  func showsSame(as other: DocumentSnapshot, comparesFields: Bool = false) -> Bool {
    guard let contents, let others = other.contents else { return exists == other.exists }
    guard comparesFields || contents.stamps.version == others.stamps.version else { return false }
    if case .row(let row) = contents.form, case .row(let other) = others.form,
      row.bytes == other.bytes
    {
      return true
    }
    return Value.map(contents.fields).isIdentical(to: .map(others.fields))
  }
}
