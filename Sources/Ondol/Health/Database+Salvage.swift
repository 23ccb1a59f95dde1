// Saving what can be saved of a damaged database, into a new one.

package import OndolEngine

extension Database {
  /// Saves what can be read of the damaged database in the directory at `path` into a new one at
  /// `newPath`. Nothing is changed at `path`, and nothing locked: have no other program write there
  /// meanwhile. All indexes are built anew before this returns. Documents keep their versions and
  /// times, and new commits go on behind the last one there was.
  ///
  /// What is saved was committed once. Where something is lost, a document may be older than it
  /// was, and one that was deleted may be back; the report says what is lost, and where.
  ///
  /// After a failure or when the task is cancelled, nothing is left at `newPath` but perhaps an
  /// empty directory.
  ///
  /// - Parameters:
  ///   - path: the damaged database.
  ///   - newPath: a new or an empty directory, in one that is there.
  ///   - encryption: the key of an encrypted database; the new one is encrypted with it, too.
  ///   - progress: called from time to time.
  /// - Returns: what was saved and what was not.
  /// - Throws: `.dataLoss` when nothing of a database is at `path`, `.notFound`; `.alreadyExists`
  ///   when there is something at `newPath`; `.unimplemented` when a newer version wrote it;
  ///   `.cancelled`; `.resourceExhausted`, `.permissionDenied` and `.internal` when the system
  ///   refuses.
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

  /// Saves a database in a world of the caller's making.
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

  /// Builds all indexes that are declared; gives back the names of those that are ready, by
  /// pattern.
  private func buildSalvagedIndexes() async throws(DatabaseError) -> [ExactText: Set<ExactText>] {
    await finishWhatWasBegun()
    return try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      var names: [ExactText: Set<ExactText>] = [:]
      for family in try rows.catalog.families(in: rows) {
        for (pattern, entry) in family.collections {
          // One whose tokenizer an app brings is built when the app opens the database.
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
  /// Notes contents that are gone, and who referred to them.
  fileprivate mutating func note(_ lost: [LostContent]) {
    lossCount += lost.count
    losses += lost.prefix(max(0, 1_000 - losses.count)).map { lost in
      Loss(
        reason: "the content \(lost.digest.hex) that it refers to is not stored any more",
        after: lost.document.name, before: lost.document.name)
    }
  }

  /// Notes indexes that are not among those that were built.
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
