// Plants every kind of damage, one at a time, and runs the built program: the check must name the
// kind, the file and the place or the document, say what helps, and exit with status 4.

import Foundation
import OndolTestKit
import Testing

@testable import Ondol

@Suite(.disabled(if: TestedEncryption.isOn)) struct `Planted damage` {
  let scratch = Result { try ScratchDirectory() }

  @Test(arguments: PlantedDamage.all)
  func `It is found, and called by its name`(damage: PlantedDamage) async throws {
    let scratch = try scratch.get()
    let site = try await DamageSite.original.value.copy(killed: damage.isKilled)
    let expected = try await damage.plant(site)
    let directory = scratch.path("db")
    try site.export(to: URL(filePath: directory))
    let result = try await scratch.ondol("check", directory, "--full", "--format", "jsonl")
    #expect(result.status == (expected.severity == .error ? 4 : 0), "\(result.messages)")
    let findings = try result.lines.map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
    let match = findings.first { matches($0, expected) }
    let found = try #require(match, "\(expected) is not in\n\(result.output)")
    if expected.severity == .error { #expect(found["hint"] is String) }
    #expect(found["schema"] as? String == "check/1")
  }

  @Test func `Without damage nothing is found, closed or killed`() async throws {
    let scratch = try scratch.get()
    for isKilled in [false, true] {
      let site = try await DamageSite.original.value.copy(killed: isKilled)
      let directory = scratch.path("db \(isKilled)")
      try site.export(to: URL(filePath: directory))
      let result = try await scratch.ondol("check", directory, "--full")
      #expect(result.status == 0)
      #expect(result.output == "")
    }
  }

  private func matches(_ finding: [String: Any], _ expected: PlantedDamage.Expected) -> Bool {
    func text(_ name: String) -> String? { finding[name] as? String }
    func agrees(_ name: String, _ value: String?) -> Bool { value == nil || text(name) == value }
    let offset = (finding["offset"] as? Int).map(UInt64.init)
    return text("kind") == expected.kind.rawValue
      && text("severity") == expected.severity.rawValue && agrees("file", expected.file)
      && (expected.offset == nil || offset == expected.offset)
      && agrees("collection", expected.collection) && agrees("id", expected.id)
      && agrees("storagePath", expected.storagePath)
      && (expected.text.isEmpty || text("message")?.contains(expected.text) == true)
  }
}
