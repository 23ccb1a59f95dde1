// A limit on all memory of a process, the system's cache of its files included: a control group.
// Without one, an engine that leaves caching to the system has all of the machine's memory where
// another has what it was given. Linux only, and only where groups may be made.

import Foundation
import OndolPlatform

/// A group of processes with a limit of memory.
package struct MemoryGroup {
  /// What its processes are written to.
  private let directory: String

  /// Makes a group below the one that this process is in.
  ///
  /// - Throws: why there can be none.
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

  /// The words in front of a command that has it run in the group.
  package var command: [String] {
    ["sh", "-c", "echo $$ > '\(directory)/cgroup.procs' && exec \"$@\"", "sh"]
  }

  /// Removes the group, whose processes have ended.
  package func remove() {
    _ = unsafe rmdir(directory)
  }
}

/// Has the system let go of what it keeps of the files below a directory, so that whoever reads
/// them next pays for it.
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
