// Salvages a damaged database into a new one.

package import OndolEngine

extension Database {
  /// Saves everything readable of the damaged database in the directory at `path` into a new one at
  /// `newPath`. It changes and locks nothing at `path`: make sure that no other program writes
  /// there meanwhile. Salvage rebuilds all indexes before this returns. Documents keep their
  /// versions and times, and new commits continue after the last one.
  ///
  /// All saved data was committed once. When something is lost, a document may be an older version,
  /// and a deleted one may be back. The report lists what is lost, and where.
  ///
  /// After a failure or a cancelled task, at most an empty directory is left at `newPath`.
  ///
  /// - Parameters:
  ///   - path: the damaged database.
  ///   - newPath: a new or an empty directory. Its parent directory must exist.
  ///   - encryption: the key of an encrypted database; the new one is also encrypted with it.
  ///   - progress: called from time to time.
  /// - Returns: what was saved and what was not.
  /// - Throws: `.dataLoss` when nothing of a database is at `path`, `.notFound`; `.alreadyExists`
  ///   when there is something at `newPath`; `.unimplemented` when a newer version wrote it;
  ///   `.cancelled`; `.resourceExhausted`, `.permissionDenied` and `.internal` when a system call
  ///   fails.
  /// - Complexity: O(bytes). In memory are the logs, an index of blocks for each run, and some
  ///   blocks.
  public static func salvage(
    from path: String, to newPath: String, encryption: Encryption? = nil,
    progress: (SalvageProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> SalvageReport {
    try encryption?.check(for: path)
    return try await salvage(
      from: path, to: newPath, environment: .live().opening(with: encryption),
      progress: progress)
  }

  /// Salvages a database in an environment that the caller supplies.
  package static func salvage(
    from path: String, to newPath: String, environment: Environment,
    engineOptions: EngineOptions = EngineOptions(),
    progress: (SalvageProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> SalvageReport {
    let worker = environment.threads.makeWorker(named: "ondol-salvage", for: .checks)
    do throws(DatabaseError) {
      let report = try await salvage(
        on: worker, from: path, to: newPath, environment, engineOptions, progress)
      await worker.stop()
      return report
    } catch {
      await worker.stop()
      throw error
    }
  }

  private static func salvage(
    on worker: any Worker, from path: String, to newPath: String, _ environment: Environment,
    _ engineOptions: EngineOptions, _ progress: (SalvageProgress) -> Void
  ) async throws(DatabaseError) -> SalvageReport {
    let work = try await blocking(worker) { () throws(EngineError) in
      try SalvageWork(from: path, to: newPath, environment: environment, options: engineOptions)
    }
    do throws(DatabaseError) {
      while try await blocking(worker, { () throws(EngineError) in try work.step() }) {
        try refuseWhenCancelled()
        progress(SalvageProgress(documents: work.documents))
      }
      var report = try await blocking(worker) { () throws(EngineError) in try work.finish() }
      let database = try await open(
        at: newPath, environment: environment, engineOptions: engineOptions)
      try await database.orderSalvagedTree()
      let contents = try rethrowing { () throws(EngineError) in
        try ContentSalvage(at: path, environment: environment)
      }
      report.note(try await database.salvageContents(work.locations, from: contents))
      let built = try await database.buildSalvagedIndexes()
      try await database.close()
      try refuseWhenCancelled()
      report.compareIndexes(built)
      return report
    } catch {
      await worker.perform { work.giveUp() }
      throw error
    }
  }

  private static func blocking<R: Sendable>(
    _ worker: any Worker, _ body: @escaping @Sendable () throws(EngineError) -> R
  ) async throws(DatabaseError) -> R {
    return try await rethrowing { () async throws(EngineError) in try await worker.perform(body) }
  }

  /// Builds all declared indexes; returns the names of the ready ones, by pattern.
  private func buildSalvagedIndexes() async throws(DatabaseError) -> [ExactText: Set<ExactText>] {
    await finishWhatWasBegun()
    return try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      var names: [ExactText: Set<ExactText>] = [:]
      for family in try rows.catalog.families(in: rows) {
        for (pattern, entry) in family.collections {
          // An index with an app's own tokenizer is built when the app opens the database.
          let ready = entry.allIndexes.filter {
            $0.state == .ready || !rows.catalog.canBuild($0.kind)
          }
          names[ExactText(pattern.description)] = Set(ready.map { ExactText($0.name) })
        }
      }
      return names
    }
  }
}

extension SalvageReport {
  /// Records lost contents, and the documents that referred to them.
  fileprivate mutating func note(_ lost: [LostContent]) {
    lossCount += lost.count
    losses += lost.prefix(max(0, 1_000 - losses.count)).map { lost in
      Loss(
        reason: "the content \(lost.digest.hex) that it refers to is not stored any more",
        after: lost.document.name, before: lost.document.name)
    }
  }

  /// Records indexes that were not rebuilt.
  fileprivate mutating func compareIndexes(_ built: [ExactText: Set<ExactText>]) {
    for index in collections.indices {
      let name = collections[index].name
      let ready = built[ExactText(name)] ?? []
      let missing = collections[index].indexes.filter { !ready.contains(ExactText($0)) }
      collections[index].indexes.removeAll { !ready.contains(ExactText($0)) }
      for lost in missing {
        lossCount += 1
        losses.append(
          Loss(reason: "documents of \(name) disagree with the index '\(lost)': it is gone"))
      }
    }
  }
}
