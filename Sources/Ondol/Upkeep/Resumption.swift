// Resumes what an earlier session left unfinished after a crash or a cancelled task: unfinished
// indexes, rows of dropped indexes and collections, a group's index that some collections lack, or
// still have; and a change of the database's keys, which the superblock records. The catalog's rows
// record the rest. It is finished in the background once the database is open, and queries do not
// use such an index meanwhile. Closing the database stops this work. The next open resumes it. On a
// store, another process also resumes it, after a while. A collection whose own key is missing is
// left alone, until an open with the key.

internal import Logging
internal import OndolEngine

/// The remaining work for one index.
struct UnfinishedIndex: Sendable, Hashable {
  enum Remedy: Sendable, Hashable {
    /// It is declared, and lacks documents after a key.
    case build(Keyspace, behind: [UInt8]?)
    /// Its group has it, and the pattern does not.
    case create
    /// The pattern has it, and its group does not.
    case drop(Keyspace)
  }

  var pattern: CollectionPattern
  var kind: IndexKind
  var remedy: Remedy
}

extension Database {
  /// Starts all unfinished work, and the timer for documents that expire.
  func resume() {
    // A change that begins after this belongs to its caller, which may stop in the middle.
    let isChangingKeys = engine.border != nil
    // Weak, so that a database released at once is not kept alive.
    engine.startInBackground { [weak self] in
      await self?.finishWhatWasBegun(isChangingKeys: isChangingKeys)
    }
  }

  /// Finishes it now, and logs what fails.
  ///
  /// - Parameters:
  ///   - isChangingKeys: whether an earlier session has begun to change the keys.
  ///   - isOfOthers: whether, on a store, the process that began the work may still be doing it:
  ///     then it resumes only an index that has made no progress since the last check.
  func finishWhatWasBegun(isChangingKeys: Bool = false, isOfOthers: Bool = false) async {
    do throws(DatabaseError) {
      let families = try await families()
      if families.contains(where: { $0.collections.values.contains { $0.timeToLive != nil } }) {
        reap(by: now())
      }
      for keyspace in families.flatMap(\.dropped) { try await removeRows(of: keyspace) }
      for family in try await droppedFamilies() { try await removeRows(of: family) }
      let indexes = try await unfinishedIndexes()
      let stuck = builds.unmoved.withLock { last in
        defer { last = Set(indexes) }
        return last.intersection(indexes)
      }
      for unfinished in indexes where !isOfOthers || stuck.contains(unfinished) {
        if isOfOthers, !catalog.canBuild(unfinished.kind) { continue }
        try await finish(unfinished)
        if unfinished.kind.isOfEnds { reap(by: now()) }
      }
      _ = try await contents.reclaimer.reclaim()
      if isChangingKeys { try await goOnChangingKeys() }
    } catch {
      guard !error.isEndOfWork else { return }
      options.logger.error(
        "the work that a crash interrupted could not be finished", metadata: ["error": "\(error)"])
    }
  }

  private func unfinishedIndexes() async throws(DatabaseError) -> [UnfinishedIndex] {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      var found: [UnfinishedIndex] = []
      for family in try rows.catalog.families(in: rows) where !rows.catalog.keys.isLocked(family) {
        for (pattern, entry) in family.collections {
          let wanted = try rows.groupIndexes(CatalogKey.group(pattern.collectionID.text))
          for index in entry.allIndexes {
            if index.kind.isOfGroup, !wanted.contains(index.kind) {
              found.append(.init(pattern: pattern, kind: index.kind, remedy: .drop(index.keyspace)))
            } else if case .building(let through) = index.state {
              found.append(
                .init(
                  pattern: pattern, kind: index.kind,
                  remedy: .build(index.keyspace, behind: through)))
            }
          }
          if let field = entry.timeToLive, !entry.ends.contains(where: { $0.kind == .ends(field) })
          {
            // An earlier version of the format had none.
            found.append(.init(pattern: pattern, kind: .ends(field), remedy: .create))
          }
          for kind in wanted where !entry.allIndexes.contains(where: { $0.kind == kind }) {
            found.append(.init(pattern: pattern, kind: kind, remedy: .create))
          }
        }
      }
      return found
    }
  }

  private func finishBuilding(
    _ keyspace: Keyspace, of unfinished: UnfinishedIndex
  ) async throws(DatabaseError) {
    if unfinished.kind.isOfWords {
      let packer = SearchPacker(database: self, pattern: unfinished.pattern, keyspace: keyspace)
      _ = try await packer.build()
    } else {
      let builder = IndexBuilder(
        database: self, pattern: unfinished.pattern, keyspace: keyspace)
      _ = try await builder.build()
    }
  }

  /// Does the remaining work for one index. It throws only at the end of all work: an index that
  /// cannot be built does not prevent the others.
  private func finish(_ unfinished: UnfinishedIndex) async throws(DatabaseError) {
    let place: Logger.Metadata = [
      "collection": "\(unfinished.pattern)", "index": "\(unfinished.kind.name)",
    ]
    var isDrop = false
    if case .drop = unfinished.remedy { isDrop = true }
    guard isDrop || catalog.canBuild(unfinished.kind) else {
      options.logger.warning(
        "an index waits for an opening with the tokenizer that it is made with", metadata: place)
      return
    }
    options.logger.notice("finishing what was begun with an index", metadata: place)
    do throws(DatabaseError) {
      switch unfinished.remedy {
      case .build(let keyspace, _):
        try await finishBuilding(keyspace, of: unfinished)
      case .create: try await createIndex(unfinished.kind, of: unfinished.pattern) { _ in }
      case .drop(let keyspace): try await dropIndex(keyspace, of: unfinished.pattern)
      }
    } catch {
      guard !error.isEndOfWork else { throw error }
      options.logger.error("an index could not be finished: \(error)", metadata: place)
    }
  }
}

extension DatabaseError {
  /// Whether background work has to end, because the database is being closed.
  fileprivate var isEndOfWork: Bool {
    code == .cancelled || code == .failedPrecondition && path == nil
  }
}
