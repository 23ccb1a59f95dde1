// The machine of the figures, in a line: processor, caches, memory, and whether memory comes in
// huge pages, which change some rows by a half.

import Foundation

/// The machine, in a line.
package func machine() -> String {
  let process = ProcessInfo.processInfo
  let processor = text("/proc/cpuinfo")?.split(separator: "\n")
    .first { $0.hasPrefix("model name") }?
    .split(separator: ":").last?.trimmingCharacters(in: .whitespaces)
  let parts = [
    "\(process.activeProcessorCount) cores\(processor.map { " of \($0)" } ?? "")",
    caches(), "\(process.physicalMemory >> 30) GiB", process.operatingSystemVersionString,
    hugePages().map { "transparent huge pages \($0)" },
  ]
  return parts.compactMap { $0 }.joined(separator: ", ")
}

/// The data caches of the first core: the private ones for each core, the last one as shared.
private func caches() -> String? {
  let folder = "/sys/devices/system/cpu/cpu0/cache"
  let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
  let caches = names.filter { $0.hasPrefix("index") }.sorted().compactMap { name -> String? in
    guard let level = text("\(folder)/\(name)/level"), let size = text("\(folder)/\(name)/size"),
      text("\(folder)/\(name)/type") != "Instruction"
    else { return nil }
    return "L\(level) \(size)"
  }
  return caches.isEmpty ? nil : caches.joined(separator: ", ")
}

/// The choice in brackets: `always [madvise] never`.
private func hugePages() -> String? {
  text("/sys/kernel/mm/transparent_hugepage/enabled")?.split(separator: " ")
    .first { $0.hasPrefix("[") }?.trimmingCharacters(in: ["[", "]"])
}

private func text(_ path: String) -> String? {
  (try? String(contentsOfFile: path, encoding: .utf8))?
    .trimmingCharacters(in: .whitespacesAndNewlines)
}
