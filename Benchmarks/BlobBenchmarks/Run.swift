// One engine's run: every content is different from all others and cannot be compressed, puts
// follow each other, and gets find what the system has in memory.

import BenchmarkKit
import Foundation

enum Workload: String, SuiteWorkload {
  case putSmall = "put 10 KB"
  case getSmall = "get 10 KB"
  case putMegabyte = "put 1 MB"
  case getMegabyte = "get 1 MB"
  case putLarge = "put 100 MB"

  var unit: String {
    switch self {
    case .putSmall, .getSmall: "µs"
    default: "MB/s"
    }
  }

  var lowerIsBetter: Bool { unit == "µs" }

  var goal: Double? { self == .getSmall ? 15 : nil }

  /// Bytes of a content.
  var length: Int {
    switch self {
    case .putSmall, .getSmall: 10_000
    case .putMegabyte, .getMegabyte: 1_000_000
    case .putLarge: 100_000_000
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
    case .putMegabyte, .getMegabyte: quick ? 40 : 150
    case .putLarge: quick ? 2 : 4
    }
  }

  /// Passes over the contents that are got.
  var passes: Int { quick ? 5 : 10 }
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
    try await store.close()
    return values
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

/// What came back is not what was put.
private struct WrongLength: Error {}
