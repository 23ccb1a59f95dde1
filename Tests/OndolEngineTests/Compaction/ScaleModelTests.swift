// The compaction policy at sizes that no test loads: a shard of which only sizes are known, with
// rows evenly over the keys. It computes in a second what a load of many gigabytes writes, its
// largest number of runs, and the sizes of its merges.

import Testing

@testable import OndolEngine

private func bucketKey(_ bucket: Int, last: Bool = false) -> [UInt8] {
  [UInt8(bucket >> 8), UInt8(bucket & 255), last ? 1 : 0]
}

/// Keys are counted in buckets. Every segment is a range of buckets, with a number of bytes in
/// each.
private struct SizedShard {
  static let buckets = 1_024

  var shard = ShardState()
  var bytes: [FileNumber: (first: Int, perBucket: [UInt64])] = [:]
  var nextFile: UInt64 = 1
  var written: UInt64 = 0
  var segmentSize: UInt64

  init(segmentSize: UInt64) {
    self.segmentSize = segmentSize
  }

  mutating func write(
    _ perBucket: [UInt64], _ level: Int, id: UInt64?, cuts: [[UInt8]] = []
  ) throws {
    let run = id ?? nextFile
    var first = 0
    var sum: UInt64 = 0
    for (bucket, size) in perBucket.enumerated() {
      let isCut = cuts.contains(bucketKey(bucket))
      if sum >= segmentSize || (isCut && sum > 0) {
        try add(Array(perBucket[first..<bucket]), from: first, sum, level, run)
        (first, sum) = (bucket, 0)
      }
      if sum == 0 { first = bucket }
      sum += size
    }
    if sum > 0 { try add(Array(perBucket[first...]), from: first, sum, level, run) }
  }

  private mutating func add(
    _ perBucket: [UInt64], from first: Int, _ size: UInt64, _ level: Int, _ run: UInt64
  ) throws {
    let number = FileNumber(rawValue: nextFile)
    nextFile += 1
    let sequence = SequenceNumber(rawValue: number.rawValue)
    let last = first + (perBucket.lastIndex { $0 > 0 } ?? 0)
    bytes[number] = (first, perBucket)
    written += size
    try shard.add(
      SegmentMetadata(
        number: number, salt: 0, sizeBytes: size, footerChecksum: 0, minKey: bucketKey(first),
        maxKey: bucketKey(last, last: true), entries: size / 100, tombstones: 0, rawBytes: size,
        minSequence: sequence, maxSequence: sequence), level: level, run: run)
  }

  mutating func carryOut(_ plan: CompactionPlan) throws {
    for segment in plan.segments { _ = shard.drop(segment.number) }
    if plan.isMove {
      for segment in plan.segments { try shard.add(segment, level: plan.outputLevel, run: 0) }
      return
    }
    var sums = [UInt64](repeating: 0, count: Self.buckets)
    for segment in plan.segments {
      guard let (first, perBucket) = bytes.removeValue(forKey: segment.number) else { continue }
      for (index, size) in perBucket.enumerated() { sums[first + index] += size }
    }
    try write(sums, plan.outputLevel, id: plan.outputLevel == 0 ? nil : 0, cuts: plan.cuts)
  }
}

@Suite struct `A load of many gigabytes` {
  private let megabyte: UInt64 = 1 << 20

  @Test(arguments: [(gigabytes: 2, most: 7.5), (gigabytes: 10, most: 9.5)])
  func `writes few times what it loads, in merges whose size depends on new data`(
    gigabytes: Int, most: Double
  ) throws {
    let picker = CompactionPicker(policy: CompactionPolicy(EngineOptions()))
    var model = SizedShard(segmentSize: picker.policy.segmentSize)
    let flush = [UInt64](repeating: 16 * megabyte / 1_024, count: SizedShard.buckets)
    let total = UInt64(gigabytes) << 30
    var loaded: UInt64 = 0
    var (runs, largestPiece): (Int, UInt64) = (0, 0)
    while loaded < total {
      try model.write(flush, 0, id: nil)
      loaded += 16 * megabyte
      while let plan = picker.next(model.shard) {
        let takesLowest = plan.inputs.contains { $0.level == ShardState.lowestLevel }
        if takesLowest { largestPiece = max(largestPiece, plan.sizeBytes) }
        try model.carryOut(plan)
      }
      runs = max(runs, model.shard.runs.count)
    }
    let amplification = Double(model.written) / Double(loaded)
    #expect(amplification <= most, "\(gigabytes) GiB in \(runs) runs")
    #expect(runs <= 10)
    #expect(largestPiece <= 2 * picker.policy.pieceSize, "what is merged with the lowest run")
  }
}
