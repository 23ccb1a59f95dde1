// What the shards share: the directory, the manifest, the views, and the thread on which flushes
// and all manifest edits happen. Methods here block and run only on that maintenance thread, one
// after the other, so the manifest needs no lock. Merges run in parallel (see Compaction/) and come
// here for their edit.

internal import Synchronization

/// The files, and the way they become part of the database.
final class Storage: Sendable {
  let directory: any Directory
  /// Where the directory gets its keys.
  let keyed: KeyedDirectory
  /// Held here, so that no other process opens the directory as long as work on it may be running,
  /// even if the engine was released without being closed.
  let lock: any DirectoryLock
  let environment: Environment
  let options: EngineOptions
  let identity: DatabaseIdentity
  let views: ViewHolder
  let sequencer: Sequencer
  let cache: BlockCache
  let valueFiles: ValueFiles
  /// Runs flushes and manifest edits.
  let maintenance: any Worker
  /// Run merges. They yield to all other work.
  let mergers: [any Worker]
  let merging: MergeControl
  let pressure: WritePressure
  let picker: CompactionPicker
  let counters = UpkeepCounters()
  let damaged: DamagedFiles
  /// Shards with a running bulk load.
  let pours = Guarded<Set<Int>>([])
  let manifest: Manifest
  let reserve: SpaceReserve
  /// What an unclean shutdown has left to do, until it is complete.
  let unfinished: Guarded<UnfinishedRecovery?>
  /// Whether no log had ever been written to when the database was opened.
  let isNewborn: Bool
  /// Set until the data recovered after an unclean shutdown is on the device.
  let isRecovering: Atomic<Bool>

  init(
    directory: any Directory, keyed: KeyedDirectory, lock: any DirectoryLock,
    environment: Environment, options: EngineOptions, manifest: Manifest, views: ViewHolder,
    sequencer: Sequencer, cache: BlockCache, valueFiles: ValueFiles, maintenance: any Worker,
    unfinished: UnfinishedRecovery? = nil
  ) {
    self.directory = directory
    self.keyed = keyed
    self.lock = lock
    self.environment = environment
    self.options = options
    identity = manifest.superblock.identity
    self.manifest = manifest
    isNewborn = manifest.state.newestLog == .firstLog
    reserve = SpaceReserve(directory: directory, size: UInt64(options.reserveSize))
    self.unfinished = Guarded(unfinished)
    isRecovering = Atomic(unfinished != nil)
    self.views = views
    self.sequencer = sequencer
    self.cache = cache
    self.valueFiles = valueFiles
    self.maintenance = maintenance
    mergers = (0..<Self.mergerCount).map { number in
      environment.threads.makeWorker(named: "ondol-merge-\(number)", for: .merges)
    }
    merging = MergeControl(dropped: manifest.state.dropped)
    pressure = WritePressure(options, shards: manifest.state.shards.count)
    picker = CompactionPicker(policy: CompactionPolicy(options))
    damaged = DamagedFiles(report: options.reportDamage)
  }

  /// A large merge runs in two halves.
  private static let mergerCount = 2

  /// Performs file work on the maintenance thread. After a failure no further work is done: writing
  /// stops before the thread takes the next job, which might build on data that is not on the
  /// device.
  func perform<R: Sendable>(
    _ work: @escaping @Sendable (Storage) throws(EngineError) -> R
  ) async throws(EngineError) -> R {
    try await maintenance.perform { [self] () throws(EngineError) -> R in try attempt(work) }
  }

  /// Performs file work on the maintenance thread, unless the database was closed before the work
  /// began. In that case, and only in that case, it returns nil and certainly nothing was begun.
  func performUnlessClosed<R: Sendable>(
    _ work: @escaping @Sendable (Storage) throws(EngineError) -> R
  ) async throws(EngineError) -> R? {
    try await maintenance.perform { [self] () throws(EngineError) -> R? in
      if sequencer.failure == .closed { return nil }
      try sequencer.refuseAfterFailure()
      return try carryOut(work)
    }
  }

  /// Performs file work when already on the maintenance thread. Work that fails temporarily must
  /// have undone what it began, and may be tried again. Any other failure stops all writing.
  func attempt<R>(
    _ work: (Storage) throws(EngineError) -> R
  ) throws(EngineError) -> R {
    try sequencer.refuseAfterFailure()
    return try carryOut(work)
  }

