// The tree suite: what a leaf's change costs under few and under many siblings, beside many who
// listen elsewhere, and how soon a listener knows ten thousand children. What is compared is
// measured in turns, a little of each at a time, so that a busy machine slows both; the medians of
// all turns are shown. `Scripts/bench --suite tree` builds it.

import ArgumentParser
import Foundation
import Ondol

@main
struct TreeBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite tree", abstract: "Times the realtime tree.")

  @Flag(help: "Fewer turns.")
  var quick = false

  @Option(help: "Turns of each measurement.")
  var turns: Int?

  @Option(help: "Where databases are made and removed; on the device to be measured.")
  var directory = ".build-bench/databases"

  @Option(help: "Where to write the figures as JSON.")
  var json: String?

  func run() async throws {
    let turns = turns ?? (quick ? 10 : 40)
    let place = directory + "/tree-\(ProcessInfo.processInfo.processIdentifier)"
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: place) }
    var figures: [Figure] = []
    figures += try await measureSiblings(in: place + "/siblings", turns)
    figures += try await measureListeners(in: place + "/listeners", turns)
    figures.append(try await measureAttaching(in: place + "/attach", turns))
    print("| what | value | at most |\n|---|---:|---:|")
    for figure in figures {
      let limit = figure.limit.map { figure.text($0) } ?? ""
      print("| \(figure.name) | \(figure.text(figure.value)) | \(limit) |")
    }
    if let json { try JSONEncoder().encode(figures).write(to: URL(filePath: json)) }
  }
}

/// One line of the result.
struct Figure: Codable {
  var name: String
  var value: Double
  var unit: String
  var limit: Double?

  func text(_ value: Double) -> String { String(format: "%.2f %@", value, unit) }
}

private let writes = 200
private let many = 100_000

private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

private func microseconds(_ duration: Duration) -> Double { duration / .microseconds(1) }

/// Makes a node of so many children with two leaves each.
private func fill(_ node: TreeReference, _ count: Int) async throws {
  for start in stride(from: 0, to: count, by: 10_000) {
    var values: [String: (any FieldContent)?] = [:]
    for number in start..<min(count, start + 10_000) {
      values["child-\(number)"] = Value.map(
        ["name": .string("name \(number)"), "count": .integer(Int64(number))])
    }
    try await node.updateChildValues(values, durability: .process)
  }
}

/// Microseconds of one change of a leaf below `node`, which has so many children.
private func change(_ node: TreeReference, _ count: Int, turn: Int) async throws -> Double {
  let clock = ContinuousClock()
  let duration = try await clock.measure {
    for number in 0..<writes {
      let child = (turn * writes + number) * 7_919 % count
      try await node.child("child-\(child)/count").setValue(
        turn * writes + number + many, durability: .process)
    }
  }
  return microseconds(duration) / Double(writes)
}

extension TreeBenchmarks {
  /// A leaf's change below a node of ten children and below one of a hundred thousand.
  private func measureSiblings(in path: String, _ turns: Int) async throws -> [Figure] {
    let database = try await Database.open(at: path)
    let (small, large) = (database.tree.child("small"), database.tree.child("large"))
    try await fill(small, 10)
    try await fill(large, many)
    var times: (small: [Double], large: [Double]) = ([], [])
    for turn in 0..<turns {
      times.small.append(try await change(small, 10, turn: turn))
      times.large.append(try await change(large, many, turn: turn))
    }
    try await database.close()
    let (few, all) = (median(times.small), median(times.large))
    return [
      Figure(name: "a leaf below 10 siblings", value: few, unit: "us"),
      Figure(name: "a leaf below 100,000 siblings", value: all, unit: "us"),
      Figure(name: "the second by the first", value: all / few, unit: "x", limit: 1.5),
    ]
  }

  /// A leaf's change with nobody listening, and with a thousand listening elsewhere.
  private func measureListeners(in path: String, _ turns: Int) async throws -> [Figure] {
    let alone = try await Database.open(at: path + "-alone")
    let beside = try await Database.open(at: path + "-beside")
    for database in [alone, beside] { try await fill(database.tree.child("node"), 1_000) }
    let listeners = (0..<1_000).map { number in
      let place = beside.tree.child("elsewhere/\(number)")
      return Task { for try await _ in place.observe(.childAdded, .childChanged) {} }
    }
    // Every listener is one before it has been told of its own first child.
    for number in 0..<1_000 {
      try await beside.tree.child("elsewhere/\(number)/a").setValue(1, durability: .memory)
    }
    try await Task.sleep(for: .seconds(1))
    var times: (alone: [Double], beside: [Double]) = ([], [])
    for turn in 0..<turns {
      times.alone.append(try await change(alone.tree.child("node"), 1_000, turn: turn))
      times.beside.append(try await change(beside.tree.child("node"), 1_000, turn: turn))
    }
    for listener in listeners { listener.cancel() }
    for listener in listeners { try await listener.value }
    try await alone.close()
    try await beside.close()
    let (nobody, thousand) = (median(times.alone), median(times.beside))
    return [
      Figure(name: "a leaf, nobody listens", value: nobody, unit: "us"),
      Figure(name: "a leaf, 1,000 listen elsewhere", value: thousand, unit: "us"),
      Figure(name: "the second by the first", value: thousand / nobody, unit: "x", limit: 1.2),
    ]
  }

  /// From the first call of a listener to the last of 10,000 children.
  private func measureAttaching(in path: String, _ turns: Int) async throws -> Figure {
    let database = try await Database.open(at: path)
    let node = database.tree.child("node")
    try await fill(node, 10_000)
    var times: [Double] = []
    for _ in 0..<turns {
      let clock = ContinuousClock()
      let duration = try await clock.measure {
        var count = 0
        for try await _ in node.observe(.childAdded) {
          count += 1
          if count == 10_000 { break }
        }
      }
      times.append(microseconds(duration) / 1_000)
    }
    try await database.close()
    return Figure(
      name: "10,000 children when listening begins", value: median(times), unit: "ms", limit: 20)
  }
}
