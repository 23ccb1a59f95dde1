// What the shards share: the directory, the manifest, the views, and the thread on which all of
// their file work happens. Methods here block and run on that maintenance thread only, one after
// the other, so the manifest needs no lock of its own.

/// Files and how they become part of the database.
final class Storage: Sendable {
  let directory: any Directory
  /// Held here, so that nobody else opens the directory as long as work on it may be under way, even
  /// when the engine was let go without being closed.
  let lock: any DirectoryLock
  let environment: Environment
  let options: EngineOptions
  let identity: DatabaseIdentity
  let views: ViewHolder
  let sequencer: Sequencer
  let cache: BlockCache
  /// All file work of flushes and merges.
  let maintenance: any Worker
  private let manifest: Manifest
  /// No log was ever written to when the database was opened.
  private let isNewborn: Bool

  init(
    directory: any Directory, lock: any DirectoryLock, environment: Environment,
    options: EngineOptions,
    manifest: Manifest, views: ViewHolder, sequencer: Sequencer, cache: BlockCache,
    maintenance: any Worker
  ) {
    self.directory = directory
    self.lock = lock
    self.environment = environment
    self.options = options
    identity = manifest.superblock.identity
    self.manifest = manifest
    isNewborn = manifest.state.newestLog == Opening.firstLog
    self.views = views
    self.sequencer = sequencer
    self.cache = cache
    self.maintenance = maintenance
  }

  /// Does file work on the maintenance thread. Once some has failed, no more is done: writing is
  /// stopped before the thread takes the next job, which might build on what the device lacks.
  func perform(
    _ work: @escaping @Sendable (Storage) throws(EngineError) -> Void
  ) async throws(EngineError) {
    try await perform(securing: true, work)
  }

  /// As above; whether what opening read must be on the device before.
  private func perform(
    securing: Bool, _ work: @escaping @Sendable (Storage) throws(EngineError) -> Void
  ) async throws(EngineError) {
    try await maintenance.perform { [self] () throws(EngineError) in
      try sequencer.refuseAfterFailure()
      do throws(EngineError) {
        if securing { try manifest.secureFoundation() }
        try work(self)
      } catch {
        throw sequencer.fail(error)
      }
    }
  }

  // MARK: - Flushing

  /// Writes a sealed memtable, all of whose commits are published and synced, as the shard's newest
  /// run.
  func flush(_ memtable: Memtable, shard index: Int) throws(EngineError) {
    guard let through = memtable.sequences?.upperBound else { return }
    let source = MemtableCursor(memtable, upTo: through)
    let shard = views.current.shards[index]
    var rows = MergeCursor([.memtable(source)])
    let run = try write(
      &rows, shard: index, level: 0, keepingTombstones: !shard.runs.isEmpty,
      sequences: memtable.sequences ?? through...through)

    let floor = sequencer.floor(without: memtable)
    try manifest.commit(
      run.changes + [
        .flushed(shard: index, through: through),
        .logs(floor: floor, newest: manifest.state.newestLog),
      ])
    views.update(shard: index) { shard in
      shard.replacing(memtable, with: run.run, flushedThrough: through)
    }
    sequencer.forgetLogs(before: floor.number)
    try removeLogs(before: floor.number)
  }

  /// Merges all runs of a shard into one, without tombstones, since nothing is below it.
  func merge(shard index: Int) throws(EngineError) {
    let inputs = views.current.shards[index].runs
    let segments = inputs.flatMap(\.segments)
    guard let first = segments.map(\.metadata.minSequence).min(),
      let last = segments.map(\.metadata.maxSequence).max()
    else { return }
    var rows = MergeCursor(inputs.map { .run($0.cursor(keepsBlocks: false)) })
    let output = try write(
      &rows, shard: index, level: 1, keepingTombstones: false, sequences: first...last)
    let drops = segments.map {
      ManifestChange.dropSegment(shard: index, number: $0.metadata.number)
    }
    try manifest.commit(drops + output.changes)
    views.update(shard: index) { $0.merging(inputs, into: output.run) }
    for segment in segments { segment.removeWhenUnused() }
  }

  /// A run on disk and the edits that will make it count.
  private struct NewRun {
    var run: Run?
    var changes: [ManifestChange]
  }

  /// Writes rows into segments and makes them durable; no run when there are none.
  private func write(
    _ rows: inout MergeCursor, shard: Int, level: Int, keepingTombstones: Bool,
    sequences: ClosedRange<SequenceNumber>
  ) throws(EngineError) -> NewRun {
    var segments: [SegmentMetadata] = []
    try rows.seekToFirst()
    while rows.isValid {
      if !keepingTombstones, rows.kind == .delete {
        try rows.next()
        continue
      }
      segments.append(
        try writeSegment(
          &rows, shard: shard, keepingTombstones: keepingTombstones, sequences: sequences))
    }
    guard let id = segments.first?.number.rawValue else { return NewRun(run: nil, changes: []) }
    try directory.sync()
    let changes = segments.map {
      ManifestChange.addSegment(shard: shard, level: level, run: id, $0)
    }
    return NewRun(run: makeRun(segments, shard: shard), changes: changes)
  }

