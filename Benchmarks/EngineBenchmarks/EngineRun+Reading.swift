// Reading from a settled and reopened database: gets, scans and seeks, with a cache that holds
// everything, with a smaller one, and from a small database.

import BenchmarkKit
import CPeers
import Peers

extension EngineRun {
  mutating func read() async throws {
    try await reopen()
    let engine = try await open()
    try await warm(engine)
    try await measure(.getUniform, queries.uniform, perPass: plan.getsPerPass) {
      try await engine.get($0)
    }
    if plan.includes(.getHot) { _ = try await engine.get(queries.hot[0]) }
    try await measure(.getHot, queries.hot, perPass: plan.hotGetsPerPass) {
      try await engine.get($0)
    }
    try await measure(
      .fullScan, Array(repeating: KeyList(), count: plan.scans), perPass: plan.documents
    ) { _ in try await engine.scan().checksum }
    try await measure(.seek, queries.seeks, perPass: plan.seeksPerPass * 1_000) {
      try await engine.seek($0, limit: Plan.rowsPerSeek)
    }
    try await measure(.seekOne, queries.seeks, perPass: plan.seeksPerPass * 1_000) {
      try await engine.seek($0, limit: 1)
    }
    noteMemory(.residentMemory, \.residentBytes)
    try await engine.close()
  }

  /// Opens the closed database and gets one value. Its pages are in the system's cache.
  private mutating func reopen() async throws {
    guard plan.includes(.reopen) else { return }
    var times: [Double] = []
    var checksums: [UInt64] = []
    for key in queries.reopens {
      let start = peer_now()
      let engine = try await open()
      checksums.append(try await engine.get(key))
      times.append(Double(peer_now() - start) / 1e6)
      try await engine.close()
    }
    note(
      .reopen, median(times), checksum: fold(checksums),
      spread: Spread(microseconds: times.map { $0 * 1e3 }))
  }

  /// Reads the same data through a cache that is smaller than the data.
  mutating func readLimited() async throws {
    let engine = try await open(cacheBytes: Plan.limitedCacheBytes)
    try await warm(engine)
    try await measure(.getLimited, queries.limited, perPass: plan.limitedGetsPerPass) {
      try await engine.get($0)
    }
    noteMemory(.residentLimited, \.residentBytes)
    try await engine.close()
  }

  /// The same with a limit on the process's memory, whether the engine or the system keeps the data
  /// in it.
  mutating func readEqual() async throws {
    let engine = try await open(cacheBytes: Plan.limitedCacheBytes)
    _ = try await engine.get(queries.limited[0])
    try await measure(
      .getEqual, queries.equal, perPass: plan.equalGetsPerPass, single: queries.equalSingle
    ) { try await engine.get($0) }
    try await engine.close()
  }

  /// Reads a database of the usual size in apps.
  mutating func readSmall() async throws {
    let loading = try await open(.small)
    _ = try await write(0..<plan.documentsSmall, to: loading)
    try await loading.settle()
    try await loading.close()
    writeOutEverything()

    let engine = try await open(.small)
    _ = try await engine.scan()
    _ = try await engine.get(queries.small[0])
    try await measure(.getSmall, queries.small, perPass: plan.getsPerPass) {
      try await engine.get($0)
    }
    try await engine.close()
  }
}
