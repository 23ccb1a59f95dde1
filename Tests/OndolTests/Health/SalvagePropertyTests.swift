// Any one byte of any one file is damaged. Every document that comes back changed, or not at all,
// is where the report declares a loss. Every document whose own bytes are still readable comes back
// unchanged, whatever else is damaged.

import OndolTestKit
import Testing

@testable import Ondol
@testable import OndolEngine

@Suite struct `What a salvage brings back` {
  @Test(arguments: Seeds.first(12))
  func `Documents whose bytes are intact, whichever file is damaged`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let original = try await DamageSite.original.value
    let isKilled = random.chance(1, in: 2)
    let whole = original.copy(killed: isKilled)
    let before = try await documents(whole, at: "db")
    let keys = try await keys(of: before.keys, whole)
    let rows = try rows(of: whole)
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
      let left = try self.rows(of: site)
      for (path, fields) in before {
        let key = try #require(keys[path])
        guard let row = rows[key], left[key] == row else { continue }
        #expect(after[path] == fields, "\(what): \(path) is intact: \(report)")
      }
    }
  }

  /// Whether a loss covers the document.
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

  /// The keys of documents' rows.
  private func keys(
    of paths: some Sequence<String>, _ site: DamageSite
  ) async throws -> [String: [UInt8]] {
    let database = try await Database.open(
      at: "db", options: Database.Options(access: .readOnly), environment: site.sample.environment)
    let rows = Ondol.Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    var keys: [String: [UInt8]] = [:]
    for path in paths {
      let names = path.split(separator: "/").map(String.init)
      let pattern = CollectionPattern(stride(from: 0, to: names.count, by: 2).map { names[$0] })
      let family = try rows.catalog.family(pattern.root, in: rows)
      let entry = try #require(family?.collections[pattern])
      keys[path] = DocumentKey.key(entry.keyspace, try DocumentPath(path))
    }
    try await database.close()
    return keys
  }

  /// All rows that the files still yield, by key, without interpreting them.
  private func rows(of site: DamageSite) throws -> [[UInt8]: [UInt8]] {
    let reader = try SalvageReader(
      at: "db", environment: site.sample.environment, version: SalvageWork.version)
    var rows: [[UInt8]: [UInt8]] = [:]
    while let row = reader.next() { rows[row.key] = row.value }
    return rows
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
