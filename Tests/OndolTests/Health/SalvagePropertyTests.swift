// Any one byte of any one file is damaged: every document that comes back otherwise than it was, or
// not at all, lies where the report says that something is lost. So all whose bytes are intact come
// back.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `What a salvage brings back` {
  @Test(arguments: Seeds.first(12))
  func `Documents whose bytes are intact, whichever file is damaged`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let original = try await DamageSite.original.value
    let isKilled = random.chance(1, in: 2)
    let whole = original.copy(killed: isKilled)
    let before = try await documents(whole, at: "db")
    for part in [".seg", ".val", "LOG-", "MANIFEST-", "SUPER", ".pack", ".content"] {
      let site = original.copy(killed: isKilled)
      let name = random.pick(try site.sample.files(part))
      let place = random.below(try site.sample.bytes(of: name).count)
      try site.sample.flip(name, at: place, bit: random.below(8))
      let what = "seed \(seed): \(name) at \(place)"
      let report = try await Database.salvage(
        from: "db", to: "saved", environment: site.sample.environment,
        engineOptions: DamageSite.engineOptions)
      let after = try await documents(site, at: "saved")
      for (path, fields) in before where after[path] != fields {
        #expect(report.losses.contains { covers($0, path, name) }, "\(what): \(path): \(report)")
      }
      #expect(report.isComplete ? after == before : true, "\(what)")
    }
  }

  /// Whether a loss says that the document may be missing.
  private func covers(_ loss: SalvageReport.Loss, _ path: String, _ file: String) -> Bool {
    if loss.reason.contains(path) { return true }
    guard loss.file == file || loss.file == nil else { return false }
    // Paths of other collections than the neighbours' say nothing about the order of keys.
    let collection = path.split(separator: "/").dropLast().joined(separator: "/")
    for (bound, isLower) in [(loss.after, true), (loss.before, false)] {
      guard let bound, bound.split(separator: "/").dropLast().joined(separator: "/") == collection
      else { continue }
      if isLower ? path < bound : path > bound { return false }
    }
    return true
  }

  private func documents(_ site: DamageSite, at path: String) async throws -> [String: [String:
    Value]]
  {
    let database = try await Database.open(
      at: path, options: Database.Options(access: .readOnly), environment: site.sample.environment)
    var all: [String: [String: Value]] = [:]
    for group in ["items", "notes", "albums", "diary", "noise", "late"] {
      for document in try await database.collectionGroup(group).getDocuments().documents {
        all[document.reference.path] = document.data()
      }
    }
    try await database.close()
    return all
  }
}