  private func writeSegment(
    _ rows: inout MergeCursor, shard: Int, keepingTombstones: Bool,
    sequences: ClosedRange<SequenceNumber>
  ) throws(EngineError) -> SegmentMetadata {
    let number = manifest.allocate()
    let file = try directory.create(number.segmentName)
    var segmentOptions = SegmentOptions()
    segmentOptions.blockSize = options.blockSize
    segmentOptions.compress = options.compress
    let writer = SegmentWriter(
      file: file, number: number, salt: environment.random(), identity: identity,
      shard: UInt32(shard), options: segmentOptions)
    while rows.isValid, writer.rawBytesWritten < UInt64(options.segmentSize) {
      if keepingTombstones || rows.kind == .put {
        try writer.add(rows.kind, key: rows.key, value: rows.value)
      }
      try rows.next()
    }
    let metadata = try writer.finish(
      minSequence: sequences.lowerBound, maxSequence: sequences.upperBound)
    try file.sync()
    return metadata
  }

  func makeRun(_ segments: [SegmentMetadata], shard: Int) -> Run {
    Self.makeRun(
      segments, shard: shard, identity: identity, directory: directory, cache: cache)
  }

  static func makeRun(
    _ segments: [SegmentMetadata], shard: Int, identity: DatabaseIdentity,
    directory: any Directory, cache: BlockCache
  ) -> Run {
    Run(
      segments.map { metadata in
        Segment(
          metadata, identity: identity, shard: UInt32(shard), directory: directory, cache: cache)
      })
  }

  // MARK: - Logs

  /// Makes the next log, unless one waits already.
  func makeSpareLog() async throws(EngineError) {
    try await perform { (storage) throws(EngineError) in
      guard !storage.sequencer.hasSpareLog else { return }
      let spare = try storage.createLog()
      try storage.secure(spare.number)
      storage.sequencer.offer(spare)
    }
  }

  /// Makes a log for commits that wait for one, and hands it out at once: what survives a power cut
  /// waits for `secureFirstLog()`, what survives a kill need not. Not so in a database just made,
  /// whose superblock an opening must find before it finds a log with commits.
  func makeFirstLog() async throws(EngineError) {
    try await perform(securing: isNewborn) { (storage) throws(EngineError) in
      guard !storage.sequencer.hasSpareLog, !storage.sequencer.hasWritten else { return }
      storage.sequencer.offer(try storage.createLog())
    }
  }

  /// Makes sure that the log handed out by `makeFirstLog()` is found after a power cut. Done on the
  /// maintenance thread, without a task: commits that try again and again may keep the pool busy
  /// until this is done.
  func secureFirstLog() {
    maintenance.enqueue { [self] in
      guard let newest = sequencer.newestLog, newest > manifest.state.newestLog,
        (try? sequencer.refuseAfterFailure()) != nil
      else { return }
      do throws(EngineError) {
        try manifest.secureFoundation()
        try secure(newest)
      } catch {
        _ = sequencer.fail(error)
      }
    }
  }

  private func createLog() throws(EngineError) -> SpareLog {
    let number = manifest.allocate()
    let file = try directory.create(number.logName)
    return SpareLog(number: number, file: file, salt: environment.random())
  }

  /// Makes a log's name durable and puts it in the manifest, which comes before the first sync of
  /// its commits: so a log that is missing later is known to be.
  private func secure(_ number: FileNumber) throws(EngineError) {
    try directory.sync()
    try manifest.commit([.logs(floor: manifest.state.floor, newest: number)])
    sequencer.noteSecured(number)
  }

  /// Whether an opening would find commits in its logs.
  var hasCommitsInLogs: Bool {
    let end = sequencer.end
    return end.starts.first?.sequence != end.sequence
  }

  private func removeLogs(before floor: FileNumber) throws(EngineError) {
    for name in try directory.list() {
      guard let number = FileNumber.parse(name, prefix: "LOG-"), number < floor else { continue }
      try directory.remove(name)
    }
  }

  /// Ends the line of commits with a sealed, empty log, so that the next opening has nothing to
  /// replay. Everything must be flushed.
  func sealLog() throws(EngineError) {
    let end = sequencer.end
    let number = manifest.allocate()
    let salt = environment.random()
    let start = LogStart(number: number, base: end.end, sequence: end.sequence, time: end.time)
    let header = LogHeader(
      number: number, identity: identity, salt: salt, kind: .normal, base: start.base,
      previous: end.number, previousLength: end.length, firstSequence: end.sequence.next)
    try LogFile.writeSealed(header, start, directory: directory)
    try manifest.commit([.logs(floor: start, newest: number)])
    try removeLogs(before: number)
  }
}
