// What the shards share: the directory, the manifest, the views, and the thread on which all of
// their file work happens. Methods here block and run on that maintenance thread only, one after
// the other, so the manifest needs no lock of its own.

/// Files and how they become part of the database.
final class Storage: Sendable {
  let directory: any Directory
  let environment: Environment
  let options: EngineOptions
  let identity: DatabaseIdentity
  let views: ViewHolder
  let sequencer: Sequencer
  let cache: BlockCache
  /// All file work of flushes and merges.
  let maintenance: any Worker
  let manifest: Manifest
  /// No log was ever written to when the database was opened.
  let isNewborn: Bool

  init(
    directory: any Directory, environment: Environment, options: EngineOptions,
    manifest: Manifest, views: ViewHolder, sequencer: Sequencer, cache: BlockCache,
    maintenance: any Worker
  ) {
    self.directory = directory
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
  func perform(
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
    sequencer.remember(memtable, shard: index, through: through)
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
}
