// Writing to the tree and reading it back: what a write replaces and what it leaves, keys of all
// kinds, priorities, arrays, server values, and that nothing is half-written.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

struct Car: Codable, Equatable {
  var name: String
  var description: String
  var isHybrid: Bool
}

@Suite struct TreeWriteTests {
  @Test func `A whole value replaces the node, and what it lacks is gone`() async throws {
    let database = try await Database.underTest()
    let kim = database.tree.child("students/kim")
    try await kim.setValue(["name": "Kim", "major": "physics", "school": "KAIST"])
    try await kim.setValue(["name": "Kim Minji"])
    #expect(try await kim.getData().value == ["name": "Kim Minji"])
  }

  @Test func `An update changes what it names, and the rest stays`() async throws {
    let database = try await Database.underTest()
    let kim = database.tree.child("students/kim")
    try await kim.setValue(["name": "Kim", "major": "physics", "school": "KAIST"])
    try await kim.updateChildValues(["name": "Kim Minji"])
    #expect(
      try await kim.getData().value
        == ["name": "Kim Minji", "major": "physics", "school": "KAIST"])
  }

  @Test func `A map as the value of a path replaces what is at the path`() async throws {
    let database = try await Database.underTest()
    let cars = database.tree.child("cars")
    try await cars.child("1").setValue(["name": "EV6", "isHybrid": false])
    try await database.tree.updateChildValues(["cars/1": ["name": "Ioniq"]])
    #expect(try await cars.child("1").getData().value == ["name": "Ioniq"])
    try await database.tree.updateChildValues(["cars/1/isHybrid": true])
    #expect(try await cars.child("1").getData().value == ["name": "Ioniq", "isHybrid": true])
  }

  @Test func `Several paths are written together or not at all`() async throws {
    let database = try await Database.underTest()
    let root = database.tree
    try await root.child("cars").setValue(["old": ["name": "Pony"], "new": ["name": "EV5"]])
    let result = try await root.updateChildValues([
      "cars/new/name": "EV6", "cars/old": nil, "count": 1,
    ])
    #expect(result.version > .missing)
    #expect(try await root.getData().value == ["cars": ["new": ["name": "EV6"]], "count": 1])
    await #expect(throws: DatabaseError.self) {
      try await root.updateChildValues(["count": 2, "wrong": Double.nan])
    }
    await #expect(throws: DatabaseError.self) {
      try await root.updateChildValues(["cars": nil, "cars/new/name": "K9"])
    }
    #expect(try await root.child("count").getData().value == 1)
  }

  @Test func `E-mail addresses are keys unchanged, and never confused with one another`()
    async throws
  {
    let database = try await Database.underTest()
    let users = database.tree.child("users")
    try await users.child(key: "a.b@c.kr").setValue(["name": "dot"])
    try await users.child(key: "a-b@c.kr").setValue(["name": "dash"])
    #expect(try await users.child(key: "a.b@c.kr").child("name").getData().value == "dot")
    #expect(try await users.child("a-b@c.kr/name").getData().value == "dash")
    #expect(try await users.getData().childrenCount == 2)
  }

  @Test(arguments: ["#", "$", "[", "]", ".", " ", "한글", "😀", "\u{0}", "\u{1}", "a\u{0}b", "-"])
  func `Every key but the path's separator can be used`(key: String) async throws {
    let database = try await Database.underTest()
    try await database.tree.child("x").child(key: key).setValue(1)
    let found = try await database.tree.child("x").getData()
    #expect(found.children.map(\.key) == [key])
    #expect(found.childSnapshot(forPath: key).value == 1)
  }

  @Test(arguments: ["", "a/b", ".value", ".priority", ".sv", String(repeating: "k", count: 1_501)])
  func `A key that cannot be one is refused`(key: String) async throws {
    let database = try await Database.underTest()
    await #expect(throws: DatabaseError.self) {
      try await database.tree.child(key: key).setValue(1)
    }
    #expect(try await database.tree.getData().exists == false)
  }

  @Test func `Null and empty values are nothing, and remove parents that become empty`()
    async throws
  {
    let database = try await Database.underTest()
    let tree = database.tree
    try await tree.child("a/b/c").setValue(1)
    try await tree.child("a").setPriority("p")
    try await tree.child("a/b/c").setValue(nil)
    #expect(try await tree.getData().exists == false)
    try await tree.child("a/b/c").setValue(1)
    #expect(try await tree.child("a").getData().priority == nil)
    try await tree.child("a").setValue(["b": [String: Int]()])
    #expect(try await tree.getData().exists == false)
    #expect(try await tree.child("a").removeValue().version == .missing)
  }

  @Test func `A child below a leaf takes its place, and its priority stays`() async throws {
    let database = try await Database.underTest()
    let node = database.tree.child("node")
    try await node.setValue("leaf", andPriority: 7)
    try await node.child("inner").removeValue()
    #expect(try await node.getData().value == "leaf")
    try await node.child("inner/deep").setValue(true)
    let snapshot = try await node.getData()
    #expect(snapshot.value == ["inner": ["deep": true]])
    #expect(snapshot.priority == 7)
    try await node.setValue("again")
    #expect(try await node.getData().priority == nil)
  }

  @Test func `Arrays stay arrays, and maps with numbers for keys stay maps`() async throws {
    let database = try await Database.underTest()
    let tree = database.tree
    try await tree.setValue(["list": ["a", "b"], "map": ["0": "a", "1": "b"]])
    #expect(try await tree.getData().value == ["list": ["a", "b"], "map": ["0": "a", "1": "b"]])
    try await tree.child("list/2").setValue("c")
    #expect(try await tree.child("list").getData().value == ["a", "b", "c"])
    try await tree.child("list/1").removeValue()
    #expect(try await tree.child("list").getData().value == ["a", nil, "c"])
    try await tree.child("list/9").setValue("far")
    #expect(
      try await tree.child("list").getData().value == ["0": "a", "2": "c", "9": "far"])
    try await tree.child("nested").setValue([1, [2, [3, nil]]] as Value)
    #expect(try await tree.child("nested").getData().value == [1, [2, [3, nil]]])
  }

  @Test func `A sum over sixty-four bits becomes a double`() async throws {
    let database = try await Database.underTest()
    let count = database.tree.child("count")
    try await count.setValue(ServerValue.increment(5))
    #expect(try await count.getData().value == 5)
    try await count.setValue(ServerValue.increment(1.5))
    #expect(try await count.getData().value == 6.5)
    try await count.setValue(Int64.max)
    try await database.tree.updateChildValues(["count": ServerValue.increment(1)])
    #expect(try await count.getData().value.double == 0x1p63)
    try await count.setValue("text")
    try await count.setValue([".sv": ["increment": 3]])
    #expect(try await count.getData().value == 3)
  }

  @Test func `The server's time is the commit's, in milliseconds`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("time")
    let result = try await place.setValue([
      "at": ServerValue.timestamp(), "also": [".sv": "timestamp"],
    ])
    let moment = Value.integer(result.commitTime.microsecondsSince1970 / 1_000)
    #expect(try await place.getData().value == ["at": moment, "also": moment])
  }

  @Test func `Values that JSON lacks are refused, with their place`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("a")
    let values: [any FieldContent] = [
      Double.nan, Double.infinity, Date(), [UInt8]([1]), try GeoPoint(latitude: 1, longitude: 2),
      database.document("a/b"), FieldValue.delete(), FieldValue.arrayUnion([1]), [".sv": "no"],
    ]
    for value in values {
      let error = await #expect(throws: DatabaseError.self) {
        try await place.setValue(["x": ["y": value] as [String: (any FieldContent)?]])
      }
      #expect(error?.code == .invalidArgument)
      #expect(error?.path == "/a")
    }
    #expect(try await place.getData().exists == false)
  }

  @Test func `A type is written and read as it is`() async throws {
    let database = try await Database.underTest()
    let car = Car(name: "EV6", description: "new", isHybrid: false)
    let place = database.tree.child("cars").childByAutoId()
    try await place.setValue(from: car)
    #expect(try await place.getData().data(as: Car.self) == car)
    try await database.tree.child("list").setValue(from: [1, 2, 3])
    #expect(try await database.tree.child("list").getData().data(as: [Int].self) == [1, 2, 3])
    #expect(throws: DatabaseError.self) {
      try database.snapshot().getData(database.tree.child("none")).data(as: Car.self)
    }
    let date = Date(timeIntervalSince1970: 1_000)
    try await database.tree.child("date").setValue(from: date)
    #expect(try await database.tree.child("date").getData().value == 1_000_000.0)
    #expect(try await database.tree.child("date").getData().data(as: Date.self) == date)
  }

  @Test func `An exported and rewritten value is the same`() async throws {
    let database = try await Database.underTest()
    let tree = database.tree
    try await tree.setValue([
      "a": [".value": 1, ".priority": 2] as Value, "b": [".priority": "p", "c": true] as Value,
    ])
    let exported = try await tree.getData().exportedValue
    #expect(
      exported == ["a": [".value": 1, ".priority": 2], "b": [".priority": "p", "c": true]])
    try await tree.child("copy").setValue(exported)
    #expect(try await tree.child("copy").getData().exportedValue == exported)
    #expect(try await tree.child("copy/b").getData().priority == "p")
  }

  @Test func `A hundred thousand automatic keys are strictly in order`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("a")
    var last = ""
    for _ in 0..<100_000 {
      let key = try #require(place.childByAutoId().key)
      #expect(key.utf8.count == 20)
      guard key > last else {
        Issue.record("\(key) after \(last)")
        break
      }
      last = key
    }
  }

  @Test func `References lead up and down`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("/a//b/c/")
    #expect(place.path == "a/b/c")
    #expect(place.key == "c")
    #expect(place.parent == database.tree.child("a").child("b"))
    #expect(place.root == database.tree)
    #expect(database.tree.parent == nil)
    #expect(database.tree.key == nil)
  }

  @Test func `A wide and deep tree is written and read back, from memory and from files`()
    async throws
  {
    let database = try await Database.underTest()
    let seed = Seeds.first(1)[0]
    var random = SeededRandom(seed: seed)
    func draw(_ depth: Int) -> Value {
      if depth == 0 || random.below(3) == 0 {
        return [.integer(Int64(random.below(9))), .boolean(true), "text", 2.5][random.below(4)]
      }
      var fields: [String: Value] = [:]
      for _ in 0..<(1 + random.below(5)) { fields["\(random.below(40))"] = draw(depth - 1) }
      return .map(fields)
    }
    for _ in 0..<30 {
      let value = draw(6)
      try await database.tree.child("x").setValue(value)
      #expect(try await database.tree.child("x").getData().value == value, "seed \(seed)")
    }
    let value = try await database.tree.getData().value
    try await database.compact()
    #expect(try await database.tree.getData().value == value)
  }
}
