// A limit on all memory of a process, including the system's cache of its files: a control group.
// Without one, an engine that leaves caching to the system uses the whole machine's memory, while
// another uses only what it was given. It works only on Linux, and only where the process may
// create groups.

import Foundation
import OndolPlatform

/// A group of processes with a memory limit.
package struct MemoryGroup {
  /// The directory of the group, which takes its processes.
  private let directory: String

  /// Creates a group below this process's group.
  ///
  /// - Throws: why the group is not available.
  package init(limit bytes: Int) throws(Unavailable) {
    let groups = (try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8)) ?? ""
    var reasons: [String] = []
    for line in groups.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { continue }
      let isUnified = parts[0] == "0" && parts[1].isEmpty
      guard isUnified || parts[1].split(separator: ",").contains("memory") else { continue }
      for mount in isUnified ? ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] : Self.oldMounts {
        let place = "\(mount)\(parts[2] == "/" ? "" : parts[2])/ondol-bench-\(getpid())"
        do throws(Unavailable) {
          directory = try Self.make(
            place, isUnified ? "memory.max" : "memory.limit_in_bytes", bytes)
          return
        } catch {
          reasons.append(error.reason)
        }
      }
    }
    throw Unavailable(
      reason: reasons.isEmpty ? "the system has no groups of memory" : reasons[0])
  }

  private static let oldMounts = ["/sys/fs/cgroup/memory"]

  /// Why there is no group.
  package struct Unavailable: Error {
    package var reason: String
  }

  private static func make(
    _ place: String, _ limit: String, _ bytes: Int
  ) throws(Unavailable) -> String {
    guard unsafe mkdir(place, 0o755) == 0 else {
      let reason = unsafe String(cString: strerror(errno))
      throw Unavailable(reason: "\(place) cannot be made: \(reason)")
    }
    guard FileManager.default.fileExists(atPath: "\(place)/\(limit)"),
      (try? "\(bytes)".write(toFile: "\(place)/\(limit)", atomically: false, encoding: .utf8))
        != nil
    else {
      _ = unsafe rmdir(place)
      throw Unavailable(reason: "\(place) takes no limit of memory")
    }
    return place
  }

  /// The words before a command that make it run in the group.
  package var command: [String] {
    ["sh", "-c", "echo $$ > '\(directory)/cgroup.procs' && exec \"$@\"", "sh"]
  }

  /// Removes the group after its processes have ended.
  package func remove() {
    _ = unsafe rmdir(directory)
  }
}

/// Makes the system drop its cache of the files below a directory, so that the next reader pays for
/// reading them.
package func forgetPages(below directory: String) {
  #if os(Linux)
    let names = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String }
    for name in names ?? [] {
      let file = unsafe open(directory + "/" + name, O_RDONLY)
      guard file >= 0 else { continue }
      _ = fdatasync(file)
      _ = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)
      close(file)
    }
  #endif
}
