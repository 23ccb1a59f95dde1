// The options of a model trial: any mixture of sizes, most of them so small that a few commits seal
// a memtable, fill a log and start a merge. The answers must be the same with any options.

package import OndolEngine

extension EngineOptions {
  /// Random options. About one database in four is so roomy that nothing is flushed without a
  /// request.
  package static func drawn(_ random: inout SeededRandom) -> EngineOptions {
    var options = EngineOptions()
    let isRoomy = random.chance(1, in: 4)
    options.shardCount = random.pick([1, 1, 2, 3, 4, 8])
    options.cacheSize = random.pick([0, 1, 4 << 10, 64 << 10, 1 << 20, 64 << 20])
    options.memtableSize =
      isRoomy ? roomyMemtable : random.pick([512, 1 << 10, 4 << 10, 16 << 10, 64 << 10])
    options.sealedMemtables = 1 + random.below(4)
    options.logSize =
      isRoomy ? roomyMemtable : random.pick([4 << 10, 8 << 10, 16 << 10, 64 << 10, 16 << 20])
    options.deferredBytes = random.pick([0, 100, 1 << 10, 16 << 10, 1 << 20])
    options.commitLimit = random.pick([24 << 10, 64 << 20, 64 << 20])
    options.runLimit = random.pick([1, 1, 2, 3, 5, 8])
    options.smallShardSize = random.pick([0, 1 << 10, 8 << 10, 64 << 10, 8 << 20])
    options.segmentSize = random.pick([1, 1 << 10, 4 << 10, 32 << 10, 64 << 20])
    options.blockSize = random.pick([512, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10])
    options.valueThreshold = random.pick([0, 1, 64, 512, 4 << 10, .max])
    options.valueFileSize = random.pick([1, 1 << 10, 16 << 10, 64 << 20])
    options.manifestSize = random.pick([500, 2 << 10, 16 << 10, 64 << 10])
    // Half of the manifest sizes have edits in parts.
    if [500, 16 << 10].contains(options.manifestSize) { options.manifestFrameSize = 200 }
    // Every other database pours the rows of indexes however few they are.
    options.smallestPour = [512, 4 << 10, 64 << 10].contains(options.blockSize) ? 1 : 16_384
    options.compress = random.chance(1, in: 2)
    options.historyRetention = random.pick([nil, nil, 0, 64 << 10] as [Int?]).map {
      HistoryRetention(microseconds: .max, bytes: UInt64($0))
    }
    return options
  }

  private static let roomyMemtable = 8 << 20

  /// Whether a trial's rows fit in memtables and logs, so that only a request flushes them.
  var isRoomy: Bool { memtableSize >= Self.roomyMemtable && logSize >= Self.roomyMemtable }
}

extension EngineOptions {
  /// A failed trial's description.
  var summary: String {
    "shards \(shardCount), cache \(cacheSize), memtable \(memtableSize), "
      + "sealed \(sealedMemtables), log \(logSize), deferred \(deferredBytes), "
      + "commit \(commitLimit), runs \(runLimit), small \(smallShardSize), "
      + "segment \(segmentSize), block \(blockSize), "
      + "values from \(valueThreshold) in files of \(valueFileSize), "
      + "poured from \(smallestPour), "
      + "manifest \(manifestSize), kept logs \(historyRetention.map { "\($0.bytes)" } ?? "none"), "
      + "\(compress ? "compressed" : "plain")"
  }
}
