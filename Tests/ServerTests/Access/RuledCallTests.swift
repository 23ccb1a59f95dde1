// Rules over the calls of the service: what is read, what is written, and what a refusal says.

#if Server
  import GRPCCore
  import Ondol
  import OndolMapping
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf
  import Testing

  @testable import OndolServer

  @Suite struct RuledCallTests {
    private typealias Stage = RuledStage

    /// Three documents: two of Ann's, one of Ben's.
    private func stage(
      _ rules: String = RuledStage.owners, isStrict: Bool = false
    ) async throws -> RuledStage {
      let stage = try await RuledStage(rules, isStrict: isStrict)
      for (id, owner, price) in [("a", "ann", 1), ("b", "ann", 2), ("c", "ben", 3)] {
        try await stage.database.document("items/\(id)").setData(["owner": owner, "price": price])
      }
      return stage
    }

    private func mine(_ query: inout WireStructuredQuery) {
      Stage.from(&query, "items")
      query.where = Stage.equal("owner", "ann")
    }

    // MARK: - Reading

    @Test func `A document is shown to whom the rules allow it`() async throws {
      let stage = try await stage()
      #expect(try await stage.get("items/a", as: "ann").fields.count == 2)
      #expect(try await stage.get("items/a", as: "admin").fields.count == 2)
      for caller in ["ben", nil] {
        #expect(await code { try await stage.get("items/a", as: caller) } == .permissionDenied)
      }
      // Whether there is one is nobody's business either.
      #expect(await code { try await stage.get("items/none", as: "ann") } == .permissionDenied)
      #expect(await code { try await stage.get("items/none", as: "admin") } == .notFound)
    }

    @Test func `Credentials that cannot be checked are not those of nobody`() async throws {
      let stage = try await stage("match /{d=**} { allow read, write: if true; }")
      #expect(await code { try await stage.get("items/a", as: nil) } == nil)
      #expect(await code { try await stage.get("items/a", as: "unknown") } == .unauthenticated)
      let found = await code {
        try await CallCredentials.$current.withValue(["Bearer ann", "Bearer ben"]) {
          try await stage.service.getDocument(
            request: .with { $0.name = "\(Stage.documents)/items/a" }, context: Stage.context)
        }
      }
      #expect(found == .unauthenticated)
    }

    @Test func `A list that its query proves is answered, and any other document by document`()
      async throws
    {
      let stage = try await stage()
      #expect(try await stage.list(as: "ann", mine) == ["a", "b"])
      // The rules hold for what this finds, though the query does not say so.
      #expect(
        try await stage.list(as: "ann") {
          Stage.from(&$0, "items")
          $0.limit = .init(2)
        } == ["a", "b"])
      #expect(await code { try await stage.list(as: "ben", mine) } == .permissionDenied)
      #expect(
        await code { try await stage.list(as: "ann") { Stage.from(&$0, "items") } }
          == .permissionDenied)
      #expect(try await stage.list(as: "admin") { Stage.from(&$0, "items") } == ["a", "b", "c"])
    }

    @Test func `A strict server wants a proof, as Firestore does`() async throws {
      let stage = try await stage(isStrict: true)
      #expect(try await stage.list(as: "ann", mine) == ["a", "b"])
      let found = await code {
        try await stage.list(as: "ann") {
          Stage.from(&$0, "items")
          $0.limit = .init(2)
        }
      }
      #expect(found == .permissionDenied)
    }

    @Test func `Each alternative of a query needs its proof`() async throws {
      let stage = try await stage(isStrict: true)
      func list(_ owners: [String], as user: String) async throws -> [String] {
        try await stage.list(as: user) {
          Stage.from(&$0, "items")
          $0.where.compositeFilter.op = .or
          $0.where.compositeFilter.filters = owners.map { Stage.equal("owner", $0) }
        }
      }
      #expect(try await list(["ann", "ann"], as: "ann") == ["a", "b"])
      #expect(await code { try await list(["ann", "ben"], as: "ann") } == .permissionDenied)
    }

    @Test func `Fields that a query leaves out are still seen by the rules`() async throws {
      let stage = try await stage()
      func prices(as user: String) async throws -> [String] {
        try await stage.list(as: user) {
          Stage.from(&$0, "items")
          $0.select.fields = [.with { $0.fieldPath = "price" }]
          $0.limit = .init(2)
        }
      }
      #expect(try await prices(as: "ann") == ["a", "b"])
      #expect(await code { try await prices(as: "ben") } == .permissionDenied)
    }

    @Test func `A number about documents is as secret as they are`() async throws {
      let stage = try await stage()
      #expect(try await stage.count(as: "ann", mine) == 2)
      #expect(await code { try await stage.count(as: "ben", mine) } == .permissionDenied)
      #expect(
        await code { try await stage.count(as: "ann") { Stage.from(&$0, "items") } }
          == .permissionDenied)
      #expect(try await stage.count(as: "admin") { Stage.from(&$0, "items") } == 3)
    }

    @Test func `No rule opens accounts and rules`() async throws {
      let stage = try await stage("match /{d=**} { allow read, write: if true; }")
      for path in ["accounts/ann", "accounts/ann/puts/x", "serverRules/000000000009"] {
        try await stage.database.document(path).setData(["owner": "ann"])
        #expect(await code { try await stage.get(path, as: "ann") } == .permissionDenied, "\(path)")
        let write = try Stage.set(path, ["owner": "ann"])
        #expect(
          await code { try await stage.commit([write], as: "ann") } == .permissionDenied, "\(path)")
      }
      for id in ["accounts", "puts", "serverRules"] {
        for isGroup in [false, true] where isGroup || id != "puts" {
          let found = await code {
            try await stage.list(as: "ann") { Stage.from(&$0, id, isGroup: isGroup) }
          }
          #expect(found == .permissionDenied, "\(id) \(isGroup)")
        }
      }
      #expect(
        await code { try await stage.list(as: "ann") { Stage.from(&$0, "", isGroup: true) } }
          == .permissionDenied)
    }

    @Test func `A rule for all collections of a name opens none of accounts`() async throws {
      let stage = try await stage("match /{path=**}/puts/{put} { allow read: if true; }")
      try await stage.database.document("items/a/puts/x").setData(["owner": "ann"])
      func list() async throws -> [String] {
        try await stage.list(as: "ann") { Stage.from(&$0, "puts", isGroup: true) }
      }
      #expect(try await list() == ["x"])
      try await stage.database.document("accounts/ann/puts/y").setData(["owner": "ann"])
      #expect(await code { try await list() } == .permissionDenied)
    }

    // MARK: - Writing

    @Test func `A create that would be allowed is no update`() async throws {
      let stage = try await stage()
      // Ben's item, which Ann could create as her own.
      let taken = [try Stage.set("items/c", ["owner": "ann"])]
      #expect(await code { try await stage.commit(taken, as: "ann") } == .permissionDenied)
      #expect(try await stage.database.document("items/c").getDocument().data()["owner"] == "ben")
      // A check of a condition is a question about the document.
      let verify = WireWrite.with {
        $0.verify = "\(Stage.documents)/items/c"
        $0.currentDocument.exists = true
      }
      #expect(await code { try await stage.commit([verify], as: "ann") } == .permissionDenied)
      #expect(await code { try await stage.commit([verify], as: "ben") } == nil)
    }

    @Test func `Writes are asked about one by one and made together`() async throws {
      let stage = try await stage()
      try await stage.commit([Stage.set("items/d", ["owner": "ann"])], as: "ann")
      try await stage.commit([Stage.set("items/a", "price", 7)], as: "ann")
      let refused: [[WireWrite]] = [
        [try Stage.set("items/e", ["owner": "ben"])],
        [try Stage.set("items/c", "price", 7)],
        [try Stage.set("items/a", "owner", "ben")],
        [Stage.delete("items/c")],
        [try Stage.set("items/e", ["owner": "ann"]), Stage.delete("items/c")],
      ]
      for writes in refused {
        #expect(
          await code { try await stage.commit(writes, as: "ann") } == .permissionDenied, "\(writes)"
        )
      }
      #expect(try await !stage.database.document("items/e").getDocument().exists)
      try await stage.commit([Stage.delete("items/a")], as: "ann")
      #expect(try await stage.list(as: "ann", mine) == ["b", "d"])
    }

    @Test func `A condition that fails says nothing of a document that may not be read`()
      async throws
    {
      let stage = try await stage()
      func update(_ path: String, as user: String) async -> RPCError.Code? {
        await code {
          try await stage.commit(
            [Stage.set(path, ["owner": .string(user)], exists: false)], as: user)
        }
      }
      #expect(await update("items/a", as: "ann") == .alreadyExists)
      #expect(await update("items/a", as: "ben") == .permissionDenied)
    }

    @Test func `Rules see other documents before and after the commit`() async throws {
      let stage = try await stage(
        """
        match /rooms/{room} { allow write: if true; allow read: if true; }
        match /rooms/{room}/entries/{entry} {
          allow create: if getAfter(/databases/$(database)/documents/rooms/$(room)).data.count
            == get(/databases/$(database)/documents/rooms/$(room)).data.count + 1;
        }
        """)
      try await stage.database.document("rooms/r").setData(["count": 5])
      let entry = try Stage.set("rooms/r/entries/e", ["text": "x"])
      #expect(await code { try await stage.commit([entry], as: "ann") } == .permissionDenied)
      try await stage.commit([entry, Stage.set("rooms/r", ["count": 6])], as: "ann")
      #expect(try await stage.database.document("rooms/r/entries/e").getDocument().exists)
    }

    /// A rule reads whether the gate is open, and a commit closes it meanwhile.
    @Test func `No write is committed after what allowed it has changed`() async throws {
      let stage = try await stage(
        """
        match /things/{id} {
          allow create: if get(/databases/$(database)/documents/gates/g).data.isOpen;
        }
        """)
      let gate = stage.database.document("gates/g")
      try await gate.setData(["isOpen": true])
      await withTaskGroup(of: Void.self) { group in
        for writer in 0..<8 {
          group.addTask {
            for number in 0..<40 {
              _ = await code {
                try await stage.commit(
                  [Stage.set("things/\(writer)-\(number)", ["n": 1])], as: "ann")
              }
            }
          }
        }
        group.addTask {
          while let count = try? await stage.database.collection("things").count.getAggregation()
            .count, count < 50
          {}
          _ = try? await gate.updateData(["isOpen": false])
        }
      }
      let closing = try await gate.getDocument().version
      let things = try await stage.database.collection("things").getDocuments().documents
      #expect((50..<320).contains(things.count))
      #expect(things.allSatisfy { $0.version < closing })
    }

    @Test func `A transaction belongs to its caller, and its commit to the rules`() async throws {
      let stage = try await stage()
      func begin(as user: String?) async throws -> WireBeginTransactionResponse {
        try await stage.with(user) {
          try await stage.service.beginTransaction(
            request: .with { $0.database = Stage.name }, context: Stage.context)
        }
      }
      let write = try Stage.set("items/a", "price", 9)
      var id = try await begin(as: "ann").transaction
      for other in ["ben", "admin", nil] {
        #expect(
          await code { try await stage.commit([write], as: other, in: id) } == .invalidArgument)
      }
      try await stage.commit([write], as: "ann", in: id)
      id = try await begin(as: "ben").transaction
      #expect(
        await code { try await stage.commit([write], as: "ben", in: id) } == .permissionDenied)
    }

    @Test func `Writes that make a document return what they made`() async throws {
      let stage = try await stage()
      let values = ValueMapping(database: try DatabaseName(Stage.name))
      let made = try await stage.with("ann") {
        try await stage.service.createDocument(
          request: .with {
            $0.parent = Stage.documents
            $0.collectionID = "items"
            $0.documentID = "new"
            $0.document.fields = values.wire(["owner": "ann"])
          }, context: Stage.context)
      }
      let stored = try await stage.database.document("items/new").getDocument()
      #expect(made.name.hasSuffix("items/new") && made.fields.count == 1)
      #expect(made.updateTime == values.wire(try #require(stored.updateTime)))
    }

    // MARK: - Administrators' calls

    @Test func `Calls of administrators are not for others`() async throws {
      let stage = try await stage("match /{d=**} { allow read, write: if true; }")
      func codes(as user: String) async -> [RPCError.Code?] {
        await [
          code {
            try await stage.with(user) {
              try await stage.service.listCollectionIds(
                request: .with { $0.parent = Stage.documents }, context: Stage.context)
            }
          },
          code {
            try await stage.with(user) {
              try await stage.service.listDocuments(
                request: .with {
                  $0.parent = Stage.documents
                  $0.collectionID = "items"
                  $0.showMissing = true
                }, context: Stage.context)
            }
          },
          code {
            try await stage.with(user) {
              try await stage.service.partitionQuery(
                request: .with {
                  $0.parent = Stage.documents
                  $0.partitionCount = 2
                  Stage.from(&$0.structuredQuery, "items", isGroup: true)
                }, context: Stage.context)
            }
          },
        ]
      }
      #expect(await codes(as: "ann") == [.permissionDenied, .permissionDenied, .permissionDenied])
      #expect(await codes(as: "admin") == [nil, nil, nil])
    }

    @Test func `Without rules, only administrators may come from outside`() async throws {
      for isLocal in [true, false] {
        let stage = try await RuledStage(nil, isLocal: isLocal)
        try await stage.database.document("items/a").setData(["owner": "ann"])
        for caller in ["ann", nil] {
          #expect(
            await code { try await stage.get("items/a", as: caller) }
              == (isLocal ? nil : .permissionDenied))
        }
        #expect(await code { try await stage.get("items/a", as: "admin") } == nil)
      }
    }
  }
#endif
