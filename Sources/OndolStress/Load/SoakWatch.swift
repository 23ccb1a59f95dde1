// What a process uses while it runs: memory, open files, and disk space. A database that works for
// an hour and grows by a megabyte in each is faulty.

import Foundation

/// One measurement.
struct SoakSample: Sendable, Encodable {
  /// Seconds since the run began.
  var time: Double
  /// The resident memory in bytes.
  var memory: Int
  var descriptors: Int
  /// The size of the database's files in bytes.
  var space: Int
  /// The number of operations so far.
  var operations: UInt64

  init(time: Double, operations: UInt64, database path: String) {
    self.time = time
    self.operations = operations
    memory = Self.residentMemory()
    descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/dev/fd").count) ?? 0
    space = Self.size(of: path)
  }

  /// Nil if the system does not report it. Memory is not watched then.
  private static func residentMemory() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  private static func size(of path: String) -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.reduce(0) { sum, name in
      let attributes = try? FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
      return sum + (attributes?[.size] as? Int ?? 0)
    }
  }
}

/// The verdict on all samples of a run.
enum SoakVerdict {
  /// Returns what grew although the documents did not. The first third is for warming up. The
  /// median of the first half of the rest is compared with that of the second half.
  static func growth(_ samples: [SoakSample]) -> [String] {
    let steady = samples.dropFirst(samples.count / 3)
    guard steady.count >= 8 else { return [] }
    let early = steady.prefix(steady.count / 2)
    let late = steady.suffix(steady.count / 2)
    func compare(
      _ name: String, _ part: (SoakSample) -> Int, factor: Double, slack: Int
    ) -> String? {
      let (before, after) = (median(early.map(part)), median(late.map(part)))
      guard Double(after) > Double(before) * factor + Double(slack) else { return nil }
      return "\(name) grew from \(before) to \(after)"
    }
    return [
      compare("memory", \.memory, factor: 1.1, slack: 16 << 20),
      compare("descriptors", \.descriptors, factor: 1.1, slack: 8),
      compare("space", \.space, factor: 1.3, slack: 16 << 20),
    ].compactMap { $0 }
  }

  private static func median(_ numbers: [Int]) -> Int { numbers.sorted()[numbers.count / 2] }
}
