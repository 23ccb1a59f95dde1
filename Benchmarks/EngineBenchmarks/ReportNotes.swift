// The conditions of the table's figures, in lines below it: the engines' settings and versions,
// slow tails, and the meaning of rows whose names do not explain it.

import BenchmarkKit
import Foundation

struct ReportNotes {
  let plan: Plan
  let engines: [RunResult]
  let results: [RunResult]
  /// Why no run could have a memory limit; nil if one could.
  let noEqualMemory: String?

  var lines: [String] {
    ["", "Settings (cache 1 GiB each, unless the row says otherwise):"]
      + engines.map(settings) + meanings
  }

  private func settings(_ engine: RunResult) -> String {
    let settling = results.filter { $0.engine == engine.engine }.compactMap(\.settleSeconds)
    let time =
      settling.isEmpty ? "" : " Settling after the load took \(short(median(settling))) s, apart."
    return "- \(engine.engine) \(engine.version): \(engine.settings).\(time)"
  }

  private func figures(
    _ workload: Workload, _ figure: (Measurement) -> Double?
  ) -> [(engine: String, median: Double)] {
    engines.compactMap { engine in
      let found = results.filter { $0.engine == engine.engine }.flatMap(\.measurements)
        .filter { $0.workload == workload }.compactMap(figure)
      return found.isEmpty ? nil : (engine.engine, median(found))
    }
  }

  private var meanings: [String] {
    let all: [([Workload], String)] = [
      (
        [.putProcess, .putPower],
        "single put .process is the mean of \(plan.putsProcess) commits, single put .power the "
          + "median of \(plan.putsPower)."
      ),
      (
        [.deviceWrite, .putPowerRatio],
        "device synced write: the same bytes to a file filled before, by pwrite and fdatasync or "
          + "O_DSYNC, whichever is faster, in turn with the puts."
      ),
      (
        [.writersPower],
        "64 writers .power: a thread for each with the peers, a task with Ondol; LMDB and SQLite "
          + "let in one at a time."
      ),
      ([.readersWhileWriting], pacing),
      (
        [.getLimited],
        "get uniform 64 MiB cache: LMDB has no cache of its own and reads from all of the "
          + "system's; files of the others are in the system's memory, too."
      ),
      ([.getEqual], equalMemory),
      (
        [.sizeOverwritten],
        "size after 5 overwrites: \(plan.documentsOverwritten) documents, in one run."
      ),
      (
        [.size], "size on disk counts the blocks that the closed database's files take."
      ),
      (
        [.peakMemory, .residentMemory, .residentLimited],
        "Memory is what the process holds beyond what it held before it opened the database; "
          + "LMDB's includes the pages of its map, which are the system's."
      ),
      ([.residentLimited], budget),
    ]
    let peer = plan.comparesSealed ? ["- " + Self.aboutSQLCipher] : []
    return all.filter { plan.includesAny(of: $0.0) }.map { "- " + $0.1 } + peer
  }

  private static let aboutSQLCipher =
    "SQLCipher is the one of this system's packages. Debian's is 3.4.1 of 2016, with HMAC-SHA1: "
    + "4 has HMAC-SHA512 and a newer SQLite, and may be faster or slower."

  private var pacing: String {
    let slow = figures(.readersWhileWriting, \.attained)
      .filter { $0.median < 0.95 * Double(Plan.pacedRate) }
      .map { "\($0.engine) \(short($0.median))" }
    return "readers while writing: \(Plan.readers) threads beside one that puts "
      + "\(Plan.pacedRate) documents a second, one a commit, unsynced; "
      + (slow.isEmpty ? "every engine kept pace." : "behind: \(slow.joined(separator: ", ")).")
  }

  private var equalMemory: String {
    let name = Workload.getEqual.rawValue
    if let noEqualMemory {
      return "\(name) is left out: it needs a control group of its own, and \(noEqualMemory)."
    }
    return "\(name): the process and the system's cache of its files have "
      + "\(short(Double(Plan.equalMemoryBytes) / 1e6)) MB together, in a control group; an engine "
      + "with a cache has \(short(Double(Plan.limitedCacheBytes) / 1e6)) MB of it for that."
  }

  private var budget: String {
    let parts = [
      (Workload.residentMemory, Plan.cacheBytes), (.residentLimited, Plan.limitedCacheBytes),
    ].compactMap { workload, bytes in
      figures(workload, \.value).first { $0.engine == "Ondol" }
        .map { "\(short($0.median)) MB of a cache of \(short(Double(bytes) / 1e6)) MB" }
    }
    return "Ondol at the end of the reads: \(parts.joined(separator: "; "))."
  }
}
