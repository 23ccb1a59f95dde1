// Dumps. The target changes a sound dump, in its bytes or by whole lines, and loads it into files
// in memory. The load refuses it with a reason, or makes a database whose verification finds no
// fault, and whose own dump makes the same database again.

import Ondol
import OndolEngine
import OndolTestKit

@testable import OndolJSON

enum DumpTarget: FuzzTarget {
  static let name = "dump"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    let dump = changed(sound, &input)
    do {
      try SimulationExecutor.run(seed: 1) { executor in
        let world = SimulatedWorld(seed: 1, threads: executor)
        let first: [UInt8]
        switch try await load(dump, at: "/first", world.environment) {
        case .success(let again): first = again
        case .failure(let refusal):
          return demand(dump != sound, "a sound dump is refused: \(refusal)")
        }
        let second: [UInt8]
        switch try await load(first, at: "/second", world.environment) {
        case .success(let again): second = again
        case .failure(let refusal):
          return demand(false, "what was dumped cannot be loaded: \(refusal)\n\(text(first))")
        }
        demand(first == second, "\(text(first))\nbecomes\n\(text(second))")
        if dump == sound { demand(first == sound, "a sound dump comes back as\n\(text(first))") }
      }
    } catch {
      demand(false, "\(error)\n\(text(dump))")
    }
  }

  private static func text(_ dump: [UInt8]) -> String { String(decoding: dump, as: UTF8.self) }

  /// Loads a dump and dumps it again, unless the load refuses it.
  private static func load(
    _ dump: [UInt8], at path: String, _ environment: Environment
  ) async throws -> Result<[UInt8], DumpError> {
    let rest = Guarded(dump[...])
    let source = DumpText { count in
      rest.withLock { rest in
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
      }
    }
    do {
      let restoration = try await Restoration.begin(at: path, environment: environment)
      _ = try await DumpLoader.load(source, into: restoration)
    } catch let error as DumpError {
      demand(!error.reason.isEmpty, "a dump is refused without a reason")
      return .failure(error)
    }
    let findings = try await Database.verify(
      at: path, depth: .full, environment: environment)
    demand(
      !findings.contains { $0.severity == .error }, "what was loaded is damaged: \(findings)")
    let database = try await Database.open(at: path, environment: environment)
    let again = try await Self.dump(database)
    try await database.close()
    return .success(again)
  }

  private static func dump(_ database: Database) async throws -> [UInt8] {
    let output = Guarded([UInt8]())
    var writer = DumpWriter(
      try DumpReader(database), to: DumpStream { bytes in output.withLock { $0 += bytes } })
    try await writer.write()
    return output.withLock { $0 }
  }

  // MARK: - Changes

  private static func changed(_ dump: [UInt8], _ input: inout FuzzInput) -> [UInt8] {
    var lines = dump.split(separator: 0x0A, omittingEmptySubsequences: false).map { Array($0) }
    for _ in 0..<input.below(5) {
      let line = input.below(lines.count)
      switch input.below(6) {
      case 0: lines.remove(at: line)
      case 1: lines.insert(lines[line], at: input.below(lines.count + 1))
      case 2: lines.swapAt(line, input.below(lines.count))
      case 3: lines[line].damage(&input)
      case 4: replace(in: &lines[line], &input)
      default: lines.insert(input.take(input.below(60)), at: line)
      }
      if lines.isEmpty { break }
    }
    return Array(lines.joined(separator: [0x0A]))
  }

  /// Replaces some of the JSON with other JSON.
  private static func replace(in line: inout [UInt8], _ input: inout FuzzInput) {
    guard !line.isEmpty else { return }
    let pieces = [
      "null", "-1", "[]", "{}", "\"\"", "1e400", "9223372036854775808", "{\"$date\":0}", "true",
      "\"\\u0000\"", "{\"$blob\":{}}", "\"a/b\"", "\"__x__\"",
    ]
    let place = input.below(line.count)
    let end = min(line.count, place + input.below(24))
    line.replaceSubrange(place..<end, with: input.pick(pieces).utf8)
  }

  /// A dump of a database with some of everything.
  private static let sound: [UInt8] = {
    do {
      return try SimulationExecutor.run(seed: 2) { executor in
        let world = SimulatedWorld(seed: 2, threads: executor)
        let database = try await Database.open(at: "/sound", environment: world.environment)
        let items = database.collection("items")
        try await items.createIndex(on: ["n", "-name"])
        try await items.createIndex(onArray: "tags")
        for number in 0..<4 {
          try await items.document("i\(number)").setData([
            "n": number, "name": "item \(number)", "tags": ["a", "b\(number)"],
            "at": Value.timestamp(.minimum), "more": Value.map(["$x": 1, "y": .bytes([1, 2])]),
          ])
        }
        try await database.document("items/i0/notes/a").setData(["stars": 0.5])
        let content = try await database.storage.put(Array("a content".utf8))
        try await items.document("b").setData(["content": Value.blob(content)])
        try await database.storage.reference(withPath: "images/a.txt").putData(Array("text".utf8))
        try await database.tree.child("a/b").setValue(["x": 1, "y": "z"])
        let dump = try await dump(database)
        try await database.close()
        return dump
      }
    } catch {
      preconditionFailure("no dump was made: \(error)")
    }
  }()

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var chance = Chance(16)
    return [[0]] + (1..<6).map { [UInt8($0 % 4 + 1)] + chance.bytes(24) }
  }
}
