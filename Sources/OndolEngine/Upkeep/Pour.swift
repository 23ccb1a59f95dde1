// A bulk load writes rows directly into segments, without the log and the memtables, because the
// rows can be derived again. The rows belong to one keyspace, have no values, and are derived from
// a snapshot. So they are as old as the snapshot: later changes by commits lie above them, as a put
// or as a tombstone, and everything below them is older.
//
// This holds as long as no merge moves newer rows below the place of the loaded ones, or removes a
// tombstone that hides one of them. So no merge of the shard begins during a bulk load, and flushes
// keep every tombstone. No work waits for a running merge: the bulk load simply does not take
// place.

/// A bulk load into one keyspace. The caller must end it.
package struct Pour: Sendable {
  /// The snapshot that the rows are derived from.
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

  /// Allows merges to begin again.
  package func end() async {
    await shard.endPour()
  }

  /// Writes rows with these keys, which are sorted in each batch, and makes either all of them
  /// visible or none. Returns false without any change if keyspaces were dropped meanwhile.
  package func write(_ batches: [KeyBatch]) async throws(EngineError) -> Bool {
    guard let largest = batches.max(by: { $0.count < $1.count }), !largest.isEmpty else {
      return true
    }
    // The commits that the rows derive from must be at least as durable as the rows.
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
      // After any other failure it is unknown whether the manifest lists the files.
      guard error.isPassing else { throw storage.sequencer.fail(error) }
      storage.discard(made)
      throw error
    }
    if isInstalled != true { storage.discard(made) }
    guard let isInstalled else { throw .closed }
    return isInstalled
  }

  /// The result of one half.
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

  /// Passes on the keys at the positions of each batch, in order and without duplicates.
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

  /// Nil if the database is being closed. Then nothing has changed.
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
