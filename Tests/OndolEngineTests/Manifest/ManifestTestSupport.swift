// States of any size for tests of the manifest, made without a file.

import OndolTestKit

@testable import OndolEngine

enum ManifestSamples {
  static let identity = DatabaseIdentity(low: 1, high: 2)

  static func superblock(_ manifest: UInt64 = 1, shards: Int = 1) -> Superblock {
    Superblock(
      identity: identity, epoch: 1, manifest: FileNumber(rawValue: manifest),
      shardCount: UInt32(shards), created: 0, written: 0)
  }

  /// Before the first commit, with log 2.
  static func state(shards: Int = 1, nextFile: UInt64 = 1_000_000) -> ManifestState {
    let number = FileNumber(rawValue: 2)
    return ManifestState(
      nextFile: FileNumber(rawValue: nextFile),
      floor: LogStart(number: number, base: .zero, sequence: .zero, time: 0), newestLog: number,
      shards: Array(repeating: ShardState(), count: shards))
  }

  /// A segment that holds the keys from `place` on to the next, each with a number of bytes.
  static func segment(
    _ number: Int, at place: Int, keyLength: Int = 12, values: [ValueReference] = []
  ) -> SegmentMetadata {
    SegmentMetadata(
      number: FileNumber(rawValue: UInt64(number)), salt: 1, sizeBytes: 100, footerChecksum: 2,
      minKey: key(2 * place, keyLength), maxKey: key(2 * place + 1, keyLength), entries: 1,
      tombstones: 0, rawBytes: 100, minSequence: SequenceNumber(rawValue: 1),
      maxSequence: SequenceNumber(rawValue: 3), valueReferences: values)
  }

  private static func key(_ number: Int, _ length: Int) -> [UInt8] {
    var key: [UInt8] = [0, 0, 16, 1]
    key.appendBigEndian(UInt64(number))
    return key + [UInt8](repeating: 7, count: max(0, length - key.count))
  }

  static func adds(
    _ numbers: Range<Int>, keyLength: Int = 12
  ) -> [ManifestChange] {
    numbers.map { number in
      .addSegment(
        shard: 0, level: 6, run: 0, segment(number, at: number, keyLength: keyLength))
    }
  }

  /// A directory with the log of `state`, a first manifest with `state`, and a superblock.
  static func make(
    _ state: ManifestState, in directory: any Directory, _ environment: Environment,
    rotationSize: Int = 2_000, limits: ManifestLimits = ManifestLimits()
  ) throws -> Manifest {
    let header = LogHeader(
      number: state.floor.number, identity: identity, salt: 3, kind: .normal, base: .zero,
      previous: .zero, previousLength: 0, firstSequence: SequenceNumber.zero.next)
    _ = try LogFile.writeSealed(header, state.floor, directory: directory)
    let superblock = superblock(shards: state.shards.count)
    let manifest = try Manifest.create(
      state, superblock: superblock, directory: directory, environment: environment,
      rotationSize: rotationSize, limits: limits)
    try directory.sync()
    try superblock.write(to: try directory.create(Superblock.name))
    try directory.sync()
    return manifest
  }

  /// Returns what the next open would read.
  static func load(
    from directory: any Directory, limits: ManifestLimits = ManifestLimits()
  ) throws -> Manifest {
    let superblock = try Superblock.read(
      from: try directory.open(Superblock.name, access: .readOnly))
    return try Manifest.load(
      superblock, directory: directory, environment: .memory(), rotationSize: 2_000,
      limits: limits)
  }

  /// The number of the current manifest.
  static func current(in directory: any Directory) throws -> UInt64 {
    try Superblock.read(from: try directory.open(Superblock.name, access: .readOnly))
      .manifest.rawValue
  }
}
