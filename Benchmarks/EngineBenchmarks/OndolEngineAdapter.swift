// Ondol's engine under measurement, called as its own upper layer calls it: from another module,
// `async` where it is, a batch for each commit, a snapshot for each get and seek, keys below a
// keyspace.

import CPeers
import OndolEngine
import Peers

final class OndolEngineAdapter<Files: OndolFiles>: KeyValueEngine {
  static var name: String { Files.name }
  static var version: String { "in this tree" }
  static var settings: String { Files.settings }

  private let engine: Engine
  private let durability: Durability

  private init(_ engine: Engine, _ durability: Durability) {
    self.engine = engine
    self.durability = durability
  }

  static func open(_ options: OpenOptions) async throws -> OndolEngineAdapter {
    var engineOptions = EngineOptions()
    engineOptions.cacheSize = options.cacheBytes
    // With little memory there are also few descriptors.
    if options.cacheIsAll { engineOptions.fileLimit = 200 }
    let engine = try await Engine.open(
      at: options.directory, options: engineOptions, environment: Files.environment)
    if Files.areKeyed, engine.keyedGroups.isEmpty { _ = try await engine.makeKeyedGroup() }
    return OndolEngineAdapter(engine, options.durability == .process ? .process : .power)
  }

  /// A commit that waits for the device suspends its task and blocks no thread.
  static var blocks: Bool { false }

  func session() -> OndolEngineAdapter { self }

  func write(_ rows: RowList) async throws {
    var batch = Batch()
    let keys = rows.keys.moved(to: Files.keyspace)
    for index in 0..<keys.count {
      batch.put(keys.key(index), rows.value(index))
    }
    _ = try await engine.commit(batch, durability: durability)
  }

  func writeEach(_ rows: RowList) async throws -> [UInt64] {
    let keys = rows.keys.moved(to: Files.keyspace)
    var nanoseconds = [UInt64](repeating: 0, count: keys.count)
    for index in 0..<keys.count {
      let start = peer_now()
      var batch = Batch()
      batch.put(keys.key(index), rows.value(index))
      _ = try await engine.commit(batch, durability: durability)
      nanoseconds[index] = peer_now() - start
    }
    return nanoseconds
  }

  func get(_ keys: KeyList) async throws -> UInt64 {
    var checksum: UInt64 = 0
    let keys = keys.moved(to: Files.keyspace)
    for index in 0..<keys.count {
      let isFound = try engine.snapshot().withValue(of: keys.key(index)) { value in
        checksum = peer_fold(checksum, sum(value))
      }
      guard isFound else { throw PeerError(Self.name, "get", "not found") }
    }
    return checksum
  }

  func scan() async throws -> Scan {
    var cursor = try engine.snapshot().cursor(from: Files.keyspace, to: Files.nextKeyspace)
    var scan = Scan(count: 0, checksum: 0)
    try cursor.seekToFirst()
    while cursor.isValid {
      try add(cursor, to: &scan)
      try cursor.next()
    }
    return scan
  }

  func seek(_ keys: KeyList, limit: Int) async throws -> UInt64 {
    var scan = Scan(count: 0, checksum: 0)
    let keys = keys.moved(to: Files.keyspace)
    for index in 0..<keys.count {
      var cursor = try engine.snapshot().cursor(from: Files.keyspace, to: Files.nextKeyspace)
      try cursor.seek(atOrAfter: keys.key(index))
      var rows = 0
      while cursor.isValid {
        try add(cursor, to: &scan)
        rows += 1
        if rows == limit { break }
        try cursor.next()
      }
    }
    return scan.checksum
  }

  @inline(__always)
  private func add(_ cursor: borrowing Cursor, to scan: inout Scan) throws {
    let key = cursor.key
    let name = key.extracting(droppingFirst: KeyList.prefixLength)
    scan.checksum = peer_fold(scan.checksum, sum(name))
    scan.checksum = peer_fold(scan.checksum, sum(try cursor.value))
    scan.count += 1
  }

  func settle() async throws {
    try await engine.compact()
  }

  func close() async throws {
    try await engine.close()
  }
}

/// The sum of every byte, as for the peers.
@inline(__always)
private func sum(_ bytes: RawSpan) -> UInt64 {
  // Safe: the function reads exactly the bytes of the span.
  unsafe bytes.withUnsafeBytes { unsafe peer_sum($0.baseAddress, $0.count) }
}

extension KeyList {
  /// The key at `index` with its keyspace, borrowed.
  @_lifetime(borrow self)
  fileprivate func key(_ index: Int) -> RawSpan {
    bytes.bytes.extracting(index * Self.stride..<(index + 1) * Self.stride)
  }
}

extension RowList {
  /// The value at `index`, borrowed.
  @_lifetime(borrow self)
  fileprivate func value(_ index: Int) -> RawSpan {
    values.bytes.extracting(index * valueLength..<(index + 1) * valueLength)
  }
}
