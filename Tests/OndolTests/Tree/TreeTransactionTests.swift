// The tree in transactions, beside documents, at close and after a crash, and the results of checks
// and salvage.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private func withDirectory(_ body: (String) async throws -> Void) async throws {
  let url = FileManager.default.temporaryDirectory.appending(path: "ondol-\(UUID().uuidString)")
  defer { try? FileManager.default.removeItem(at: url) }
  try await body(url.path)
}

@Suite struct TreeTransactionTests {
  @Test func `Counts by many at once lose nothing`() async throws {
    let database = try await Database.underTest()
    let counter = database.tree.child("counter")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<10 {
            try await counter.runTransaction(attempts: 1_000) { value in
              .integer((value.integer ?? 0) + 1)
            }
            try await counter.parent?.child("sum").setValue(ServerValue.increment(1))
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await database.tree.getData().value == ["counter": 80, "sum": 80])
  }

  @Test func `A transaction given up changes nothing`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    try await place.setValue("a", andPriority: 1)
    let left = try await place.runTransaction { _ in nil }
    #expect(!left.committed)
    #expect(left.snapshot.value == "a")
    let made = try await place.runTransaction { .string(($0.string ?? "") + "b") }
    #expect(made.committed)
    #expect(made.snapshot.value == "ab")
    #expect(try await place.getData().priority == 1)
  }

  /// Sign-up in three calls once left claims without profiles, and pictures without owners.
  @Test func `Nodes, documents and bytes are written together or not at all`() async throws {
    var options = Database.Options()
    options.blobGracePeriod = .zero
    let database = try await Database.underTest(options: options)
    let emails = database.tree.child("emails")
    let portraits = database.storage.reference(withPath: "portraits")
    func signUp(_ email: String, _ id: String) async throws {
      try await database.runTransaction { transaction in
        let picture = [UInt8]("the face of \(email), \(id)".utf8)
        try await transaction.putData(picture, at: "portraits/\(id)-\(email)")
        guard try !transaction.getData(emails.child(key: email)).exists else {
          throw DatabaseError(.alreadyExists, "taken")
        }
        try transaction.setValue(id, at: emails.child(key: email))
        try transaction.create(["email": email], forDocument: database.document("users/\(id)"))
      }
    }
    try await signUp("a.b@c.kr", "1")
    let error = await #expect(throws: DatabaseError.self) { try await signUp("a.b@c.kr", "2") }
    #expect(error?.code == .alreadyExists)
    let other = await #expect(throws: DatabaseError.self) { try await signUp("new@c.kr", "1") }
    #expect(other?.code == .alreadyExists)
    #expect(try await emails.getData().value == ["a.b@c.kr": "1"])
    #expect(try await database.collection("users").getDocuments().count == 1)
    #expect(try await portraits.listAll().items.map(\.name) == ["1-a.b@c.kr"])
    for _ in 0..<3 { try await database.storage.reclaim() }
    #expect(try await database.storage.statistics().contents == 1)
  }

  @Test func `A transaction repeats after a change of its reads before the commit`() async throws {
    let database = try await Database.underTest()
    let tree = database.tree
    try await tree.setValue(["a": 1, "b": 1])
    var attempts = 0
    try await database.runTransaction { transaction in
      attempts += 1
      let seen = try transaction.getData(tree.child("a").queryOrderedByKey())
      if attempts == 1 { try await apart { try await tree.child("a/new").setValue(true) } }
      try transaction.setValue(seen.childrenCount, at: tree.child("b"))
    }
    #expect(attempts == 2)
    #expect(try await tree.child("b").getData().value == 1)
  }

  @Test func `Writers of neighbours do not conflict, and a large replacement succeeds`()
    async throws
  {
    let database = try await Database.underTest()
    let place = database.tree.child("x")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          for number in 0..<50 {
            try await place.child("\(writer)/\(number)").setValue(number, durability: .memory)
          }
        }
      }
      for _ in 0..<5 {
        group.addTask { try await place.child("0").setValue(["all": true], durability: .memory) }
      }
      try await group.waitForAll()
    }
    for writer in 1..<4 {
      #expect(try await place.child("\(writer)").getData().childrenCount == 50)
    }
  }

  @Test func `Writes for the close are made by closing`() async throws {
    try await withDirectory { path in
      let database = try await Database.open(at: path)
      let online = database.tree.child("online")
      try await online.child("me").setValue(true)
      try await online.child("me").onCloseRemoveValue()
      try await online.onCloseUpdateChildValues(["last": ServerValue.timestamp(), "n": 1])
      try await online.child("n").onCloseSetValue(ServerValue.increment(4))
      try await online.child("kept").setValue(1)
      try await online.child("kept").onCloseRemoveValue()
      try await online.child("kept").cancelCloseOperations()
      #expect(try await online.child("me").getData().exists)
      try await database.close()
      let again = try await Database.open(at: path)
      let found = try await again.tree.child("online").getData()
      #expect(found.childSnapshot(forPath: "last").value.integer ?? 0 > 1_600_000_000_000)
      #expect(found.children.map(\.key) == ["kept", "last", "n"])
      #expect(found.childSnapshot(forPath: "n").value == 4)
      try await again.close()
    }
  }

  @Test func `Writes for the close are made by the next open after a crash`()
    async throws
  {
    try await withDirectory { path in
      let database = try await Database.open(at: path)
      try await database.tree.child("online/me").setValue(true)
      try await database.tree.child("online/me").onCloseRemoveValue()
      // The engine closes without the database knowing.
      try await database.engine.close()
      let again = try await Database.open(at: path)
      #expect(try await again.tree.getData().exists == false)
      try await again.tree.child("online/me").setValue(true)
      try await again.close()
      let third = try await Database.open(at: path)
      #expect(try await third.tree.child("online/me").getData().value == true)
      try await third.close()
    }
  }

  @Test func `A priority alone cannot be set on close`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("online")
    let error = await #expect(throws: DatabaseError.self) {
      try await place.onCloseUpdateChildValues(["me": true, "me/.priority": 1])
    }
    #expect(error?.code == .invalidArgument)
    try await place.child("me").onCloseSetValue(true, andPriority: 1)
    try await database.close()
  }

  @Test func `A reader beside the writer sees the tree and its events`() async throws {
    try await withDirectory { path in
      let database = try await Database.open(at: path)
      try await database.tree.child("x/a").setValue(1)
      let reader = try await Database.open(at: path, options: .init(access: .readOnly))
      let query = reader.tree.child("x").treeQuery
      let listener = TreeListener(reader, [(query, Set(TreeEvent.Kind.allCases))]) { $0 }
      var told: [String] = []
      while let event = try await listener.poll() { told.append(event.told) }
      #expect(told == ["childAdded a after -: 1", "value {\"a\": 1}"])
      try await database.tree.child("x").setValue(["a": 2, "b": 3])
      // A listener is active, so it may have been refreshed already.
      try await reader.refresh()
      told = []
      while let event = try await listener.poll() { told.append(event.told) }
      #expect(
        told == [
          "childAdded b after a: 3", "childChanged a after -: 2", "value {\"a\": 2, \"b\": 3}",
        ])
      try await reader.close()
      try await database.close()
    }
  }

  @Test func `The tree is part of checks, backups and salvages`() async throws {
    try await withDirectory { path in
      let database = try await Database.open(at: path)
      let tree = database.tree
      try await tree.child("cars").createIndex(byChild: "name")
      try await tree.child("cars").setValue([
        "1": ["name": "EV6", ".priority": 2] as Value, "2": ["name": "Ioniq"],
      ])
      try await tree.child("list").setValue([1, [2, 3]] as Value, andPriority: "p")
      #expect(try await database.verify().isEmpty)
      try await database.backup(to: path + "-backup")
      let expected = try await tree.getData().exportedValue
      try await database.close()
      defer {
        for end in ["-backup", "-saved"] { try? FileManager.default.removeItem(atPath: path + end) }
      }
      let report = try await Database.salvage(from: path, to: path + "-saved")
      #expect(report.isComplete)
      #expect(report.treeRows > 4)
      for copy in [path + "-backup", path + "-saved"] {
        let database = try await Database.open(at: copy)
        #expect(try await database.tree.getData().exportedValue == expected)
        let findings = try await database.verify()
        #expect(findings.isEmpty, "\(copy): \(findings)")
        let cars = database.tree.child("cars")
        #expect(try await cars.getData().children.map(\.key) == ["2", "1"])
        let found = try await cars.queryOrdered(byChild: "name").queryEqual(toValue: "EV6")
          .getData()
        #expect(found.children.map(\.key) == ["1"])
        try await database.close()
      }
    }
  }

  @Test func `Rows of the tree that do not fit together are found`() async throws {
    let wrong: [(key: [UInt8], row: [UInt8])] = [
      (TreeKey.root + TreeKey.component("a") + TreeKey.component("b"), [1, 1]),
      (TreeKey.root + TreeKey.component("z"), [2, 0x11, 1, 0, 0, 0]),
      (TreeKey.root + TreeKey.component("y"), [9]),
      (TreeKey.root + [0x10, 0x23] + TreeKey.component("a"), []),
      (TreeKey.root + [0x10, 0x99], []), (TreeKey.root + [0x30], [1, 1]),
    ]
    for (key, row) in wrong {
      let database = try await Database.underTest()
      try await database.tree.child("a").setValue(1)
      #expect(try await database.verify().isEmpty)
      var batch = Batch()
      batch.put(key.bytes, row.bytes)
      _ = try await database.engine.commit(batch, durability: .memory)
      let findings = try await database.verify()
      #expect(findings.contains { $0.kind == .tree }, "\(key) \(row)")
    }
  }
}
