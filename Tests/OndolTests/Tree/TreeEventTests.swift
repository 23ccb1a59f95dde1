// The events of the tree's listeners, step by step: the first events, the order of events within a
// commit and between places, previous siblings, windows that refill, keys and priorities in their
// orders, and the cost of an idle listener.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private let allKinds = Set(TreeEvent.Kind.allCases)

/// A listener's events without waiting, in few words.
private func told(_ listener: TreeListener<TreeEvent>) async throws -> [String] {
  var words: [String] = []
  while let event = try await listener.poll() {
    switch event.kind {
    case .value: words.append("value \(event.query.reference.path)")
    case .childRemoved: words.append("removed \(event.snapshot.key ?? "")")
    default:
      let kind = "\(event.kind)".replacing("child", with: "").lowercased()
      words.append("\(kind) \(event.snapshot.key ?? "") after \(event.previousSiblingKey ?? "-")")
    }
  }
  return words
}

private func expect(
  _ listener: TreeListener<TreeEvent>, _ expected: [String],
  at location: SourceLocation = #_sourceLocation
) async throws {
  let words = try await told(listener)
  #expect(words == expected, sourceLocation: location)
}

private func listen(
  _ source: some TreeQuerySource, _ kinds: Set<TreeEvent.Kind> = allKinds
) -> TreeListener<TreeEvent> {
  let query = source.treeQuery
  return TreeListener(query.database, [(query, kinds)]) { $0 }
}

@Suite struct TreeEventTests {
  @Test func `Every child is added, then comes one value; with nothing there, a value alone`()
    async throws
  {
    let database = try await Database.underTest()
    let cars = database.tree.child("cars")
    try await expect(listen(cars), ["value cars"])
    try await cars.setValue(["b": 2, "a": 1, "c": 3])
    let first = listen(cars)
    let expected = ["added a after -", "added b after a", "added c after b", "value cars"]
    try await expect(first, expected)
    // A second listener has its own beginning, and the first receives nothing again.
    try await expect(listen(cars), expected)
    try await expect(first, [])
  }

  @Test func `A commit's events come as removed, added, moved, changed, value`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    try await place.setValue(["a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5])
    let listener = listen(place.queryOrderedByValue())
    _ = try await told(listener)
    try await place.setValue(["a": 4, "aa": 2, "b": 1, "bb": 3, "d": 3, "e": 2.5])
    try await expect(
      listener,
      [
        "removed c", "removed f", "added aa after b", "added bb after e", "moved e after aa",
        // Added after one that moves: only now it has its place in a list.
        "moved bb after e", "moved a after d", "changed e after aa", "changed a after d", "value x",
      ])
  }

  @Test func `Children move only when their order's value changes`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    try await place.setValue(["a": ["n": 1, "t": 1], "b": ["n": 2], "c": ["n": 3]])
    let byKey = listen(place.queryOrderedByKey())
    let byChild = listen(place.queryOrdered(byChild: "n"))
    _ = try await told(byKey)
    _ = try await told(byChild)
    try await place.child("a/t").setValue(2)
    try await expect(byChild, ["changed a after -", "value x"])
    try await place.child("a/n").setValue(9)
    try await expect(byChild, ["moved a after c", "changed a after c", "value x"])
    try await expect(byKey, ["changed a after -", "value x"])
    try await place.child("0").setValue(1)
    try await expect(byChild, ["added 0 after -", "value x"])
  }

  @Test func `The deepest listener is notified first, and one commit is one step for all`()
    async throws
  {
    let database = try await Database.underTest()
    let tree = database.tree
    try await tree.child("a/b/c").setValue(1)
    let queries = [tree, tree.child("a/b"), tree.child("a")].map { ($0.treeQuery, allKinds) }
    let listener = TreeListener(database, queries) { $0 }
    try await expect(
      listener,
      [
        "added c after -", "value a/b", "added b after -", "value a", "added a after -", "value ",
      ])
    try await tree.child("a/b/c").setValue(2)
    try await expect(
      listener,
      [
        "changed c after -", "value a/b", "changed b after -", "value a", "changed a after -",
        "value ",
      ])
    try await tree.updateChildValues(["a": nil, "d": 1])
    try await expect(
      listener,
      [
        "removed c", "value a/b", "removed b", "value a", "removed a", "added d after -", "value ",
      ])
  }

