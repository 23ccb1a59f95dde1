// Conflicts that the app's own rule decides.

#if Server && Sync
  import Foundation
  import Ondol
  import OndolTestKit
  import Testing

  @testable import OndolSync

  @Suite struct SyncMergeTests {
    private struct Refusal: Error {}

    private static func texts(_ value: Value?) -> [String] {
      (value?.array ?? []).compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    /// Joins the lines of both sides, and keeps theirs of everything else.
    private static let join: MergeRule = { base, mine, theirs in
      guard let mine, let theirs else { return mine ?? theirs }
      var merged = theirs
      let lines = texts(theirs["lines"]) + texts(mine["lines"])
      merged["lines"] = .array(Set(lines).sorted().map { .string($0) })
      return merged
    }

    private func stage() async throws -> (SyncStage, SyncDevice) {
      let stage = try await SyncStage()
      try await stage.server.document("notes/n").setData(["lines": ["a"], "n": 1, "title": "T"])
      let device = try await stage.device(following: "notes")
      try await device.sync.settle()
      return (stage, device)
    }

    @Test func `A rule decides about a field that both sides have changed`() async throws {
      let (stage, device) = try await stage()
      try await device.sync.merge(of: "notes", by: Self.join)
      let (note, served) = (
        device.database.document("notes/n"), stage.server.document("notes/n")
      )
      await device.goOffline()
      try await note.updateData([
        "lines": ["a", "mine"], "n": FieldValue.increment(10), "own": true,
      ])
      try await served.updateData(["lines": ["a", "theirs"], "n": FieldValue.increment(100)])
      try await device.goOnline()
      let expected: [String: Value] = [
        "lines": ["a", "mine", "theirs"], "n": 111, "title": "T",
      ]
      #expect(try await served.getDocument().data() == expected)
      #expect(try await note.getDocument().data() == expected)
      #expect(try await device.sync.pendingRejections().isEmpty)
    }

    @Test func `Without a conflict nobody is asked, and a replacement keeps the other fields`()
      async throws
    {
      let (stage, device) = try await stage()
      try await device.sync.merge(of: "notes") { _, _, _ in throw Refusal() }
      await device.goOffline()
      let note = device.database.document("notes/n")
      try await note.setData(["lines": ["mine"], "n": 1, "title": "T"])
      try await stage.server.document("notes/n").updateData(["title": "Theirs"])
      try await device.goOnline()
      let expected: [String: Value] = ["lines": ["mine"], "n": 1, "title": "Theirs"]
      #expect(try await stage.server.document("notes/n").getDocument().data() == expected)
      #expect(try await device.sync.pendingRejections().isEmpty)
    }

    @Test func `Later writes of the same document follow a merged one`() async throws {
      let (stage, device) = try await stage()
      try await device.sync.merge(of: "notes", by: Self.join)
      await device.goOffline()
      let note = device.database.document("notes/n")
      try await note.updateData(["lines": ["a", "one"]])
      try await note.updateData(["lines": ["a", "one", "three"], "title": "Mine"])
      try await stage.server.document("notes/n").updateData(["lines": ["a", "two"]])
      // It has read what the merge replaces.
      try await device.database.runTransaction { transaction in
        let title = try transaction.getDocument(note)["title"] as String? ?? ""
        try transaction.updateData(["title": title + "!"], forDocument: note)
      }
      try await note.updateData(["last": true])
      try await device.goOnline()
      let expected: [String: Value] = [
        // The rule keeps the server's title.
        "lines": ["a", "one", "three", "two"], "n": 1, "title": "T", "last": true,
      ]
      let found = try await stage.server.document("notes/n").getDocument().data()
      #expect(found == expected)
      try await device.wait(for: note, "last", true)
      let shown = try await note.getDocument().data()
      #expect(shown == expected)
      #expect(try await device.sync.pendingRejections().count == 1)
    }

    @Test func `A deletion meets a change, and the rule decides`() async throws {
      let (stage, device) = try await stage()
      try await device.sync.merge(of: "notes") { base, mine, theirs in
        #expect(base?["title"] == "T")
        return mine ?? theirs
      }
      let (note, served) = (
        device.database.document("notes/n"), stage.server.document("notes/n")
      )
      await device.goOffline()
      try await note.delete()
      try await served.updateData(["title": "Theirs"])
      try await device.goOnline()
      #expect(try await note.getDocument()["title"] as String? == "Theirs")
      #expect(try await served.getDocument()["title"] as String? == "Theirs")
      await device.goOffline()
      try await served.setData(["title": "T"])
      try await device.goOnline()
      await device.goOffline()
      try await note.updateData(["title": "Mine"])
      try await served.delete()
      try await device.goOnline()
      #expect(try await served.getDocument()["title"] as String? == "Mine")
      #expect(try await note.getDocument()["title"] as String? == "Mine")
    }

    @Test func `A rule that throws makes a rejection and stops nothing`() async throws {
      let (stage, device) = try await stage()
      try await device.sync.merge(of: "notes") { _, _, _ in throw Refusal() }
      await device.goOffline()
      let note = device.database.document("notes/n")
      try await note.updateData(["title": "Mine"])
      try await device.database.document("notes/other").setData(["n": 5])
      try await stage.server.document("notes/n").updateData(["title": "Theirs"])
      try await device.goOnline()
      #expect(try await note.getDocument()["title"] as String? == "Theirs")
      #expect(try await stage.server.document("notes/other").getDocument()["n"] as Int? == 5)
      let rejection = try #require(try await device.sync.pendingRejections().first)
      guard case .unmerged(let text) = rejection.reason else {
        Issue.record("refused for \(rejection.reason)")
        return
      }
      #expect(text.contains("Refusal"))
      #expect(rejection.documents.first?.mine?["title"] == "Mine")
      #expect(rejection.documents.first?.theirs?["title"] == "Theirs")
    }

    @Test func `What the app has read itself is refused and not merged`() async throws {
      let (stage, device) = try await stage()
      try await device.sync.merge(of: "notes", by: Self.join)
      await device.goOffline()
      let note = device.database.document("notes/n")
      try await device.database.runTransaction { transaction in
        _ = try transaction.getDocument(note)
        try transaction.updateData(["title": "Mine"], forDocument: note)
      }
      try await stage.server.document("notes/n").updateData(["title": "Theirs"])
      try await device.goOnline()
      try await device.wait(for: note, "title", "Theirs")
      #expect(try await device.sync.pendingRejections().count == 1)
    }

    @Test func `After a restart a conflict waits for its rule`() async throws {
      let stage = try await SyncStage()
      try await stage.server.document("notes/n").setData(["lines": ["a"]])
      let place = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
      defer { try? FileManager.default.removeItem(at: place) }
      let path = place.path(percentEncoded: false)
      var database = try await Database.open(at: path)
      var device = try await stage.device(database)
      try await device.sync.merge(of: "notes", by: Self.join)
      try await device.sync.follow(database.collection("notes"))
      try await device.sync.settle()
      await device.goOffline()
      try await database.document("notes/n").updateData(["lines": ["a", "mine"]])
      try await database.document("notes/n").updateData(["later": true])
      await device.sync.stop()
      try await database.close()
      try await stage.server.document("notes/n").updateData(["lines": ["a", "theirs"]])

      database = try await Database.open(at: path)
      device = try await stage.device(database)
      for await state in device.sync.states where !state.collectionsToMerge.isEmpty {
        #expect(state.collectionsToMerge == ["notes"])
        break
      }
      // Shown by its fields until then, and kept over another restart.
      #expect(
        Self.texts(try await database.document("notes/n").getDocument()["lines"]) == ["a", "mine"])
      await device.sync.stop()
      try await database.close()
      database = try await Database.open(at: path)
      device = try await stage.device(database)
      try await device.sync.merge(of: "notes", by: Self.join)
      try await device.sync.settle()
      let expected: [String: Value] = ["lines": ["a", "mine", "theirs"], "later": true]
      #expect(try await stage.server.document("notes/n").getDocument().data() == expected)
      #expect(try await database.document("notes/n").getDocument().data() == expected)
      #expect(device.sync.currentState.collectionsToMerge.isEmpty)
      try await database.close()
    }

    @Test func `Without any rule the waiting commit is merged by its fields`() async throws {
      let (stage, device) = try await stage()
      try await device.sync.merge(of: "notes", by: Self.join)
      await device.goOffline()
      let note = device.database.document("notes/n")
      try await note.updateData(["title": "Mine"])
      try await device.sync.merge(of: "notes", by: nil)
      try await stage.server.document("notes/n").updateData(["title": "Theirs", "n": 2])
      try await device.goOnline()
      let expected: [String: Value] = ["lines": ["a"], "n": 2, "title": "Mine"]
      #expect(try await stage.server.document("notes/n").getDocument().data() == expected)
    }

    @Test func `Two devices that merge lose no line`() async throws {
      let stage = try await SyncStage()
      try await stage.server.document("notes/n").setData(["lines": ["a"]])
      let devices = [
        try await stage.device(following: "notes"), try await stage.device(following: "notes"),
      ]
      for device in devices {
        try await device.sync.merge(of: "notes", by: Self.join)
        try await device.sync.settle()
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, device) in devices.enumerated() {
          group.addTask {
            for turn in 0..<20 {
              let note = device.database.document("notes/n")
              let lines = Self.texts(try await note.getDocument()["lines"])
              try await note.updateData(["lines": lines + ["\(number)-\(turn)"]])
            }
            try await device.sync.settle()
          }
        }
        try await group.waitForAll()
      }
      for device in devices { try await device.sync.settle() }
      let lines = Self.texts(try await stage.server.document("notes/n").getDocument()["lines"])
      #expect(Set(lines).count == 41)
    }

    // MARK: - Documents on both sides

    @Test func `A merge without a rule has every change of one side`() throws {
      for seed in Seeds.first(400) {
        var random = SeededRandom(seed: seed)
        func fields(_ base: [String: Value]) -> [String: Value] {
          var fields = base
          for name in ["a", "b", "c"] where random.chance(1, in: 3) {
            fields[name] = random.chance(1, in: 4) ? nil : .integer(Int64(random.below(5)))
          }
          var inner = fields["m"]?.map ?? [:]
          for name in ["x", "y"] where random.chance(1, in: 3) {
            inner[name] = random.chance(1, in: 4) ? nil : .integer(Int64(random.below(5)))
          }
          fields["m"] = .map(inner)
          return fields
        }
        let base = fields([:])
        let (mine, theirs) = (fields(base), fields(base))
        let merged = MergedDocument(base: base, mine: mine, theirs: theirs, transformed: [])
        // The model looks at each place by itself.
        func places(_ fields: [String: Value]) -> [String: Value] {
          var places = fields.filter { $0.key != "m" }
          for (name, value) in fields["m"]?.map ?? [:] { places["m." + name] = value }
          return places
        }
        let (old, own, others) = (places(base), places(mine), places(theirs))
        let names = Set(old.keys).union(own.keys).union(others.keys)
        let isConflict = names.contains { name in
          own[name] != old[name] && others[name] != old[name] && own[name] != others[name]
        }
        #expect(merged.isConflict == isConflict, "SEED=\(seed)")
        guard !isConflict else { continue }
        var expected: [String: Value] = [:]
        for name in names { expected[name] = own[name] != old[name] ? own[name] : others[name] }
        let path = try DocumentPath("notes/n")
        guard case .patch(let values, let mask) = merged.write(path, [], decided: nil).change else {
          Issue.record("SEED=\(seed): no patch")
          return
        }
        var result = others
        let given = places(values)
        for place in mask.map({ $0.joined(separator: ".") }) { result[place] = given[place] }
        #expect(result == expected, "SEED=\(seed)")
      }
    }
  }
#endif
