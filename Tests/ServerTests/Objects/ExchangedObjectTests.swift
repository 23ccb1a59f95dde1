// Contents of documents on their way between devices and a server: bytes have the digest that names
// them, stay until a document names them, and go to those who may get such a document.

#if Server
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct ExchangedObjectTests {
    private static let bytes = someBytes(9_000)

    private var blob: BlobReference {
      get throws {
        try BlobReference(
          digest: ContentHasher.digest(of: Self.bytes), length: Self.bytes.count)
      }
    }

    private func name() throws -> String { "__contents__/\(try blob.digest.hex)" }

    /// A content's bytes, on behalf of a document.
    private func get(
      _ stage: StorageStage, for document: String, as user: String? = nil,
      headers: [String: String] = [:]
    ) async throws -> StorageStage.Answer {
      try await stage.call(
        "GET",
        "\(StorageStage.path(try name()))?alt=media&document=\(StorageMetadata.encoded(document))",
        as: user, headers: headers)
    }

    private func deploy(_ documents: String, _ objects: String, to stage: StorageStage) async throws
    {
      let texts = RulesTexts(
        firestore: """
          rules_version = '2';
          service cloud.firestore {
            match /databases/{database}/documents { \(documents) }
          }
          """,
        storage: """
          rules_version = '2';
          service firebase.storage { match /b/{bucket}/o { \(objects) } }
          """)
      _ = try await ServerRules.deploy(texts, to: stage.database)
      while try await stage.served.rules.current() == nil { await Task.yield() }
    }

    @Test func `Bytes that were put under their digest can be named by a document`() async throws {
      let stage = try await StorageStage()
      #expect(try await stage.put(try name(), Self.bytes).status == 200)
      let blob = try blob
      try await stage.database.document("items/lamp").setData(["photo": blob])
      let answer = try await get(stage, for: "items/lamp")
      #expect(answer.status == 200 && answer.bytes == Self.bytes)
      let some = try await get(stage, for: "items/lamp", headers: ["range": "bytes=10-19"])
      #expect(some.status == 206 && some.bytes == Array(Self.bytes[10..<20]))
      #expect(some.headers["content-range"] == "bytes 10-19/9000")
      #expect(try await get(stage, for: "items/table").status == 404)
      #expect(try await get(stage, for: "items").status == 400)
      #expect(try await stage.call("GET", StorageStage.path(try name())).status == 400)
      try await stage.database.close()
    }

    @Test func `Other bytes are refused, whole and in pieces`() async throws {
      let stage = try await StorageStage()
      #expect(try await stage.put(try name(), [1, 2, 3]).status == 400)
      let target = try await stage.begin(try name(), total: 3)
      let answer = try await stage.call(
        "PUT", target, [1, 2, 3], headers: ["content-range": "bytes 0-2/3"])
      #expect(answer.status == 400)
      let blob = try blob
      await #expect(throws: DatabaseError.self) {
        try await stage.database.document("items/lamp").setData(["photo": blob])
      }
      try await stage.database.close()
    }

    @Test(arguments: [[9_000], [5_000, 4_000], [1, 8_998, 1]])
    func `An upload in pieces keeps the bytes until a document names them`(
      _ sizes: [Int]
    ) async throws {
      let stage = try await StorageStage()
      let target = try await stage.begin(try name(), total: 9_000)
      var (start, status) = (0, 0)
      for size in sizes {
        status = try await stage.call(
          "PUT", target, Array(Self.bytes[start..<(start + size)]),
          headers: ["content-range": "bytes \(start)-\(start + size - 1)/9000"]
        ).status
        start += size
      }
      #expect(status == 200)
      // A device that lost the answer asks again.
      #expect(
        try await stage.call("PUT", target, headers: ["content-range": "bytes */9000"]).status
          == 200)
      try await stage.database.storage.reclaim()
      let blob = try blob
      try await stage.database.document("items/lamp").setData(["photo": blob])
      #expect(try await Array(stage.database.storage.data(of: blob)) == Self.bytes)
      #expect(try await stage.database.verify() == [])
      try await stage.database.close()
    }

    @Test func `Rules say who puts bytes, and a document's readers get its contents`()
      async throws
    {
      let stage = try await StorageStage()
      try await deploy(
        """
        match /items/{id} { allow read: if request.auth.uid == resource.data.owner; }
        """,
        """
        match /__contents__/{digest} {
          allow create: if request.auth.uid == 'ann' && request.resource.size < 10000;
        }
        """, to: stage)
      #expect(try await stage.put(try name(), Self.bytes).status == 403)
      #expect(try await stage.put(try name(), Self.bytes, as: "bob").status == 403)
      #expect(try await stage.put(try name(), Self.bytes, as: "ann").status == 200)
      #expect(try await stage.put(try name(), someBytes(10_001), as: "ann").status == 403)
      let blob = try blob
      try await stage.database.document("items/lamp").setData(["photo": blob, "owner": "ann"])
      #expect(try await get(stage, for: "items/lamp", as: "ann").status == 200)
      #expect(try await get(stage, for: "items/lamp", as: "bob").status == 403)
      #expect(try await get(stage, for: "items/lamp").status == 403)
      #expect(try await get(stage, for: "items/lamp", as: "owner").status == 200)
      try await stage.database.close()
    }

    @Test func `No object has a content's name`() async throws {
      let stage = try await StorageStage()
      #expect(try await stage.put("__contents__/x", [1]).status == 400)
      try await stage.put("a", [1])
      let path = StorageStage.path("a") + "/copyTo/b/\(StorageStage.bucket)/o/"
      #expect(
        try await stage.call("POST", path + StorageMetadata.encoded(try name())).status == 400)
      #expect(
        try await stage.call("DELETE", StorageStage.path(try name())).status == 400)
      try await stage.database.close()
    }
  }
#endif
