// A project's files say which ports and rules the server has, and what can mean two things is
// refused with the file and the key.

#if Server
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct FirebaseProjectTests {
    private static let open = """
      rules_version = '2';
      service cloud.firestore { match /{path=**} { allow read; } }
      """
    private static let files = """
      rules_version = '2';
      service firebase.storage { match /b/{bucket}/o { match /{path=**} { allow read; } } }
      """
    private static let tree = "{\"rules\": {\".read\": true}}"

    /// A folder with three files of rules.
    private func folder(_ settings: String, _ name: String? = nil) throws -> TestFolder {
      let folder = try TestFolder()
      try folder.write("firebase.json", settings)
      try folder.write("firestore.rules", Self.open)
      try folder.write("rules/storage.rules", Self.files)
      try folder.write("database.rules.json", Self.tree)
      if let name { try folder.write(".firebaserc", name) }
      return folder
    }

    @Test func `A project's ports, rules and name are read`() throws {
      let folder = try folder(
        """
        {
          // Comments are allowed here, as in firebase-tools.
          "firestore": {"rules": "firestore.rules", "indexes": "firestore.indexes.json"},
          "storage": {"rules": "rules/storage.rules"}, /* and
          here */ "database": {"rules": "database.rules.json"},
          "emulators": {
            "firestore": {"port": 8180, "host": "localhost"}, "auth": {"port": 9199},
            "storage": {"port": 9299}, "database": {}, "functions": {"port": 5001},
            "ui": {"enabled": true, "port": 4000}, "singleProjectMode": true
          },
          "hosting": {"public": "a // b"}
        }
        """, "{\"projects\": {\"default\": \"demo-shop\"}}")
      let project = try FirebaseProject(at: folder.path)
      #expect(project.ports == [.firestore: 8180, .auth: 9199, .storage: 9299, .database: 9000])
      #expect(
        project.rules
          == RulesTexts(firestore: Self.open, storage: Self.files, database: Self.tree))
      #expect(project.id == "demo-shop")
      #expect(project.unserved == ["functions"])
      try project.checkIsLocal()
    }

    @Test func `Without emulators every one of them is served at its usual port`() throws {
      let folder = try folder("{}")
      let project = try FirebaseProject(at: folder.path)
      #expect(project.ports == [.firestore: 8080, .database: 9000, .auth: 9099, .storage: 9199])
      #expect(project.rules == RulesTexts() && project.id == nil && project.unserved.isEmpty)
    }

    @Test func `Of several databases and buckets the served ones have rules`() throws {
      let folder = try folder(
        """
        {"firestore": [{"database": "other", "rules": "none.rules"},
                       {"database": "(default)", "rules": "firestore.rules"}],
         "storage": [{"bucket": "a", "rules": "rules/storage.rules"},
                     {"bucket": "b", "rules": "rules/storage.rules"}]}
        """)
      let rules = try FirebaseProject(at: folder.path).rules
      #expect(rules == RulesTexts(firestore: Self.open, storage: Self.files))
    }

    @Test(arguments: [
      ("{", "firebase.json: 1:2: "), ("{\n \"a\": tru\n}", "firebase.json: 2:"),
      ("[]", "firebase.json: it is no object"), ("{\"a\": 1} /* b", "firebase.json: "),
      ("{\"emulators\": []}", "emulators: it is no object"),
      ("{\"emulators\": {\"auth\": 9099}}", "emulators.auth: it is no object"),
      ("{\"emulators\": {\"auth\": {\"port\": \"9099\"}}}", "emulators.auth.port: a port"),
      ("{\"emulators\": {\"auth\": {\"port\": 70000}}}", "emulators.auth.port: a port"),
      ("{\"emulators\": {\"auth\": {\"port\": -1}}}", "emulators.auth.port: a port"),
      ("{\"emulators\": {\"auth\": {\"host\": 1}}}", "emulators.auth.host: "),
      ("{\"emulators\": {\"auth\": {\"port\": 8080}, \"firestore\": {}}}", "emulators: two of"),
      ("{\"firestore\": 1}", "firestore: it is neither"),
      ("{\"firestore\": [1]}", "firestore[0]: it is no object"),
      ("{\"firestore\": {\"rules\": 1}}", "firestore.rules: it is no name"),
      ("{\"firestore\": {\"rules\": \"none.rules\"}}", "firestore.rules: none.rules is no file"),
      ("{\"firestore\": {\"rules\": \"/etc/passwd\"}}", "firestore.rules: /etc/passwd is no file"),
      ("{\"firestore\": {\"rules\": \"rules/storage.rules\"}}", "it has no rules for Firestore"),
      ("{\"storage\": {\"rules\": \"firestore.rules\"}}", "it has no rules for Storage"),
      ("{\"firestore\": {\"database\": \"a\", \"rules\": \"b\"}}", "firestore.database: none of"),
      ("{\"firestore\": [{\"database\": \"a\"}, {\"target\": \"b\"}]}", "firestore: none of"),
      (
        "{\"storage\": [{\"rules\": \"rules/storage.rules\"}, {\"rules\": \"firestore.rules\"}]}",
        "storage: its parts have different rules"
      ),
      ("{\"database\": {\"rules\": \"firestore.rules\"}}", "firestore.rules: 1:1: "),
    ])
    func `What can mean two things is a fault with its file and key`(
      settings: String, message: String
    ) throws {
      let folder = try folder(settings)
      let fault = #expect(throws: ProjectFault.self) { try FirebaseProject(at: folder.path) }
      #expect(fault?.description.contains(message) == true, "\(fault?.description ?? "")")
    }

    @Test func `An address that lets others in is a fault, but for who asks for none`() throws {
      let folder = try folder("{\"emulators\": {\"auth\": {\"host\": \"0.0.0.0\"}}}")
      let project = try FirebaseProject(at: folder.path)
      let fault = #expect(throws: ProjectFault.self) { try project.checkIsLocal() }
      #expect(fault?.place == "emulators.auth.host")
    }

    @Test func `A folder without the file and a wrong name are faults`() throws {
      let empty = try TestFolder()
      #expect(throws: ProjectFault.self) { try FirebaseProject(at: empty.path) }
      let folder = try folder("{}", "{\"projects\": {\"default\": 7}}")
      let fault = #expect(throws: ProjectFault.self) { try FirebaseProject(at: folder.path) }
      #expect(fault?.place == "projects.default")
    }
  }
#endif
