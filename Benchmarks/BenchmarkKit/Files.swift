// What the runner itself asks of the system: how much room a database takes, how much memory the
// process holds, and that nothing one engine left behind is written while the next one is timed.

import Foundation
import OndolPlatform

/// The blocks that the files below `directory` take on the device, in bytes.
package func allocatedBytes(below directory: String) -> Int {
  let names = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
  return names.reduce(0) { total, name in
    var status = stat()
    guard unsafe lstat(directory + "/" + name, &status) == 0 else { return total }
    return total + Int(status.st_blocks) * 512
  }
}

/// Waits until the system has written out everything.
package func writeOutEverything() {
  sync()
}

/// The memory of this process, where the system tells.
package struct ProcessMemory {
  package var residentBytes: Int
  /// The most there has been since the process began, or since `restartPeak`.
  package var peakBytes: Int

  /// Has the peak begin anew. Where the system cannot, the peak goes on.
  package static func restartPeak() {
    try? Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs"))
  }

  package static func current() -> ProcessMemory? {
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else {
      return nil
    }
    func bytes(_ field: String) -> Int? {
      let line = text.split(separator: "\n").first { $0.hasPrefix(field) }
      return line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) }
        .map { $0 * 1_024 }
    }
    guard let resident = bytes("VmRSS:"), let peak = bytes("VmHWM:") else { return nil }
    return ProcessMemory(residentBytes: resident, peakBytes: peak)
  }
}

/// The middle of `values`, which must not be empty.
package func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  let middle = sorted.count / 2
  return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/// The value that `part` (0...1) of `sorted`, which must not be empty, do not exceed.
package func percentile(_ part: Double, ofSorted sorted: [Double]) -> Double {
  sorted[min(Int(Double(sorted.count) * part), sorted.count - 1)]
}
