// What an earlier life of the database left unfinished, a crash or a cancelled task: indexes half
// built, rows of dropped indexes and collections, a group's index that not all collections have, or
// that some still have; a change of the database's keys, of which the superblock tells. The catalog
// says so in its rows. It is finished in the background once the database is open; queries
// meanwhile do without such an index. Closing stops it, and the next opening takes it up again. On
// a store so does another process, after a while. A collection whose own key is not here is left
// alone, until an opening with the key.

internal import Logging
internal import OndolEngine

/// Something to do about one index.
struct UnfinishedIndex: Sendable, Hashable {
  enum Remedy: Sendable, Hashable {
    /// It is declared, and lacks documents behind one.
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
  /// Starts whatever is to be finished, and the timer for documents that end.
  func resume() {
    // A change that begins after this is its caller's, who may stop half-way.
    let isChangingKeys = engine.border != nil
    // Weak, so that a database that was let go at once is not kept.
    engine.startInBackground { [weak self] in
      await self?.finishWhatWasBegun(isChangingKeys: isChangingKeys)
    }
  }

  /// Finishes it now, and logs what cannot be.
  ///
  /// - Parameters:
  ///   - isChangingKeys: whether an earlier life has begun to change the keys.
  ///   - isOfOthers: whether those who have begun it may still be at it, on a store: then an index
  ///     is gone on with that is where it was when somebody looked last.
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
        "what an earlier crash left could not be finished", metadata: ["error": "\(error)"])
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

  /// Does what is to be done about one index. Only the end of all work is thrown: an index that
  /// cannot be built keeps no other from it.
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
  /// Whether work in the background is told to end: the database is being closed.
  fileprivate var isEndOfWork: Bool {
    code == .cancelled || code == .failedPrecondition && path == nil
  }
}
