// Merges of a device's writes with the server's state, by the app's own rule. A write to a
// collection that has a rule relies on the state that it was made on, as a transaction does. When
// the server refuses it because of that, it is not taken back: it waits until the device has seen
// the server's present state, and becomes what the rule makes of both. Then it is sent again, under
// another name.
//
// A change on one side only needs no rule, and neither do increments, unions and the like, which
// count on both sides.

#if Sync
  public import Ondol
  import OndolEngine

  /// Decides what becomes of a document that was changed here and on the server, in the same
  /// fields.
  ///
  /// - Parameters:
  ///   - base: the document's fields that both changed; nil when there was none.
  ///   - mine: its fields on this device; nil when this device has deleted it.
  ///   - theirs: its fields on the server; nil when it was deleted there.
  /// - Returns: the fields that it gets; nil to delete it. Fields that this device has changed by
  ///   increments, unions and the like are not taken from here: those count on both sides.
  public typealias MergeRule =
    @Sendable (
      _ base: [String: Value]?, _ mine: [String: Value]?, _ theirs: [String: Value]?
    ) throws -> [String: Value]?

  /// The rules by which documents are merged, by the ids of collections.
  final class MergeHandlers: Sendable {
    /// Nil for a collection that is merged by fields.
    private let rules = Guarded<[ExactText: MergeRule?]>([:])

    func set(_ rule: MergeRule?, of id: String) {
      rules.withLock { $0[ExactText(id)] = .some(rule) }
    }

    /// Whether the app has a rule for what the write may meet on the server.
    func concern(_ write: ClientWrite) -> Bool {
      // A creation is refused when the server has the document.
      if case .exists(false) = write.condition { return false }
      switch write.change {
      case .verify: return false
      case .patch(_, let mask): if mask.isEmpty { return false }
      case .replace, .delete: break
      }
      return rules.withLock { $0[ExactText(write.path.collection.collectionID)] ?? nil } != nil
    }

    /// The rule for a document: nil when the app has none, and has not said that there is none.
    func rule(for path: DocumentPath) -> MergeRule?? {
      rules.withLock { $0[ExactText(path.collection.collectionID)] }
    }
  }

  /// A document on both sides.
  struct MergedDocument {
    let base: [String: Value]?
    let mine: [String: Value]?
    let theirs: [String: Value]?
    /// The fields that transforms change, which count on both sides.
    let transformed: [[String]]

    /// Whether both sides have changed the same field in different ways, or one has deleted the
    /// document and the other has not.
    var isConflict: Bool {
      guard let mine, let theirs else {
        if mine == nil { return theirs != nil && theirs != base }
        return base != nil && mine != base
      }
      let own = Self.changes(from: base ?? [:], to: mine).filter { !isTransformed($0) }
      let others = Self.changes(from: base ?? [:], to: theirs)
      return own.contains { place in
        others.contains { Self.overlap(place, $0) }
          && Self.value(at: place, of: mine) != Self.value(at: place, of: theirs)
      }
    }

    /// The write that makes the server's document what a rule has decided, or what both sides have
    /// changed without a conflict.
    ///
    /// - Parameter decided: the rule's fields; nil when it was not asked.
    func write(
      _ path: DocumentPath, _ transforms: [ClientWrite.Transform], decided: [String: Value]??
    ) -> ClientWrite {
      let wanted: [String: Value]?
      if let decided {
        wanted = decided
      } else if let mine, theirs != nil || mine != base {
        var merged = theirs ?? [:]
        for place in Self.changes(from: base ?? [:], to: mine) {
          Self.set(Self.value(at: place, of: mine), at: place, of: &merged)
        }
        wanted = merged
      } else {
        wanted = nil
      }
      guard let wanted else { return ClientWrite(path: path, .delete) }
      guard let theirs else {
        return ClientWrite(path: path, .replace(wanted), transforms: transforms)
      }
      let mask = Self.changes(from: theirs, to: wanted).filter { !isTransformed($0) }
      return ClientWrite(path: path, .patch(wanted, mask: mask), transforms: transforms)
    }

    private func isTransformed(_ place: [String]) -> Bool {
      transformed.contains { Self.overlap(place, $0) }
    }

    /// Whether one of two places is the other one, or in it.
    private static func overlap(_ left: [String], _ right: [String]) -> Bool {
      zip(left, right).allSatisfy { $0 == $1 }
    }

    /// The places that differ, of which none is in another.
    private static func changes(
      from old: [String: Value], to new: [String: Value], below place: [String] = []
    ) -> [[String]] {
      var changes: [[String]] = []
      for name in Set(old.keys).union(new.keys).sorted() where old[name] != new[name] {
        if case .map(let before)? = old[name], case .map(let after)? = new[name] {
          changes += Self.changes(from: before, to: after, below: place + [name])
        } else {
          changes.append(place + [name])
        }
      }
      return changes
    }

    private static func value(at place: [String], of fields: [String: Value]) -> Value? {
      guard let name = place.first else { return nil }
      guard place.count > 1 else { return fields[name] }
      guard case .map(let inner)? = fields[name] else { return nil }
      return value(at: Array(place.dropFirst()), of: inner)
    }

    private static func set(
      _ value: Value?, at place: [String], of fields: inout [String: Value]
    ) {
      guard let name = place.first else { return }
      guard place.count > 1 else {
        fields[name] = value
        return
      }
      var inner: [String: Value] = [:]
      if case .map(let known)? = fields[name] { inner = known } else if value == nil { return }
      set(value, at: Array(place.dropFirst()), of: &inner)
      fields[name] = .map(inner)
    }
  }

  // MARK: - Commits

  /// Entries while they are merged.
  private struct MergingEntries {
    /// The entry that was refused.
    let name: String
    /// The entries that are changed.
    var entries: [String: OutboxEntry]
    /// The documents that have another state than the entry was made on.
    var rows: [SyncedRow] = []
    /// The id of a collection without a rule.
    var missing: String?
    /// What the rule has thrown about the entry itself.
    var failure: String?
    /// Later entries that cannot stay.
    var refused: [(entry: OutboxEntry, reason: Rejection.Reason)] = []

    init(first: OutboxEntry) {
      name = first.name
      entries = [first.name: first]
    }
  }

  extension OutboxEntry {
    /// The entry with one write of a document in the place of all its writes.
    fileprivate func replacing(_ path: DocumentPath, by write: Write) -> OutboxEntry {
      var copy = self
      let place = writes.firstIndex { $0.write.path == path } ?? 0
      copy.writes.removeAll { $0.write.path == path }
      copy.writes.insert(write, at: min(place, copy.writes.count))
      return copy
    }
  }

  /// What became of entries that wait to be merged.
  struct MergeOutcome: Sendable {
    /// The names of those that still wait.
    var held: Set<String> = []
    /// The ids of collections whose rule is missing.
    var missing: Set<String> = []
    /// Those that are to be refused, with the reasons.
    var refused: [(entry: OutboxEntry, reason: Rejection.Reason)] = []
    /// Whether any can be sent again.
    var isAny = false
  }

  extension LocalCommits {
    /// Makes an entry wait to be merged, under another name: the server has recorded that it
    /// refused this one.
    ///
    /// - Returns: its new name; nil when it is gone.
    func hold(
      _ entry: OutboxEntry, for reason: OutboxEntry.Refusal, as name: String,
      _ client: SyncClient
    ) async throws(DatabaseError) -> String? {
      try await commit { (transaction) throws(DatabaseError) in
        let stored = try transaction.entry(entry.name)
        try client.write(transaction.base, in: database)
        guard var held = stored else { return nil }
        (held.name, held.held) = (name, reason)
        try transaction.removeEntry(entry.name)
        try transaction.write(held)
        for path in held.paths {
          var row = try transaction.row(of: path)
          guard row.waiting.contains(entry.name) else { continue }
          row.waiting = row.waiting.map { $0 == entry.name ? name : $0 }
          if row.shown == .after(entry.name) { row.shown = .after(name) }
          try transaction.write(row)
          for other in row.waiting where other != name {
            try rely(other, on: path, [.after(entry.name): .after(name)], transaction)
          }
        }
        return name
      }
    }

    /// Merges the entries that wait for that.
    ///
    /// - Parameters:
    ///   - names: the entries.
    ///   - decided: those of them whose refusal the device's states explain, if a merge can explain
    ///     it at all: they are as of a later moment.
    func merge(
      _ names: Set<String>, decided: Set<String>, by handlers: MergeHandlers
    ) async throws(DatabaseError) -> MergeOutcome {
      var outcome = MergeOutcome()
      for name in names.sorted() {
        let (one, bytes) = try await commit { (transaction) throws(DatabaseError) in
          try merge(name, isDecided: decided.contains(name), by: handlers, transaction)
        }
        outcome.held.formUnion(one.held)
        outcome.missing.formUnion(one.missing)
        outcome.refused += one.refused
        outcome.isAny = outcome.isAny || one.isAny
        if bytes != 0 { witness.count(entries: 0, bytes: bytes) }
      }
      return outcome
    }

    private func merge(
      _ name: String, isDecided: Bool, by handlers: MergeHandlers, _ transaction: LocalTransaction
    ) throws(DatabaseError) -> (MergeOutcome, bytes: Int) {
      var outcome = MergeOutcome()
      guard let entry = try transaction.entry(name), let reason = entry.held else {
        return (outcome, 0)
      }
      var merging = MergingEntries(first: entry)
      for path in entry.mergedPaths {
        let row = try transaction.row(of: path)
        let present = row.updated.map { .updated($0) } ?? Reliance.absent
        guard let first = entry.writes.first(where: { $0.write.path == path }),
          first.reliance != present
        else { continue }
        // What it relies on is answered first.
        if case .after = first.reliance { continue }
        try merge(row, present, into: &merging, by: handlers, transaction)
      }
      let isOther = !merging.rows.isEmpty
      if let missing = merging.missing {
        outcome.held = [name]
        outcome.missing = [missing]
      } else if let error = merging.failure {
        outcome.refused = [(entry, .unmerged(error))]
      } else if !isOther {
        // Something else is the reason, or the device has not seen it yet.
        if isDecided {
          outcome.refused = [(entry, .server(reason.reason.code, reason.reason.message))]
        } else {
          outcome.held = [name]
        }
      } else {
        outcome.refused = merging.refused
        outcome.isAny = true
      }
      // Shows the documents as they were before the writes were played, or with the merged ones.
      guard outcome.isAny else {
        for row in merging.rows { try show(row, transaction) }
        return (outcome, 0)
      }
      merging.entries[name]?.held = nil
      var bytes = 0
      for (name, entry) in merging.entries.sorted(by: { $0.key < $1.key }) {
        bytes -= try transaction.entry(name)?.fields().bytes ?? 0
        // Others have been sent before it.
        bytes += try transaction.write(entry, isNew: name == merging.name)
      }
      for var row in merging.rows {
        row.ancestor = nil
        try show(row, transaction)
      }
      for path in entry.paths {
        for later in try transaction.row(of: path).waiting where later != name {
          try delay(later, transaction)
        }
      }
      return (outcome, bytes)
    }

    /// Lets later entries be sent before one that relies on others.
    private func delay(_ name: String, _ transaction: LocalTransaction) throws(DatabaseError) {
      guard var entry = try transaction.entry(name), !entry.isDelayed, !entry.reliedOn.isEmpty
      else { return }
      entry.isDelayed = true
      try transaction.write(entry)
    }

    /// Lets later entries be sent before one, if that relies on an entry that waits to be merged,
    /// or has been and comes after it now. To be called when no entry is under way.
    ///
    /// - Returns: whether it does.
    func delayIfMerging(_ name: String) async throws(DatabaseError) -> Bool {
      try await commit { (transaction) throws(DatabaseError) in
        guard let entry = try transaction.entry(name) else { return true }
        for other in entry.reliedOn {
          // Of an answered one, the outcome will be seen.
          guard let other = try transaction.entry(other), other.answer == nil else { continue }
          try delay(name, transaction)
          return true
        }
        return false
      }
    }

    /// Merges the writes of one document: those of the entry that was refused, and those of later
    /// ones, which were made on what that one had left.
    private func merge(
      _ row: SyncedRow, _ present: Reliance, into merging: inout MergingEntries,
      by handlers: MergeHandlers, _ transaction: LocalTransaction
    ) throws(DatabaseError) {
      let path = row.path
      merging.rows.append(row)
      var old = row.ancestor.map(\.fields) ?? row.base
      var new = row.base
      let names = row.waiting.drop { $0 != merging.name }
      for name in names {
        var known = merging.entries[name]
        if known == nil { known = try transaction.entry(name) }
        guard let entry = known else { continue }
        let own = entry.writes.filter { $0.write.path == path }
        let mine = try play(own.map(\.write), on: old, at: path, transaction)
        defer { old = mine }
        guard own.contains(where: \.mayMerge) else {
          let isStrict = own.contains { one in
            if case .after = one.reliance { true } else { false }
          }
          if !isStrict || old == new {
            new = try play(own.map(\.write), on: new, at: path, transaction)
          } else if !merging.refused.contains(where: { $0.entry.name == name }) {
            // It has read what is no more.
            merging.refused.append((entry, .relied(on: merging.name)))
          }
          continue
        }
        let merged = MergedDocument(
          base: old, mine: mine, theirs: new,
          transformed: own.flatMap { $0.write.transforms.map(\.path) })
        var decision: [String: Value]??
        if merged.isConflict {
          switch handlers.rule(for: path) {
          case .none:
            merging.missing = path.collection.collectionID
            return
          case .some(.none): break
          case .some(.some(let rule)):
            do {
              decision = .some(try rule(merged.base, merged.mine, merged.theirs))
            } catch {
              if name == merging.name { merging.failure = "\(error)" }
              merging.refused.append((entry, .unmerged("\(error)")))
              continue
            }
          }
        }
        let write = merged.write(path, own.flatMap(\.write.transforms), decided: decision)
        let reliance = name == merging.name ? present : own.first?.reliance ?? present
        merging.entries[name] = entry.replacing(
          path, by: OutboxEntry.Write(write: write, reliance: reliance, mayMerge: true))
        new = try play([write], on: new, at: path, transaction)
      }
    }

    /// The fields that writes make of others; nil when there is no document then.
    func play(
      _ writes: [ClientWrite], on base: [String: Value]?, at path: DocumentPath,
      _ transaction: LocalTransaction
    ) throws(DatabaseError) -> [String: Value]? {
      var replay = Replay(path, base: base, updated: nil)
      replay.play(writes)
      try transaction.base.show(replay)
      let played = try transaction.base.getDocument(database.document(path))
      return played.exists ? played.data() : nil
    }
  }
#endif
