// Rows that are poured: written into segments at once, past the log and the memtables, because they
// can be derived again. They are of one keyspace, without values, and derived from a snapshot, so
// they are as old as it is: what commits have changed since lies above them, as a put or as a
// tombstone, and what lies below is older.
//
// That holds as long as no merge takes newer rows below the place of the poured ones, or leaves out
// a tombstone that hides one of them. So merges of the shard do not begin while rows are poured,
// and flushes keep every tombstone. Nothing waits for that: where a merge is under way, rows are
// not poured.

/// A pour into one keyspace. To be ended.
package struct Pour: Sendable {
  /// What the rows are derived from.
  package let snapshot: Snapshot
  private let storage: Storage
  private let shard: Shard
  private let index: Int
  private let start: MergeControl.Start

  init(_ storage: Storage, _ shard: Shard, _ index: Int) {
    self.storage = storage
    self.shard = shard
    self.index = index
    start = storage.merging.start
    let (view, sequence) = storage.views.snapshot
    snapshot = Snapshot(view, sequence)
  }

  /// Lets merges begin again.
  package func end() async {
    await shard.endPour()
  }

  /// Writes rows with these keys, sorted in each batch, and has everybody see them: all or none.
  /// False, and nothing has happened, when keyspaces were dropped meanwhile.
  package func write(_ batches: [KeyBatch]) async throws(EngineError) -> Bool {
    guard let largest = batches.max(by: { $0.count < $1.count }), !largest.isEmpty else {
      return true
    }
    // What they are derived from must survive whatever they survive.
    try await storage.sequencer.synchronize()
    let middle = largest.withKey(at: largest.count / 2) { $0.array }
    let places = batches.map { $0.place(of: middle.bytes) }
    let halves = [
      batches.indices.map { 0..<places[$0] },
      batches.indices.map { places[$0]..<batches[$0].count },
    ]
    async let first = attempt(batches, halves[0], storage.mergers[0])
    let second = await attempt(batches, halves[1], storage.mergers[storage.mergers.count - 1])
    let outputs = await [first, second]
    let made = outputs.flatMap(\.made)
    if let failure = outputs.compactMap(\.failure).first {
      guard failure.isPassing || failure == .closed else { throw storage.sequencer.fail(failure) }
      storage.discard(made)
      throw failure
    }
    let isInstalled: Bool?
    do throws(EngineError) {
      isInstalled = try await install(outputs.flatMap(\.segments))
    } catch {
      // After any other failure nobody knows whether the manifest names the files.
      guard error.isPassing else { throw storage.sequencer.fail(error) }
      storage.discard(made)
      throw error
    }
    if isInstalled != true { storage.discard(made) }
    guard let isInstalled else { throw .closed }
    return isInstalled
  }

  /// What one half came to.
  private struct Half: Sendable {
    var segments: [SegmentMetadata] = []
    var made: [String] = []
    var failure: EngineError?
  }

  private func attempt(
    _ batches: [KeyBatch], _ ranges: [Range<Int>], _ worker: any Worker
  ) async -> Half {
    let files = storage.files(for: snapshot.view.shards[index].state, merging: [])
    do throws(EngineError) {
      return try await worker.perform { [self] () throws(EngineError) in
        let writer = RunWriter(
          files, shard: index, sequences: snapshot.sequence...snapshot.sequence,
          keepsTombstones: true, dropped: DroppedKeyspaces())
        var half = Half()
        do throws(EngineError) {
          try Self.merge(batches, ranges, into: writer)
          half.segments = writer.output.segments
        } catch {
          half.failure = error
        }
        half.made = writer.made
        return half
      }
    } catch {
      return Half(failure: error)
    }
  }

  /// Hands the keys at the places of each batch over in their order, each once.
  private static func merge(
    _ batches: [KeyBatch], _ ranges: [Range<Int>], into writer: RunWriter
  ) throws(EngineError) {
    var places = ranges.map(\.lowerBound)
    var last: (batch: Int, place: Int)?
    while true {
      var least: Int?
      for batch in batches.indices where places[batch] < ranges[batch].upperBound {
        guard let best = least else {
          least = batch
          continue
        }
        let order = batches[batch].compare(places[batch], with: batches[best], at: places[best])
        if order < 0 { least = batch }
      }
      guard let batch = least else { break }
      let isRepeated =
        last.map { last in
          batches[batch].compare(places[batch], with: batches[last.batch], at: last.place) == 0
        } ?? false
      if !isRepeated {
        try batches[batch].withKey(at: places[batch]) { (key) throws(EngineError) in
          try writer.take(key)
        }
      }
      last = (batch, places[batch])
      places[batch] += 1
    }
    try writer.finish()
  }

  /// Nil when the database is being closed; then nothing has changed.
  private func install(_ segments: [SegmentMetadata]) async throws(EngineError) -> Bool? {
    let run = segments.first?.number.rawValue ?? 0
    let changes = RunOutput(segments: segments).changes(shard: index, level: 0, run: run)
    let isInstalled = try await storage.performUnlessClosed {
      [self] (storage) throws(EngineError) -> Bool? in
      if storage.merging.isStopped { return nil }
      try storage.directory.sync()
      return try storage.install(changes, shard: index, start)
    }
    return isInstalled ?? nil
  }
}