  private func carryOut<R>(
    _ work: (Storage) throws(EngineError) -> R
  ) throws(EngineError) -> R {
    do throws(EngineError) {
      return try withReserve { () throws(EngineError) -> R in
        try finishRecovery()
        try manifest.secureFoundation()
        try eraseOtherKeysWherePossible()
        return try work(self)
      }
    } catch {
      throw error.isPassing ? error : sequencer.fail(error)
    }
  }

  // MARK: - Flushing

  /// Writes a sealed memtable, whose commits are all published and synced, as the shard's newest
  /// run. In a small shard the memtable is merged with all existing runs into a single one, unless
  /// some of them cannot be read.
  func flush(_ memtable: Memtable, shard index: Int, mayMerge: Bool) throws(EngineError) {
    let shard = views.current.shards[index]
    let isSmall = isSmall(shard.state, with: memtable)
    let barriers = damaged.barriers
    if isSmall, mayMerge, !shard.state.segments.contains(where: barriers.contains) {
      do throws(EngineError) {
        return try flush(memtable, into: shard.runs, shard: index)
      } catch {
        let state = shard.state
        guard damaged.note(error, state.segments, state.valueFiles.keys) else { throw error }
      }
    }
    try flush(memtable, into: [], shard: index)
  }

  /// Whether each flush rewrites the shard. The raw bytes decide, because a merge reads, compares
  /// and compresses them, and rows that compress well may be many times as large as their files.
  private func isSmall(_ shard: ShardState, with memtable: Memtable) -> Bool {
    let raw = shard.segments.reduce(UInt64(memtable.sizeBytes)) { $0 + $1.rawBytes }
    return raw < picker.policy.smallSize
  }

  /// Merges the memtable with `inputs`, which are all of the shard's runs or none.
  private func flush(
    _ memtable: Memtable, into inputs: [Run], shard index: Int
  ) throws(EngineError) {
    guard let sequences = memtable.sequences else { return }
    let through = sequences.upperBound
    let shard = views.current.shards[index]
    let sources = [RowSource.memtable(MemtableCursor(memtable, upTo: through))]
    var rows = MergeCursor(sources + inputs.map { .run($0.cursor(keepsBlocks: false)) })
    let old = inputs.flatMap(\.segments).map(\.metadata)
    let first = min(sequences.lowerBound, old.map(\.minSequence).min() ?? sequences.lowerBound)
    // Bulk-loaded rows belong below.
    let isOnly =
      inputs.count == shard.runs.count && !pours.withLock { $0.contains(index) }
    let writer = RunWriter(
      files(for: shard.state, merging: old), shard: index, sequences: first...through,
      keepsTombstones: !isOnly, dropped: manifest.state.dropped)
    let isSmall = isSmall(shard.state, with: memtable)
    do throws(EngineError) {
      try rows.seekToFirst()
      try writer.takeAll(&rows)
    } catch {
      discard(writer.made)
      throw error
    }
    do throws(EngineError) {
      try install(
        memtable, through, shard: index, replacing: old, with: writer.output,
        level: isOnly && isSmall ? ShardState.lowestLevel : 0)
    } catch {
      // After any other failure it is unknown whether the manifest lists them.
      if error.isPassing { discard(writer.made) }
      throw error
    }
  }

  /// Puts the result of a flush into effect.
  private func install(
    _ memtable: Memtable, _ through: SequenceNumber, shard index: Int,
    replacing old: [SegmentMetadata], with new: RunOutput, level: Int
  ) throws(EngineError) {
    let run = new.segments.first?.number.rawValue ?? 0
    let floor = sequencer.floor(without: memtable)
    // The floor may be a log that was handed out and whose name is not secured yet.
    let newest = max(manifest.state.newestLog, floor.number)
    let securesLog = newest > manifest.state.newestLog
    let log = securesLog ? sequencer.unsyncedLog(newest) : nil
    if !new.segments.isEmpty || securesLog { try directory.sync() }
    try moveFloor(
      to: floor, newest: newest,
      old.map { .dropSegment(shard: index, number: $0.number) }
        + new.changes(shard: index, level: level, run: run) + [
          .flushed(shard: index, through: through)
        ] + [log].compactMap { $0.map { .nameLog($0) } })
    if securesLog { sequencer.noteSecured(newest) }
    sequencer.remember(memtable, shard: index, through: through)
    adopt(shard: index, without: memtable)
    counters.noteFlush(new.segments)
  }

