// An export holds what a database holds: what goes out comes in again. A damaged or hostile folder
// is a fault with its file, and leaves the database as it was.

#if Server
  import Foundation
  import OndolAccounts
  import OndolJSON
  import OndolMapping
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct EmulatorExportTests {
    private static let output = "firestore_export/all_namespaces/all_kinds/output-0"

    // MARK: - Databases

    /// A database with some of everything.
    private func random(_ seed: UInt64) async throws -> Database {
      var random = SeededRandom(seed: seed)
      let database = try await Database.onDevice(seed: seed)
      for number in 0..<random.below(30) {
        let parent = random.below(3) == 0 ? "shops/s\(random.below(3))/items" : "items"
        var fields: [String: Value] = [:]
        for _ in 0..<random.below(6) {
          let value = try Value.random(&random)
          if !Self.isNested(value) { fields["f\(random.below(9))"] = value }
        }
        let contents = fields.mapValues { $0 as (any FieldContent)? }
        try await database.document("\(parent)/i\(number)").setData(contents)
      }
      if random.below(4) > 0 {
        try await database.tree.child("rooms").setValue(
          ["a": [".value": 1, ".priority": 2], "b": ["c": "text", "d": true, "e": 0.5]])
        try await database.tree.child("rooms/b").setPriority("high")
      }
      for number in 0..<random.below(4) {
        let bytes = Data((0..<random.below(3_000)).map { _ in UInt8(random.below(256)) })
        var metadata = StorageMetadata(
          contentType: "text/plain", cacheControl: random.below(2) == 0 ? nil : "no-cache",
          customMetadata: random.below(2) == 0 ? [:] : ["kind": "\(number)"])
        if random.below(2) == 0 { metadata.downloadTokens = ["token-\(number)"] }
        _ = try await database.storage.reference(withPath: "a/b\(number).txt")
          .putData(bytes, metadata: metadata)
      }
      var accounts: [ImportedAccount] = []
      for number in 0..<random.below(4) {
        var account = ImportedAccount(uid: "person\(number)")
        account.email = random.below(3) == 0 ? nil : "p\(number)@example.com"
        account.isEmailVerified = account.email != nil && random.below(2) == 0
        account.isDisabled = random.below(4) == 0
        account.displayName = random.below(2) == 0 ? nil : "P. \(number)"
        account.creationTime = try Timestamp(microsecondsSince1970: 1_700_000_000_123_000)
        if random.below(2) == 0 { account.customClaims = try CustomClaims(json: "{\"a\":1}") }
        if random.below(2) == 0 {
          account.identities = [LinkedIdentity(provider: "google.com", uid: "g\(number)")]
        }
        accounts.append(account)
      }
      _ = try await Accounts.open(in: database).importAccounts(accounts)
      return database
    }

    private static func isNested(_ value: Value) -> Bool {
      switch value {
      case .array(let elements): elements.contains { $0.array != nil || isNested($0) }
      case .map(let fields): fields.values.contains(where: isNested)
      default: false
      }
    }

    private func export(_ database: Database) async throws -> TestFolder {
      let folder = try TestFolder()
      try await EmulatorExportWriter(project: "demo").write(database, to: folder.path)
      return folder
    }

    /// A database with one of everything.
    private func small() async throws -> Database {
      let database = try await Database.onDevice()
      try await database.document("items/lamp").setData(["name": "Lamp", "price": 3])
      try await database.tree.child("a").setValue(["b": 1])
      _ = try await database.storage.reference(withPath: "a.txt").putData(Data("text".utf8))
      var account = ImportedAccount(uid: "ann")
      account.email = "ann@example.com"
      _ = try await Accounts.open(in: database).importAccounts([account])
      return database
    }

    // MARK: - Round trips

    @Test func `What goes out comes in again`() async throws {
      for seed in Seeds.first(12) {
        let database = try await random(seed)
        let folder = try await export(database)
        let other = try await Database.onDevice()
        try await EmulatorExport(at: folder.path).load(into: other)
        #expect(try await other.exported() == database.exported(), "SEED=\(seed)")
        // And once more, to the same files.
        let again = try await export(other)
        #expect(try again.bytes(Self.output) == folder.bytes(Self.output), "SEED=\(seed)")
      }
    }

    @Test func `More documents than a commit has come in again`() async throws {
      let database = try await Database.onDevice()
      for start in stride(from: 0, to: 1_203, by: 401) {
        let batch = database.batch()
        for number in start..<start + 401 {
          try batch.setData(
            ["n": number], forDocument: database.document("c/\(number)"))
        }
        try await batch.commit()
      }
      let folder = try await export(database)
      let other = try await Database.onDevice()
      let counts = try await EmulatorExport(at: folder.path).load(into: other)
      #expect(counts.documents == 1_203)
      #expect(try await other.exported() == database.exported())
    }

    @Test func `The server's own documents stay out of an export`() async throws {
      let database = try await small()
      _ = try await ServerRules.deploy(
        RulesTexts(firestore: "service cloud.firestore { }"), to: database)
      let folder = try await export(database)
      let text = String(decoding: try folder.bytes(Self.output), as: UTF8.self)
      #expect(text.contains("lamp") && !text.contains("serverRules") && !text.contains("ann"))
    }

    @Test func `A tree beyond a commit is written child by child`() async throws {
      let text = String(repeating: "x", count: 3 << 20)
      let children = (0..<7).map { "\"k\($0)\":\"\(text)\"" }.joined(separator: ",")
      let folder = try await export(try await Database.onDevice())
      try folder.write(
        "database_export/demo-default-rtdb.json", "{\"big\":{\(children),\".priority\":4}}")
      let database = try await Database.onDevice()
      try await EmulatorExport(at: folder.path).load(into: database)
      let found = try await database.tree.child("big").getData()
      #expect(found.childrenCount == 7 && found.priority == 4)
      #expect(found.childSnapshot(forPath: "k6").value == .string(text))
    }

    // MARK: - The emulator's accounts

    @Test func `People of an emulator keep their passwords`() async throws {
      let folder = try await export(try await Database.onDevice())
      try folder.write(
        "auth_export/accounts.json",
        """
        {"kind": "identitytoolkit#DownloadAccountResponse", "users": [{"localId": "u1",
          "email": "a@example.com", "emailVerified": true, "displayName": "", "mfaInfo": [],
          "salt": "fakeSaltX", "passwordUpdatedAt": 1700000000000, "createdAt": "1700000000000",
          "passwordHash": "fakeHash:salt=fakeSaltX:password=with:password=inside",
          "providerUserInfo": [{"providerId": "password", "rawId": "a@example.com"}]}]}
        """)
      let database = try await Database.onDevice()
      try await EmulatorExport(at: folder.path).load(into: database)
      let accounts = try await Accounts.open(in: database)
      let session = try await accounts.signIn(
        withEmail: "a@example.com", password: "with:password=inside")
      #expect(session.account.uid == "u1" && session.account.isEmailVerified)
      await #expect(throws: AuthError.self) {
        try await accounts.signIn(withEmail: "a@example.com", password: "inside")
      }
    }

    // MARK: - Hostile folders

    @Test func `A database with data takes no import`() async throws {
      let folder = try await export(try await small())
      for change: (Database) async throws -> Void in [
        { try await $0.document("a/b").setData(["c": 1]) },
        { try await $0.tree.setValue(1) },
        { _ = try await $0.storage.reference(withPath: "a").putData(Data([1])) },
        { _ = try await Accounts.open(in: $0).importAccounts([ImportedAccount(uid: "a")]) },
      ] {
        let database = try await Database.onDevice()
        try await change(database)
        let before = try await database.exported()
        let error = await #expect(throws: DatabaseError.self) {
          try await EmulatorExport(at: folder.path).load(into: database)
        }
        #expect(error?.code == .alreadyExists)
        #expect(try await database.exported() == before)
      }
    }

    @Test func `Damaged records leave the database as it was`() async throws {
      let folder = try await export(try await random(3))
      let whole = try folder.bytes(Self.output)
      var random = SeededRandom(seed: Seeds.first(1)[0])
      for _ in 0..<30 {
        var damaged = whole
        if random.below(3) == 0 {
          damaged = Array(damaged.prefix(random.below(damaged.count)))
        } else {
          damaged[random.below(damaged.count)] ^= UInt8(1 << random.below(8))
        }
        try folder.write(Self.output, bytes: damaged)
        let database = try await Database.onDevice()
        let empty = try await database.exported()
        await #expect(throws: ProjectFault.self) {
          try await EmulatorExport(at: folder.path).load(into: database)
        }
        #expect(try await database.exported() == empty)
      }
    }

    @Test(arguments: [
      ("firebase-export-metadata.json", "[]", "it is no object"),
      ("firebase-export-metadata.json", "{", "this is not JSON"),
      ("firebase-export-metadata.json", "{\"auth\": {}}", "auth.path"),
      ("firebase-export-metadata.json", "{\"auth\": {\"path\": \"../b\"}}", "auth.path"),
      ("firebase-export-metadata.json", "{\"auth\": {\"path\": \"/etc\"}}", "auth.path"),
      ("firebase-export-metadata.json", "{\"auth\": {\"path\": \"none\"}}", "it cannot be read"),
      ("firebase-export-metadata.json", "{\"dataconnect\": {\"path\": \"a\"}}", "dataconnect"),
      (
        "firebase-export-metadata.json",
        "{\"firestore\": {\"metadata_file\": \"auth_export/accounts.json\"}}", "offset 0"
      ),
      ("auth_export/accounts.json", "{\"users\": 1}", "users"),
      ("auth_export/accounts.json", "{\"users\": [{}]}", "users[0]: MISSING_LOCAL_ID"),
      (
        "auth_export/accounts.json",
        "{\"users\": [{\"localId\": \"a\", \"mfaInfo\": [{\"phoneInfo\": \"+1\"}]}]}", "mfaInfo"
      ),
      (
        "auth_export/accounts.json",
        "{\"users\": [{\"localId\": \"a\", \"passwordHash\": \"QUJD\"}]}", "users[0]: "
      ),
      (
        "auth_export/accounts.json",
        """
        {"users": [{"localId": "a", "email": "a@b.com"}, {"localId": "b", "email": "a@b.com"}]}
        """, "users[1]: EMAIL_EXISTS"
      ),
      ("auth_export/accounts-tenant.json", "{}", "tenants"),
      ("database_export/other.json", "{\"a\": 1}", "has a tree too"),
      ("database_export/demo-default-rtdb.json", "{\"a.b\": 1}", "keys can't contain"),
      ("database_export/demo-default-rtdb.json", "{\"a\":", "this is not JSON"),
      ("storage_export/metadata/0.json", "{\"bucket\": \"b\"}", "name: it is no text"),
      (
        "storage_export/metadata/0.json", "{\"name\": \"a//b\", \"bucket\": \"b\"}", "name: "
      ),
      (
        "storage_export/metadata/0.json",
        "{\"name\": \"a\", \"bucket\": \"b\", \"size\": 5}", "it has 4 bytes instead of 5"
      ),
      (
        "storage_export/metadata/0.json",
        "{\"name\": \"a\", \"bucket\": \"b\", \"crc32c\": \"1\"}", "checksum"
      ),
      (
        "storage_export/metadata/0.json",
        "{\"name\": \"a\", \"bucket\": \"b\", \"customMetadata\": {\"a\": 1}}", "metadata.a"
      ),
      (
        "storage_export/metadata/none.json", "{\"name\": \"a\", \"bucket\": \"demo.appspot.com\"}",
        "there is no file"
      ),
      (
        "storage_export/metadata/..%2F..%2Fauth_export%2Faccounts.json.json",
        "{\"name\": \"a\", \"bucket\": \"demo.appspot.com\"}", "there is no file"
      ),
    ])
    func `A wrong file is a fault with its name`(
      file: String, text: String, message: String
    ) async throws {
      let folder = try await export(try await small())
      try folder.write(file, text)
      let database = try await Database.onDevice()
      let fault = await #expect(throws: ProjectFault.self) {
        try await EmulatorExport(at: folder.path).load(into: database)
      }
      #expect(fault?.description.contains(message) == true, "\(fault?.description ?? "")")
    }

    @Test func `Documents that are missing are noticed, though no record is damaged`() async throws
    {
      let folder = try await export(try await small())
      try folder.write(Self.output, bytes: [])
      let database = try await Database.onDevice()
      let fault = await #expect(throws: ProjectFault.self) {
        try await EmulatorExport(at: folder.path).load(into: database)
      }
      #expect(fault?.reason == "there are 0 documents, and 1 are announced")
    }

    @Test func `Objects of two buckets are refused`() async throws {
      let folder = try await export(try await small())
      try folder.write("storage_export/blobs/1", "text")
      try folder.write("storage_export/metadata/1.json", "{\"name\": \"a\", \"bucket\": \"other\"}")
      let fault = #expect(throws: ProjectFault.self) { try EmulatorExport(at: folder.path) }
      #expect(fault?.place == "bucket")
    }

    @Test func `A link out of the folder is no file of it`() async throws {
      let folder = try await export(try await small())
      let place = "\(folder.path)/storage_export/blobs/0"
      try FileManager.default.removeItem(atPath: place)
      try FileManager.default.createSymbolicLink(
        atPath: place, withDestinationPath: "/etc/hostname")
      #expect(throws: ProjectFault.self) { try EmulatorExport(at: folder.path) }
    }

    @Test func `An app's own collection of accounts is refused before anything is written`()
      async throws
    {
      let folder = try await export(try await small())
      let values = ValueMapping(
        database: DatabaseName(project: "demo", id: DatabaseName.usual))
      var log = RecordLogWriter()
      _ = log.append(
        try EntityWriter(project: "demo").record(
          of: try DocumentPath("accounts/a"), values.wire(["b": 1])))
      try folder.write(Self.output, bytes: log.bytes)
      let database = try await Database.onDevice()
      let fault = await #expect(throws: ProjectFault.self) {
        try await EmulatorExport(at: folder.path).load(into: database)
      }
      #expect(fault?.reason.contains("the collection accounts is Ondol's own") == true)
    }

    @Test func `A folder with files takes no export`() async throws {
      let folder = try TestFolder()
      try folder.write("a", "b")
      let database = try await Database.onDevice()
      await #expect(throws: DumpError.self) {
        try await EmulatorExportWriter(project: "demo").write(database, to: folder.path)
      }
      #expect(throws: DatabaseError.self) { try EmulatorExportWriter(project: "a/b") }
    }
  }
#endif
