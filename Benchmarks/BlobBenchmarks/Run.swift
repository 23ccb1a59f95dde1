// One engine's run. Every content differs from all others and is incompressible, puts follow each
// other, and gets find the contents in the system's memory.

import BenchmarkKit
import Crypto
import Foundation

enum Workload: String, SuiteWorkload {
  case putSmall = "put 10 KB"
  case getSmall = "get 10 KB"
  case putMegabyte = "put 1 MB"
  case hashMegabyte = "SHA-256 of 1 MB"
  case getMegabyte = "get 1 MB"
  case putLarge = "put 100 MB"
  case streaming = "memory for 1 GB in and out"

  var unit: String {
    switch self {
    case .putSmall, .getSmall: "µs"
    case .streaming: "MB"
    default: "MB/s"
    }
  }

  var lowerIsBetter: Bool { unit != "MB/s" }

  var goal: Double? {
    switch self {
    case .getSmall: 15
    case .streaming: 16
    default: nil
    }
  }

  /// The size of a content in bytes.
  var length: Int {
    switch self {
    case .putSmall, .getSmall: 10_000
    case .putMegabyte, .getMegabyte, .hashMegabyte: 1_000_000
    case .putLarge: 100_000_000
    case .streaming: 1_000_000_000
    }
  }
}

struct Plan: Codable {
  var quick: Bool
  var workloads: [Workload] = []

  init(quick: Bool) {
    self.quick = quick
  }

  func count(_ workload: Workload) -> Int {
    switch workload {
    case .putSmall, .getSmall: quick ? 300 : 1_000
    case .putMegabyte, .getMegabyte, .hashMegabyte: quick ? 40 : 150
    case .putLarge: quick ? 2 : 4
    case .streaming: 1
    }
  }

  /// The number of passes over the contents.
  var passes: Int { quick ? 5 : 10 }
}

/// Random bytes in chunks, with a total length.
struct NoiseChunks: AsyncSequence, Sendable {
  var noise: [UInt8]
  var chunk: Int
  var length: Int

  func makeAsyncIterator() -> Iterator { Iterator(chunks: self) }

  struct Iterator: AsyncIteratorProtocol {
    fileprivate var chunks: NoiseChunks
    private var given = 0

    fileprivate init(chunks: NoiseChunks) { self.chunks = chunks }

    mutating func next() async -> [UInt8]? {
      let count = Swift.min(chunks.chunk, chunks.length - given)
      guard count > 0 else { return nil }
      let start = given % (chunks.noise.count - count)
      given += count
      return Array(chunks.noise[start..<(start + count)])
    }
  }
}

struct BlobRun {
  private let store: any BlobStore
  private let plan: Plan
  private let noise: [UInt8]

  init(_ store: any BlobStore, _ plan: Plan) {
    self.store = store
    self.plan = plan
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    noise = (0..<100_000_000).map { _ in
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return UInt8(truncatingIfNeeded: state >> 32)
    }
  }

  func measure() async throws -> [String: Double] {
    var values: [String: Double] = [:]
    for put in [Workload.putSmall, .putMegabyte, .putLarge] {
      let get: Workload? =
        put == .putSmall ? .getSmall : put == .putMegabyte ? .getMegabyte : nil
      guard plan.workloads.contains(put) || get.map(plan.workloads.contains) == true else {
        continue
      }
      values[put.rawValue] = try await measurePut(put)
      if let get { values[get.rawValue] = try await measureGet(get) }
    }
    if plan.workloads.contains(.hashMegabyte), store is OndolBlobs {
      values[Workload.hashMegabyte.rawValue] = try await measureHash()
    }
    if plan.workloads.contains(.streaming) {
      values[Workload.streaming.rawValue] = try await measureStreaming()
    }
    try await store.close()
    return values
  }

  /// The rate of the digest alone: no put of a large content is faster.
  private func measureHash() async throws -> Double {
    var times: [Double] = []
    for number in 0..<plan.count(.hashMegabyte) {
      let bytes = Array(noise[number..<number + Workload.hashMegabyte.length])
      var digest: SHA256Digest?
      times.append(await microseconds { digest = SHA256.hash(data: bytes) })
      guard digest != nil else { throw WrongLength() }
    }
    return figure(times, .hashMegabyte)
  }

  /// The growth of memory in megabytes while one content goes in and comes out again in chunks; nil
  /// if the store takes no chunks.
  private func measureStreaming() async throws -> Double? {
    let (chunk, length) = (1 << 16, Workload.streaming.length)
    let source = NoiseChunks(noise: noise, chunk: chunk, length: length)
    ProcessMemory.restartPeak()
    guard let before = ProcessMemory.current(), let got = try await store.stream(source, "stream")
    else { return nil }
    guard got == length, let after = ProcessMemory.current() else { throw WrongLength() }
    return Double(after.peakBytes - before.residentBytes) / 1e6
  }

  private func name(_ number: Int, _ length: Int) -> String { "\(length)-\(number)" }

  private func measurePut(_ workload: Workload) async throws -> Double {
    var times: [Double] = []
    for number in 0..<plan.count(workload) {
      var bytes = Array(noise[..<workload.length])
      for index in 0..<8 {
        bytes[index] = UInt8(truncatingIfNeeded: number >> (8 * index))
      }
      times.append(
        try await microseconds { try await store.put(bytes, name(number, workload.length)) })
    }
    return figure(times, workload)
  }

  private func measureGet(_ workload: Workload) async throws -> Double {
    let count = plan.count(workload)
    var times: [Double] = []
    for _ in 0..<plan.passes {
      let time = try await microseconds {
        for number in 0..<count {
          let place = number * 7919 % count
          guard try await store.get(name(place, workload.length)) == workload.length else {
            throw WrongLength()
          }
        }
      }
      times.append(time / Double(count))
    }
    return figure(times, workload)
  }

  /// The median, as a time or as a rate.
  private func figure(_ times: [Double], _ workload: Workload) -> Double {
    let time = median(times)
    return workload.lowerIsBetter ? time : Double(workload.length) / time
  }
}

/// A get returned other bytes than the put.
private struct WrongLength: Error {}
