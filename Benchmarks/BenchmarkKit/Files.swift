// The runner's own system calls: how much space a database takes, how much memory the process has,
// and writing out everything that one engine left before the next one is timed.

import Foundation
import OndolPlatform

/// The blocks on the device of the files below `directory`, in bytes.
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

/// The memory of this process, if the system reports it.
package struct ProcessMemory {
  package var residentBytes: Int
  /// The largest amount since the process began, or since `restartPeak`.
  package var peakBytes: Int

  /// Restarts the peak. If the system cannot do that, the peak continues.
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

/// The median of `values`, which must not be empty.
package func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  let middle = sorted.count / 2
  return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/// The value that `part` (0...1) of `sorted` does not exceed. `sorted` must not be empty.
package func percentile(_ part: Double, ofSorted sorted: [Double]) -> Double {
  sorted[min(Int(Double(sorted.count) * part), sorted.count - 1)]
}
