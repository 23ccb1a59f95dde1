// The tree suite: the cost of changing a leaf under few and under many siblings, beside many
// listeners elsewhere, and the time until a listener knows ten thousand children. Compared
// workloads are measured in turns, a little of each at a time, so that a busy machine slows both,
// and the report shows the medians of all turns. `Scripts/bench --suite tree` builds it.

import ArgumentParser
import BenchmarkKit
import Foundation
import Ondol

@main
struct TreeBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite tree", abstract: "Times the realtime tree.")

  @OptionGroup var options: SuiteOptions

  /// The task of the child process.
  struct Plan: Codable {
    /// The number of turns of each measurement.
    var turns: Int
  }

  func run() async throws {
    if let task = try options.childTask(of: Plan.self) {
      var result = SuiteResult(engine: task.engine)
      try await measureSiblings(in: task.directory + "/siblings", task.plan.turns, &result)
      try await measureListeners(in: task.directory + "/listeners", task.plan.turns, &result)
      try await measureAttaching(in: task.directory + "/attach", task.plan.turns, &result)
      return try options.tell(result)
    }
    var report = SuiteReport(
      "tree", try options.workloads() ?? Workload.allCases, runs: options.runCount,
      documents: { $0.children }, valueSize: { _ in 8 })
    let plan = Plan(turns: options.passes ?? (options.quick ? 10 : 40))
    options.takeTurns(["Ondol"], plan, into: &report)
    try options.tell(report)
  }
}

/// The measured workloads: changes of a leaf, and a listener's first state.
enum Workload: String, SuiteWorkload {
  case few = "leaf below 10 siblings"
  case many = "leaf below 100000 siblings"
  case manyByFew = "100000 siblings by 10"
  case unheard = "leaf, nobody listens"
  case elsewhere = "leaf, 1000 listen elsewhere"
  case elsewhereByUnheard = "1000 listeners by none"
  case attaching = "10000 children when listening begins"

  var unit: String {
    switch self {
    case .few, .many, .unheard, .elsewhere: "µs"
    case .manyByFew, .elsewhereByUnheard: "x"
    case .attaching: "ms"
    }
  }

  var goal: Double? {
    switch self {
    case .manyByFew: 1.5
    case .elsewhereByUnheard: 1.2
    case .attaching: 20
    case .few, .many, .unheard, .elsewhere: nil
    }
  }

  /// The number of children of the written node.
  var children: Int {
    switch self {
    case .few: 10
    case .many, .manyByFew: 100_000
    case .unheard, .elsewhere, .elsewhereByUnheard: 1_000
    case .attaching: 10_000
    }
  }
}

private let writes = 200
private let many = 100_000

/// Makes a node of a number of children with two leaves each.
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

/// Microseconds of one change of a leaf below `node`, which has a number of children.
private func change(_ node: TreeReference, _ count: Int, turn: Int) async throws -> Double {
  let time = try await microseconds {
    for number in 0..<writes {
      let child = (turn * writes + number) * 7_919 % count
      try await node.child("child-\(child)/count").setValue(
        turn * writes + number + many, durability: .process)
    }
  }
  return time / Double(writes)
}

extension TreeBenchmarks {
  /// Changes a leaf below a node of ten children and below one of a hundred thousand.
  private func measureSiblings(
    in path: String, _ turns: Int, _ result: inout SuiteResult
  ) async throws {
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
    result.note(Workload.few, few)
    result.note(Workload.many, all)
    result.note(Workload.manyByFew, all / few)
  }

  /// Changes a leaf without listeners, and with a thousand listeners elsewhere.
  private func measureListeners(
    in path: String, _ turns: Int, _ result: inout SuiteResult
  ) async throws {
    let alone = try await Database.open(at: path + "-alone")
    let beside = try await Database.open(at: path + "-beside")
    for database in [alone, beside] { try await fill(database.tree.child("node"), 1_000) }
    let listeners = (0..<1_000).map { number in
      let place = beside.tree.child("elsewhere/\(number)")
      return Task { for try await _ in place.observe(.childAdded, .childChanged) {} }
    }
    // Every listener is registered before it receives its own first child.
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
    result.note(Workload.unheard, nobody)
    result.note(Workload.elsewhere, thousand)
    result.note(Workload.elsewhereByUnheard, thousand / nobody)
  }

  /// Times from the first call of a listener to the last of 10,000 children.
  private func measureAttaching(
    in path: String, _ turns: Int, _ result: inout SuiteResult
  ) async throws {
    let database = try await Database.open(at: path)
    let node = database.tree.child("node")
    try await fill(node, 10_000)
    var times: [Double] = []
    for _ in 0..<turns {
      let time = try await microseconds {
        var count = 0
        for try await _ in node.observe(.childAdded) {
          count += 1
          if count == 10_000 { break }
        }
      }
      times.append(time / 1_000)
    }
    try await database.close()
    result.note(Workload.attaching, median(times))
  }
}
