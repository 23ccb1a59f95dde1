// The changes for listeners in a database that another process writes. The writer sends no notes,
// there are only rows. So the documents that commits have changed are read in the view before the
// step and in the view after it. The difference is one change a document, however many commits
// there were. This replaces stage 6 of the write path on the reader's side.

internal import OndolEngine

/// The differences after a step from one commit to a later one.
struct StepChanges: Sendable {
  /// Whether all differences are known; otherwise anything may have changed.
  var isKnown = false
  /// At most one change a document.
  var documents: [ObservedChange] = []
  /// Root collections in which something other than documents has changed.
  var uncertainRoots: [String] = []

  /// Nothing known.
  static let unknown = StepChanges()
}

/// Determines what steps change.
final class StepReader: Sendable {
  private let catalog: Catalog
  private let observers: Observers

  init(_ catalog: Catalog, _ observers: Observers) {
    self.catalog = catalog
    self.observers = observers
  }

  /// Makes the catalog follow the step before any reader sees it; false when this must be tried
  /// again. Blocks.
  func prepare(for step: FollowerStep) -> Bool {
    do throws(DatabaseError) {
      guard try ChangedRows(step)?.hasCatalogRows ?? true else { return true }
      try catalog.follow(Rows(step.after, catalog, mayBlock: true))
      return true
    } catch {
      return false
    }
  }

  /// What the step changes, as far as there are listeners for it. The catalog follows the step.
  /// Blocks.
  func changes(of step: FollowerStep) throws(DatabaseError) -> StepChanges {
    let before = Rows(step.before, catalog, mayBlock: true)
    let after = Rows(step.after, catalog, mayBlock: true)
    guard observers.count > 0, let changed = try ChangedRows(step) else {
      try catalog.follow(after)
      return .unknown
    }
    var changes = StepChanges(isKnown: true)
    if changed.hasCatalogRows {
      changes.uncertainRoots = try rootsOfOthers(before, after)
      try catalog.follow(after)
    }
    // Looked up for each step, because this process may have made or renamed collections since the
    // last one.
    let patterns = try patterns(in: after)
    for (key, point) in changed.rows {
      guard let path = try Self.path(ofDocumentAt: key, in: patterns),
        observers.areConcerned(with: path)
      else { continue }
      if let change = try change(at: path, before, after, point) {
        changes.documents.append(change)
      }
    }
    return changes
  }

  /// The collections with documents in them, by keyspace.
  private func patterns(in rows: Rows) throws(DatabaseError) -> [UInt32: CollectionPattern] {
    var patterns: [UInt32: CollectionPattern] = [:]
    for family in try catalog.families(in: rows) {
      for (pattern, entry) in family.collections { patterns[entry.keyspace.rawValue] = pattern }
    }
    return patterns
  }

  /// Nil for a row that is no document's.
  private static func path(
    ofDocumentAt key: [UInt8], in patterns: [UInt32: CollectionPattern]
  ) throws(DatabaseError) -> DocumentPath? {
    guard let keyspace = Keyspace(of: key), let pattern = patterns[keyspace.rawValue] else {
      return nil
    }
    return try DocumentNaming(pattern, keyspace, collection: nil).path(of: key.bytes)
  }

  private func change(
    at path: DocumentPath, _ before: Rows, _ after: Rows, _ point: CommitPoint
  ) throws(DatabaseError) -> ObservedChange? {
    let (old, wasUnreadable) = try Self.readable(path, before)
    let (new, isUnreadable) = try Self.readable(path, after)
    guard wasUnreadable || isUnreadable || old?.stamps.version != new?.stamps.version else {
      return nil
    }
    let time = Timestamp(unchecked: point.time)
    return ObservedChange(
      path: path, before: old?.fields, after: new?.fields,
      stamps: new?.stamps
        ?? DocumentStamps(
          version: Version(rawValue: point.sequence.rawValue), updateTime: time,
          createTime: old?.stamps.createTime ?? time),
      wasUnreadable: wasUnreadable || isUnreadable)
  }

  /// The document even when it has expired; nothing when it cannot be upgraded.
  private static func readable(
    _ path: DocumentPath, _ rows: Rows
  ) throws(DatabaseError) -> (contents: DocumentSnapshot.Contents?, isUnreadable: Bool) {
    do throws(DatabaseError) {
      return (try DocumentReader(rows: rows).contents(of: path, evenOver: true), false)
    } catch {
      guard error.isUnreadable else { throw error }
      return (nil, true)
    }
  }

  /// Root collections that have other documents than before, or whose documents are read in another
  /// way.
  private func rootsOfOthers(_ before: Rows, _ after: Rows) throws(DatabaseError) -> [String] {
    var roots: [String] = []
    var names: [UInt32: String] = [:]
    for family in try catalog.families(in: before) {
      names[family.row.number] = family.root
      let now = try catalog.listedFamily(family.root, in: after)
      if now.map({ !$0.readsAlike(family) }) ?? true { roots.append(family.root) }
    }
    // A renamed collection brings documents that no commit of the step has changed.
    for family in try catalog.families(in: after) {
      if let name = names[family.row.number], !isSame(name, family.root) {
        roots.append(family.root)
      }
    }
    return roots
  }
}

/// The rows that a step's commits changed, each once.
private struct ChangedRows {
  /// All rows except those of the catalog and its mirror, in the order of their first change, each
  /// with its last.
  private(set) var rows: [(key: [UInt8], point: CommitPoint)] = []
  private(set) var hasCatalogRows = false

  /// Returns nil when they are unknown.
  init?(_ step: FollowerStep) throws(DatabaseError) {
    var (rows, hasCatalogRows) = (rows, false)
    var places: [[UInt8]: Int] = [:]
    let isKnown = try rethrowing { () throws(EngineError) in
      try step.visitRows { key, point in
        let key = key.array
        if key.starts(with: Keyspace.mirror.prefix) { return }
        if key.starts(with: Keyspace.catalog.prefix) {
          hasCatalogRows = true
        } else if let place = places[key] {
          rows[place].point = point
        } else {
          places[key] = rows.count
          rows.append((key, point))
        }
      }
    }
    guard isKnown else { return nil }
    (self.rows, self.hasCatalogRows) = (rows, hasCatalogRows)
  }
}

extension Family {
  /// Whether this, a later state of `other`, has the same documents, read in the same way, except
  /// for those that commits have changed.
  fileprivate func readsAlike(_ other: Family) -> Bool {
    row.number == other.row.number
      && other.collections.allSatisfy { pattern, old in
        guard let new = collections[pattern] else { return false }
        return new.keyspace == old.keyspace && new.timeToLive == old.timeToLive
          && new.schema == old.schema
      }
  }
}
