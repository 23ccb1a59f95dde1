// Verifies a database: first the files, which the engine checks, then, at full depth, the rows of
// one snapshot. Nothing here writes.

package import OndolEngine

extension Database {
  /// Checks the database in the directory at `path`, without opening it for writing and without
  /// changing anything. A process that has it open may continue: this checks the state of the files
  /// at the beginning.
  ///
  /// When the task is cancelled, this throws `.cancelled`.
  ///
  /// - Parameters:
  ///   - path: the database's directory.
  ///   - depth: how thorough the check is.
  ///   - encryption: the key of an encrypted database.
  ///   - progress: called from time to time.
  /// - Returns: everything that is wrong, at most a thousand findings; nothing when all is well.
  /// - Throws: `.notFound` or `.dataLoss` when there is no database at `path`, `.unimplemented`
  ///   when a newer version wrote it, `.cancelled`, `.permissionDenied` when the key is wrong,
  ///   `.permissionDenied` and `.internal` when a system call fails. Damage is not thrown but
  ///   reported.
  /// - Complexity: O(files), O(bytes) or O(rows x indexes), by `depth`; in memory are the logs and
  ///   a few hundred documents at a time.
  public static func verify(
    at path: String, depth: VerificationDepth = .full, encryption: Encryption? = nil,
    progress: (VerificationProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> [Finding] {
    try encryption?.check(for: path)
    return try await verify(
      at: path, depth: depth, environment: .live().opening(with: encryption), progress: progress)
  }

  /// Checks a database in an environment that the caller supplies.
  package static func verify(
    at path: String, depth: VerificationDepth, environment: Environment,
    progress: (VerificationProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> [Finding] {
    var state = VerificationProgress()
    let checkup = try rethrowing { () throws(EngineError) in
      try Checkup(ofDatabaseAt: path, environment: environment)
    }
    var findings = try await checkup.findings(depth, &state, progress)
    guard depth == .full else { return findings.all }
    let database: Database
    do throws(DatabaseError) {
      database = try await open(
        at: path, options: Options(access: .readOnly), environment: environment)
    } catch {
      // Findings already include what keeps it from being opened, unless that happened just now.
      if !findings.hasErrors { findings.append(Finding(error, .manifest)) }
      return findings.all
    }
    do throws(DatabaseError) {
      try await database.checkRows(&findings, &state, progress)
    } catch {
      try? await database.close()
      throw error
    }
    try await database.close()
    return findings.all
  }

  /// Checks this database as it is now, while it is in use: its files, and at full depth the rows
  /// of a snapshot. Commits with `.memory` durability may not have reached the files yet, and are
  /// checked at full depth only.
  ///
  /// - Parameters:
  ///   - depth: how thorough the check is.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Returns: everything that is wrong, at most a thousand findings; nothing when all is well.
  /// - Throws: `.failedPrecondition` when the database is closed; otherwise as
  ///   `verify(at:depth:progress:)`.
  /// - Complexity: as `verify(at:depth:progress:)`.
  public func verify(
    depth: VerificationDepth = .full, progress: (VerificationProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> [Finding] {
    // Throws when the database is closed.
    _ = try engineSnapshot()
    var state = VerificationProgress()
    let checkup = Checkup(of: engine.directory, environment: environment)
    var findings = try await checkup.findings(depth, &state, progress)
    if depth == .full { try await checkRows(&findings, &state, progress) }
    return findings.all
  }

  /// Checks the contents of a snapshot's rows.
  private func checkRows(
    _ findings: inout FindingList, _ state: inout VerificationProgress,
    _ progress: (VerificationProgress) -> Void
  ) async throws(DatabaseError) {
    let snapshot = try engineSnapshot()
    let rows = Rows(snapshot, catalog, mayBlock: true)
    let catalogCheck = await snapshot.readBlocking { [shards = engine.metrics.shards.count] in
      var check = CatalogCheck(rows, shards: shards)
      check.run()
      return check
    }
    findings.append(catalogCheck.findings.findings)
    let mirrorCheck = await snapshot.readBlocking {
      var check = MirrorCheck(rows)
      check.run()
      return check
    }
    findings.append(mirrorCheck.findings.findings)
    try await checkTree(rows, &findings)
    var holders: [Keyspace: Int] = [:]
    for root in catalogCheck.roots {
      for var check in await collectionChecks(of: root, snapshot, &findings) {
        try await snapshot.run(&check, &findings) { check in
          state.documents += check.takeCount()
          progress(state)
        }
        holders[check.keyspace] = check.holders
        for var words in check.wordsChecks { try await snapshot.run(&words, &findings) }
      }
    }
    try await checkContents(snapshot, &findings)
    try await checkHolders(of: snapshot, holders, &findings)
  }

  /// Checks the rows about holders.
  ///
  /// - Parameter holders: the number of holders among the documents of each keyspace.
  private func checkHolders(
    of snapshot: Snapshot, _ holders: [Keyspace: Int], _ findings: inout FindingList
  ) async throws(DatabaseError) {
    var check = HolderCheck(Rows(snapshot, catalog, mayBlock: true))
    try await snapshot.run(&check, &findings)
    let walked = check
    check = try await snapshot.readBlocking { () throws(DatabaseError) in
      var compared = walked
      try compared.compare(with: holders)
      return compared
    }
    findings.append(check.takeFindings())
    var derived = DerivedCheck(Rows(snapshot, catalog, mayBlock: true))
    try await snapshot.run(&derived, &findings)
  }

  /// Checks the rows of the tree.
  private func checkTree(
    _ rows: Rows, _ findings: inout FindingList
  ) async throws(DatabaseError) {
    var check = TreeCheck(rows)
    try await rows.snapshot.run(&check, &findings)
  }

  /// Checks for all collections below a root collection.
  private func collectionChecks(
    of root: String, _ snapshot: Snapshot, _ findings: inout FindingList
  ) async -> [CollectionCheck] {
    do throws(DatabaseError) {
      // The rows are in question, so the cached catalog must not be used.
      let catalog = Catalog(
        clock: environment.now, tokenizers: options.tokenizers, keys: self.catalog.keys)
      let rows = Rows(snapshot, catalog, mayBlock: true)
      let family = try await snapshot.readBlocking { () throws(DatabaseError) in
        try catalog.listedFamily(root, in: rows)
      }
      if let family, catalog.keys.isLocked(family) {
        findings.append(Finding(locked: root))
        return []
      }
      let collections = (family?.collections ?? [:]).filter { !$0.key.collectionIDs.isEmpty }
      return collections.map { pattern, entry in
        CollectionCheck(pattern, entry, in: rows)
      }.sorted { $0.keyspace.rawValue < $1.keyspace.rawValue }
    } catch {
      findings.append(Finding(error, .catalog, collection: root))
      return []
    }
  }
}

extension Checkup {
  /// The engine's findings about files, converted into public ones.
  fileprivate func findings(
    _ depth: VerificationDepth, _ state: inout VerificationProgress,
    _ progress: (VerificationProgress) -> Void
  ) async throws(DatabaseError) -> FindingList {
    do throws(EngineError) {
      var list = FindingList()
      let found = try await findings(readsBlocks: depth != .structure) { done, total in
        state.completedBytes = done
        state.totalBytes = total
        progress(state)
      }
      list.append(found.lazy.map { Finding(stored: $0) })
      return list
    } catch {
      throw DatabaseError(error)
    }
  }
}

extension Finding {
  /// A collection that cannot be checked.
  init(locked root: String) {
    self.init(
      .warning, .document,
      "it has a key of its own, which is not here: its documents and indexes were not looked at",
      collection: root, hint: "check it where the file KEYS is beside the others")
  }

  /// A finding from an error of reading a row.
  init(
    _ error: DatabaseError, _ kind: Kind, collection: String? = nil, id: String? = nil
  ) {
    self.init(
      .error, kind, error.message, collection: collection, id: id, hint: Self.damageHint)
  }
}