  @Test func `A commit that changes nothing there is to see has no events`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    try await place.setValue(["a": 1])
    let listener = listen(place)
    _ = try await told(listener)
    #expect(try await place.setValue(["a": 1]).version == .missing)
    try await database.tree.child("y").setValue(1)
    try await place.child("b").setValue(2)
    try await place.child("b").removeValue()
    // Created and deleted again before the listener read.
    try await expect(listener, [])
  }

  @Test func `A limit lets the next child in when one leaves, in the same commit's events`()
    async throws
  {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    try await place.setValue(["a": 1, "b": 2, "c": 3, "d": 4])
    let first = listen(place.queryLimited(toFirst: 2))
    let last = listen(place.queryOrderedByValue().queryLimited(toLast: 2))
    try await expect(first, ["added a after -", "added b after a", "value x"])
    try await expect(last, ["added c after -", "added d after c", "value x"])
    try await place.child("a").removeValue()
    try await expect(first, ["removed a", "added c after b", "value x"])
    try await expect(last, [])
    try await place.child("b").setValue(9)
    try await expect(first, ["changed b after -", "value x"])
    try await expect(last, ["removed c", "added b after d", "value x"])
    try await place.child("a").setValue(0)
    try await expect(first, ["removed c", "added a after -", "value x"])
  }

  @Test func `Keys that are integers come first, by value, then texts by UTF-16`() async throws {
    let database = try await Database.underTest()
    let keys = [
      "-5", "0", "-0", "00", "1", "01", "2", "10", "2147483647", "2147483648", "a", "😀",
      "\u{ff5e}",
    ]
    for key in keys.shuffled() { try await database.tree.child(key: key).setValue(true) }
    #expect(try await database.tree.getData().children.map(\.key) == keys)
    #expect(try await database.tree.queryOrderedByKey().getData().children.map(\.key) == keys)
    var last: String?
    for try await child in database.tree.queryOrderedByKey().queryStarting(afterValue: "2").children
    {
      last = child.key
    }
    #expect(last == "\u{ff5e}")
  }

  @Test func `Children with priorities come after those without, numbers before texts`()
    async throws
  {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    try await place.setValue(["a": 1, "b": 2, "c": 3, "d": 4, "e": 5])
    let listener = listen(place)
    _ = try await told(listener)
    try await place.child("a").setPriority("z")
    try await expect(listener, ["moved a after e", "changed a after e", "value x"])
    try await place.child("b").setPriority(10)
    try await expect(listener, ["moved b after e", "changed b after e", "value x"])
    try await place.updateChildValues(["c/.priority": 9.5, "d/.priority": 10])
    #expect(try await place.getData().children.map(\.key) == ["e", "c", "b", "d", "a"])
    try await place.child("c").setValue(0)
    #expect(try await place.getData().children.map(\.key) == ["c", "e", "b", "d", "a"])
    let numbers = place.queryOrderedByPriority().queryStarting(atValue: 1)
      .queryEnding(atValue: 10, childKey: "b")
    #expect(try await numbers.getData().children.map(\.key) == ["b"])
  }

  @Test func `Values are ordered: nothing, false, true, numbers, texts, nodes`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    let values: [Value] = [
      ["t": 1], ["v": false], ["v": true], ["v": -3], ["v": 1], ["v": 1.5], ["v": ""], ["v": "b"],
      ["v": ["w": 0]],
    ]
    for (number, value) in values.enumerated().shuffled() {
      try await place.child("k\(number)").setValue(value)
    }
    let query = place.queryOrdered(byChild: "v")
    let keys = (0..<values.count).map { "k\($0)" }
    for isIndexed in [false, true] {
      if isIndexed { try await place.createIndex(byChild: "v") }
      #expect(try await query.getData().children.map(\.key) == keys)
      let equal = try await query.queryEqual(toValue: nil).getData()
      #expect(equal.children.map(\.key) == ["k0"])
      let some = query.queryStarting(afterValue: false).queryEnding(beforeValue: "b")
      #expect(try await some.getData().children.map(\.key) == Array(keys[2...6]))
      let last = try await query.queryLimited(toLast: 2).getData()
      #expect(last.children.map(\.key) == Array(keys[7...]))
    }
    try await place.dropIndex(byChild: "v")
    let error = await #expect(throws: DatabaseError.self) {
      try await place.dropIndex(byChild: "v")
    }
    #expect(error?.code == .notFound)
  }

  @Test func `Queries that cannot be are refused`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    let wrong: [TreeQuery] = [
      place.queryOrderedByKey().queryOrderedByValue(), place.queryLimited(toFirst: 0),
      place.queryLimited(toFirst: 1).queryLimited(toLast: 1),
      place.queryOrderedByKey().queryStarting(atValue: 5),
      place.queryOrderedByKey().queryStarting(atValue: "a", childKey: "b"),
      place.queryEqual(toValue: 1).queryEnding(atValue: 2), place.queryStarting(atValue: true),
      place.queryOrderedByValue().queryStarting(atValue: Double.nan),
      place.queryOrdered(byChild: ""), database.tree.child(key: "").queryOrderedByKey(),
    ]
    for query in wrong {
      let error = await #expect(throws: DatabaseError.self) { try await query.getData() }
      #expect(error?.code == .invalidArgument)
    }
  }

  @Test func `An idle listener costs bounded memory, and then gets the differences`()
    async throws
  {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    try await place.setValue(["a": 0, "b": 1])
    let listener = listen(place)
    _ = try await told(listener)
    for number in 0..<5_000 {
      try await place.child("n\(number)").setValue(number, durability: .memory)
    }
    for number in 1..<5_000 { try await place.child("n\(number)").removeValue(durability: .memory) }
    try await place.child("a").setValue(7)
    try await expect(listener, ["added n0 after b", "changed a after -", "value x"])
  }

  @Test(arguments: [(length: 10, most: 4_096), (length: 100_000, most: 41)])
  func `A listener's inbox is bounded by rows and by bytes`(
    length: Int, most: Int
  ) async throws {
    let database = try await Database.underTest()
    let inbox = TreeInbox(depth: 0) { try? database.engineSnapshot() }
    let start = try database.engineSnapshot()
    var content = TreeInbox.Content()
    inbox.finishLine(through: start, into: &content, keepsSeen: false)
    let before = [UInt8](repeating: 1, count: length)
    for number in 1...UInt64(5_000) {
      var key: [UInt8] = []
      key.appendVarint(number)
      _ = inbox.take(
        [TreeRowChange(key: key, before: before)],
        SequenceNumber(rawValue: start.sequence.rawValue + number))
    }
    // It includes the one beyond the limit.
    #expect(inbox.pendingCount == most + 1)
    try await database.close()
  }

  @Test func `Ending a task ends its listening, and closing ends all`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    let task = Task { for try await _ in place.observe(.value) {} }
    let other = Task {
      var count = 0
      for try await _ in place.observe(.childAdded, .childRemoved) { count += 1 }
      return count
    }
    while database.observerCount < 2 { await Task.yield() }
    try await place.child("a").setValue(1)
    task.cancel()
    try await task.value
    #expect(database.observerCount == 1)
    try await database.close()
    _ = try await other.value
    #expect(database.observerCount == 0)
  }

  @Test func `One event is enough if one is requested`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    try await place.setValue(["b": 2, "a": 1])
    #expect(try await place.observeSingle(.value).value == ["a": 1, "b": 2])
    #expect(try await place.observeSingle(.childAdded)?.snapshot.key == "a")
    #expect(database.observerCount == 0)
  }
}
