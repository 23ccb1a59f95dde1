// The cost of opening after a process was killed. One process fills Ondol's logs and ends without
// closing anything, and another one opens copies of the files. The rows go to two keyspaces in
// different shards, because one shard would flush its memtable before it has as much.

import BenchmarkKit
import CPeers
import Foundation
import OndolEngine
import Peers

struct OndolRecovery {
  private static let keyspaces: [[UInt8]] = [[0, 0, 0x10, 0], [0, 0, 0x20, 0]]
  private static let copies = 3
  /// The approximate size in the log of a commit of one row, in addition to its key and value.
  private static let frameBytes = 52

  private let plan: Plan
  private let dataset: Dataset
  private let directory: String
  private let rowCount: Int

  init(_ run: EngineRun) {
    plan = run.plan
    dataset = run.dataset
    directory = run.directory + "/crashed"
    rowCount = Plan.recoveryBytes / (plan.valueLength + KeyList.stride + Self.frameBytes)
  }

  private var options: EngineOptions {
    var options = EngineOptions()
    options.cacheSize = Plan.cacheBytes
    return options
  }

  private func key(_ number: Int) -> [UInt8] {
    let (high, low) = dataset.key(number)
    let words = [high, low].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
    }
    return Self.keyspaces[number % 2] + words
  }

  private func value(_ number: Int) -> [UInt8] {
    var value: [UInt8] = []
    dataset.appendValue(number, to: &value)
    return value
  }

  /// Fills the logs. The caller ends its process without closing.
  func crash() async throws {
    let engine = try await Engine.open(at: directory, options: options)
    for number in 0..<rowCount {
      var batch = Batch()
      batch.put(key(number).bytes, value(number).bytes)
      _ = try await engine.commit(batch, durability: .process)
    }
  }

  /// Opens copies of the files and reads the last row. Returns the median in milliseconds.
  func recover() async throws -> Double {
    var times: [Double] = []
    for index in 0..<Self.copies {
      let copy = "\(directory)-\(index)"
      try FileManager.default.copyItem(atPath: directory, toPath: copy)
      writeOutEverything()
      let key = key(rowCount - 1)
      let start = peer_now()
      let engine = try await Engine.open(at: copy, options: options)
      let found = try await engine.snapshot().get(key)
      times.append(Double(peer_now() - start) / 1e6)
      guard found == value(rowCount - 1) else {
        throw PeerError("Ondol", "recovery", "the last commit is missing")
      }
      try await engine.close()
      try FileManager.default.removeItem(atPath: copy)
    }
    return median(times)
  }
}
