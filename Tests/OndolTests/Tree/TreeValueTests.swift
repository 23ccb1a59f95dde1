// The values of a value listener on a large node. It keeps its last value and reads only later
// changes. So the test compares each value with a fresh read, over random writes at every depth, in
// every order, with windows, with many commits at once, and counts the reads of an event.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private typealias SeededRandom = OndolTestKit.SeededRandom

@Suite struct TreeValueTests {
  @Test(arguments: Seeds.first(6))
  func `A delivered value equals a fresh read, after any commits`(
    seed: UInt64
  ) async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("a/list")
    var random = SeededRandom(seed: seed)
    let queries: [any TreeQuerySource] = [
      database.tree, place, place.queryOrderedByKey(), place.queryOrderedByValue(),
      place.queryOrdered(byChild: "x"), place.queryOrderedByKey().queryStarting(atValue: "k2"),
      place.queryLimited(toLast: 30), place.queryOrderedByValue().queryLimited(toFirst: 30),
      place.queryOrdered(byChild: "x").queryStarting(atValue: 2).queryLimited(toFirst: 20),
      place.child("k7"),
    ]
    let listeners = queries.map { source in
      let query = source.treeQuery
      return TreeListener(database, [(query, [.value])]) { $0.snapshot }
    }
    var last: [TreeSnapshot?] = listeners.map { _ in nil }
    for round in 0..<60 {
      for _ in 0..<(1 + random.below(3)) { try await write(below: place, &random) }
      // A listener that does not read each time receives several commits at once.
      for index in listeners.indices where round == 59 || random.chance(2, in: 3) {
        while let told = try await listeners[index].poll() { last[index] = told }
        let fresh = try await queries[index].getData()
        let told = try #require(last[index])
        guard told == fresh, told.exportedValue.description == fresh.exportedValue.description,
          told.children.map(\.key) == fresh.children.map(\.key)
        else {
          Issue.record("SEED=\(seed), round \(round), query \(index): \(told), and not \(fresh)")
          return
        }
      }
    }
    try await database.close()
  }

  /// One commit: at a child, below one, several, the whole node, or a place above it.
  private func write(below place: TreeReference, _ random: inout SeededRandom) async throws {
    func key() -> String { "k\(random.below(120))" }
    func content() -> Value {
      switch random.below(6) {
      case 0: .map(["x": .integer(Int64(random.below(9))), "y": .map(["z": .string(key())])])
      case 1: .map([".value": .integer(1), ".priority": .integer(Int64(random.below(4)))])
      case 2: .array([.integer(1), .integer(Int64(random.below(3)))])
      default: .integer(Int64(random.below(50)))
      }
    }
    switch random.below(24) {
    case 0: try await place.removeValue()
    case 1: try await place.parent?.setValue(["other": 1])
    case 2: try await place.setValue("a leaf")
    case 3...6:
      var values: [String: (any FieldContent)?] = [:]
      for _ in 0..<(1 + random.below(80)) {
        values[key()] = random.chance(1, in: 4) ? nil : content()
      }
      try await place.updateChildValues(values)
    case 7...9: try await place.child(key()).setPriority(random.below(3))
    case 10...12: try await place.child("\(key())/y/z").setValue(random.below(9))
    case 13...15: try await place.child("\(key())/x").setValue(random.below(9))
    case 16: try await place.child("\(key())/y").removeValue()
    case 17: try await place.setPriority(random.below(3))
    case 18...19: try await place.child(key()).removeValue()
    case 20: try? await place.createIndex(byChild: "x")
    case 21: try? await place.dropIndex(byChild: "x")
    default: try await place.child(key()).setValue(content())
    }
  }

  @Test func `An event's reads do not grow with the node`() async throws {
    let environment = Environment.memory()
    let options = Database.Options(cacheSize: 0)
    var engineOptions = EngineOptions()
    engineOptions.blockSize = 512
    var reads: [Int] = []
    for count in [2_000, 20_000] {
      let path = "/db\(count)"
      var database = try await Database.open(
        at: path, options: options, environment: environment, engineOptions: engineOptions)
      var values: [String: (any FieldContent)?] = [:]
      for number in 0..<count { values["k\(number)"] = "some text \(number)" }
      try await database.tree.child("list").updateChildValues(values)
      try await database.compact()
      try await database.close()
      database = try await Database.open(
        at: path, options: options, environment: environment, engineOptions: engineOptions)
      let place = database.tree.child("list")
      let listener = TreeListener(database, [(place.treeQuery, [.value])]) { $0.snapshot }
      #expect(try await listener.poll()?.childrenCount == count)
      try await place.child("k7").setValue("another")
      let before = database.metrics.blockLoads
      #expect(try await listener.poll()?.childSnapshot(forPath: "k7").value == "another")
      reads.append(database.metrics.blockLoads - before)
      try await database.close()
    }
    #expect(reads[0] > 0 && reads[1] <= reads[0] + 4, "\(reads)")
  }
}