  // MARK: - Runs

  /// What is needed to write rows of `shard`, including those of `segments`.
  func files(for shard: ShardState, merging segments: [SegmentMetadata]) -> SegmentFiles {
    let gathering = ValueGathering(shard.values, fileSize: options.valueFileSize)
    var options = options
    options.valueFileSize = Int(clamping: gathering.fileSize)
    var emptied = gathering.filesToEmpty(merging: segments)
    if let border = directory.keyring?.change?.border {
      // Values go to the same place as new ones.
      emptied.formUnion(segments.flatMap(\.valueReferences).map(\.file).filter { $0 < border })
    }
    return SegmentFiles(
      directory: directory, numbers: manifest.numbers, identity: identity, options: options,
      random: environment.random,
      emptied: valueFiles.files(emptied.subtracting(damaged.barriers.numbers)))
  }

  /// Puts the result of a merge into effect. Returns false without any change if keyspaces were
  /// dropped since `start`, because the result may contain their rows.
  func install(
    _ changes: [ManifestChange], shard index: Int, _ start: MergeControl.Start
  ) throws(EngineError) -> Bool {
    guard merging.start.generation == start.generation else { return false }
    try manifest.commit(changes)
    adopt(shard: index)
    return true
  }

  /// Makes readers use the runs that the manifest lists, starting with the next snapshot. Files
  /// that the manifest no longer lists are removed together with their last reader.
  func adopt(shard index: Int, without flushed: Memtable? = nil) {
    let old = views.current.shards[index]
    let state = manifest.state.shards[index]
    valueFiles.follow(manifest.state)
    let runs = old.runs(for: state) { segment in
      Segment(
        segment, identity: identity, shard: UInt32(index), directory: directory, cache: cache,
        valueFiles: valueFiles.files(segment.valueReferences))
    }
    views.update(shard: index) { $0.replacingRuns(runs, state, without: flushed) }
    notePressure(changed: index)
    let current = Set(state.segments.map(\.number))
    for segment in old.runs.flatMap(\.segments) where !current.contains(segment.metadata.number) {
      segment.data.removeWhenUnused()
    }
  }

  /// Updates the write pressure from the view. `changed` is a shard whose runs have changed.
  func notePressure(changed: Int? = nil) {
    pressure.update(views.current, changed: changed)
  }

  /// Drops keyspaces. Segments without other data are removed, and merges that began earlier are
  /// invalidated. Keyspaces without rows elsewhere are forgotten at once.
  func drop(_ keyspaces: [UInt32]) throws(EngineError) {
    let state = manifest.state
    let before = manifest.numbers.next
    var (fresh, dropped) = (DroppedKeyspaces(), state.dropped)
    for keyspace in keyspaces where !state.dropped.contains(keyspace) {
      fresh.insert(keyspace, before: before)
      dropped.insert(keyspace, before: before)
    }
    guard !fresh.isEmpty else { return }
    var changes: [ManifestChange] = []
    var remembered = fresh.keyspaces.filter(isInMemory)
    for (index, shard) in state.shards.enumerated() {
      let covered = shard.segments.filter(dropped.covers)
      changes += covered.map { .dropSegment(shard: index, number: $0.number) }
      let others = shard.segments.filter { !dropped.covers($0) }
      remembered += fresh.touched(by: others, of: index, in: state.shards.count)
    }
    if !remembered.isEmpty {
      changes.insert(.dropKeyspaces(Set(remembered).sorted(), before: before), at: 0)
    }
    guard !changes.isEmpty else { return }
    try manifest.commit(changes)
    for index in manifest.state.shards.indices { adopt(shard: index) }
    merging.setDropped(manifest.state.dropped)
  }

  /// Whether a keyspace has rows that are not in any segment yet.
  private func isInMemory(_ keyspace: UInt32) -> Bool {
    let shards = views.current.shards
    let shard = shards[DroppedKeyspaces.shard(of: keyspace, in: shards.count)]
    var first: [UInt8] = []
    first.appendBigEndian(keyspace)
    return ([shard.active] + shard.sealed).contains { memtable in
      let node = memtable.firstNode(
        atOrAfter: first.bytes, upTo: SequenceNumber(rawValue: .max >> 8))
      return node != 0 && DroppedKeyspaces.keyspace(of: memtable.key(of: node)) == keyspace
    }
  }
}
