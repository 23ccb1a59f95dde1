// Who may do what with objects: storage.rules over both protocols, download tokens, and pages of
// other sites.

#if Server
  import Foundation
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct `Rules over objects` {
    /// People write pictures of their own, up to 100 bytes, and everybody sees what is public.
    private static let rules = """
      match /users/{uid}/{file=**} {
        allow get: if request.auth.uid == uid || resource.metadata.open == 'yes';
        allow list: if request.auth.uid == uid;
        allow create: if request.auth.uid == uid && request.resource.size <= 100
          && request.resource.contentType.matches('image/.*')
          && request.resource.name.matches('users/' + uid + '/.*');
        allow update: if request.auth.uid == uid
          && request.resource.contentType == resource.contentType
          && request.resource.size == resource.size;
        allow delete: if request.auth.uid == uid && resource.size > 1;
      }
      match /once/{name} { allow create: if resource == null; allow get; }
      match /members/{name} {
        allow read, write: if
          firestore.get(/databases/(default)/documents/members/$(request.auth.uid)).data.isIn;
      }
      """

    private func stage() async throws -> StorageStage {
      let stage = try await StorageStage()
      try await stage.deploy(Self.rules)
      return stage
    }

    @Test func `Rules see the object before and after a call`() async throws {
      let stage = try await stage()
      let (small, large) = (someBytes(100), someBytes(101))
      func put(_ name: String, _ bytes: [UInt8], _ type: String, _ user: String?) async throws
        -> Int
      {
        try await stage.put(name, bytes, type: type, as: user).status
      }
      #expect(try await put("users/ann/a.png", small, "image/png", "ann") == 200)
      #expect(try await put("users/ann/b.png", small, "image/png", "bob") == 403)
      #expect(try await put("users/ann/b.png", small, "image/png", nil) == 403)
      #expect(try await put("users/ann/b.png", large, "image/png", "ann") == 403)
      #expect(try await put("users/ann/b.png", small, "text/html", "ann") == 403)
      #expect(try await put("elsewhere", small, "image/png", "ann") == 403)
      #expect(try await put("elsewhere", small, "image/png", "owner") == 200)
      #expect(try await stage.get("users/ann/a.png", as: "ann").status == 200)
      #expect(try await stage.download("users/ann/a.png", as: "ann").bytes == small)
      #expect(try await stage.get("users/ann/a.png", as: "bob").status == 403)
      #expect(try await stage.download("users/ann/a.png", as: "bob").status == 403)
      // Whether there is an object is not said to who may not see it.
      #expect(try await stage.get("users/ann/none.png", as: "bob").status == 403)
      #expect(try await stage.get("users/ann/none.png", as: "ann").status == 404)
      func patch(_ value: Value, _ user: String) async throws -> Int {
        try await stage.call(
          "PATCH", StorageStage.path("users/ann/a.png"), StorageStage.json(value), as: user
        ).status
      }
      #expect(try await patch(["metadata": ["open": "yes"]], "bob") == 403)
      #expect(try await patch(["contentType": "text/html"], "ann") == 403)
      #expect(try await patch(["metadata": ["open": "yes"]], "ann") == 200)
      #expect(try await stage.get("users/ann/a.png", as: "bob").status == 200)
      func delete(_ name: String, _ user: String?) async throws -> Int {
        try await stage.call("DELETE", StorageStage.path(name), as: user).status
      }
      #expect(try await delete("users/ann/a.png", "bob") == 403)
      #expect(try await put("users/ann/one.png", [1], "image/png", "ann") == 200)
      #expect(try await delete("users/ann/one.png", "ann") == 403)
      #expect(try await delete("users/ann/a.png", "ann") == 204)
    }

    @Test func `A list is about its folder`() async throws {
      let stage = try await stage()
      try await stage.put("users/ann/a.png", [1, 2], type: "image/png", as: "ann")
      func list(_ prefix: String, _ user: String?) async throws -> Int {
        try await stage.call(
          "GET", "/v0/b/\(StorageStage.bucket)/o?prefix=\(prefix)&delimiter=/", as: user
        ).status
      }
      #expect(try await list("users/ann/", "ann") == 200)
      #expect(try await list("users/ann/", "bob") == 403)
      #expect(try await list("users/", "ann") == 403)
      #expect(try await list("", "ann") == 403)
      #expect(try await list("users/ann", "ann") == 403)
      #expect(try await list("", "owner") == 200)
    }

    @Test func `Copies need both ends, and buckets are administrators'`() async throws {
      let stage = try await stage()
      try await stage.put("users/ann/a.png", [1, 2], type: "image/png", as: "ann")
      func copy(_ target: String, _ user: String?) async throws -> Int {
        let path = "\(StorageStage.path("users/ann/a.png"))/copyTo/b/\(StorageStage.bucket)/o/"
        return try await stage.call(
          "POST", path + StorageMetadata.encoded(target), as: user
        ).status
      }
      #expect(try await copy("users/ann/b.png", "ann") == 200)
      #expect(try await copy("users/bob/b.png", "bob") == 403)
      #expect(try await copy("users/bob/b.png", "ann") == 403)
      #expect(try await copy("elsewhere", "ann") == 403)
      for (target, status) in [
        ("/storage/v1/b?project=app", 403), ("/storage/v1/b/\(StorageStage.bucket)", 403),
      ] {
        #expect(try await stage.call("GET", target, as: "ann").status == status)
        #expect(try await stage.call("GET", target, as: "owner").status == 200)
      }
      let compose: Value = ["sourceObjects": [["name": "users/ann/a.png"]]]
      let path = "\(StorageStage.path("users/bob/c.png"))/compose"
      let answer = try await stage.call("POST", path, StorageStage.json(compose), as: "bob")
      #expect(answer.status == 403)
    }

    @Test func `Rules read documents as of the commit`() async throws {
      let stage = try await stage()
      #expect(try await stage.put("members/a", [1], as: "ann").status == 403)
      let member = stage.database.collection("members").document("ann")
      try await member.setData(["isIn": true])
      #expect(try await stage.put("members/a", [1], as: "ann").status == 200)
      #expect(try await stage.download("members/a", as: "ann").bytes == [1])
      try await member.setData(["isIn": false])
      #expect(try await stage.download("members/a", as: "ann").status == 403)
      #expect(try await stage.put("members/a", [2], as: "ann").status == 403)
    }

    /// Of uploads that run at once, the rules allow one, because they are asked in its transaction.
    @Test func `Of many that create one object, one may`() async throws {
      let stage = try await stage()
      for round in 0..<10 {
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
          for number in 0..<8 {
            group.addTask {
              try await stage.put("once/\(round)", [UInt8(number)], as: "u\(number)").status
            }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.filter { $0 == 200 }.count == 1, "\(statuses)")
        #expect(statuses.filter { $0 == 403 }.count == 7, "\(statuses)")
      }
    }

    @Test func `Who knows an upload's address continues it as who began it`() async throws {
      let stage = try await stage()
      let address = "/v0/b/\(StorageStage.bucket)/o?name=users%2Fann%2Fp.png"
      func begin(_ user: String?, size: Int) async throws -> StorageStage.Answer {
        try await stage.call(
          "POST", address, as: user,
          headers: [
            "x-goog-upload-protocol": "resumable", "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": "\(size)",
            "x-goog-upload-header-content-type": "image/png",
          ])
      }
      #expect(try await begin("bob", size: 10).status == 403)
      #expect(try await begin("ann", size: 101).status == 403)
      let begun = try await begin("ann", size: 10)
      let url = try #require(begun.headers["x-goog-upload-url"])
      let target = String(url.dropFirst("http://127.0.0.1:9199".count))
      func send(_ command: String, _ offset: Int, _ body: [UInt8]) async throws
        -> StorageStage.Answer
      {
        try await stage.call(
          "POST", target, body,
          headers: ["x-goog-upload-command": command, "x-goog-upload-offset": "\(offset)"])
      }
      #expect(try await send("upload", 0, someBytes(4)).headers["x-goog-upload-status"] == "active")
      // Rules that change meanwhile decide about the end.
      try await stage.database.collection("x").document("y").setData([:])
      let query = try await send("query", 0, [])
      #expect(query.headers["x-goog-upload-size-received"] == "4")
      #expect(try await send("upload", 6, someBytes(4)).status == 400)
      let last = try await send("upload, finalize", 4, someBytes(6))
      #expect(last.status == 200 && last.headers["x-goog-upload-status"] == "final")
      #expect(last.text("contentType") == "image/png" && !last.text("downloadTokens").isEmpty)
      #expect(
        try await stage.download("users/ann/p.png", as: "ann").bytes == someBytes(4) + someBytes(6))
      let again = try await send("upload, finalize", 4, someBytes(6))
      #expect(again.status == 200 && again.text("generation") == last.text("generation"))
    }

    @Test func `A download token opens its object and nothing else`() async throws {
      let stage = try await stage()
      let place = "/v0/b/\(StorageStage.bucket)/o/users%2Fann%2Fa.png"
      try await stage.put("users/ann/a.png", [1, 2], type: "image/png", as: "ann")
      try await stage.put("users/ann/b.png", [1, 2], type: "image/png", as: "ann")
      let token = try await stage.call("GET", place, as: "ann").text("downloadTokens")
      #expect(!token.isEmpty)
      #expect(try await stage.call("GET", place, as: "ann").text("downloadTokens") == token)
      func open(_ path: String, _ token: String) async throws -> Int {
        try await stage.call("GET", "\(path)?alt=media&token=\(token)").status
      }
      #expect(try await open(place, token) == 200)
      for wrong in ["", "x", token + "x", String(token.dropLast()), "\(token),\(token)"] {
        #expect(try await open(place, wrong) == 403, "\(wrong)")
      }
      #expect(try await open(place.replacing("a.png", with: "b.png"), token) == 403)
      // It does not show metadata, and is no secret that rules or the app's metadata have.
      #expect(try await stage.call("GET", "\(place)?token=\(token)").status == 403)
      #expect(try await stage.call("GET", place, as: "ann")["metadata"] == nil)
      let forged = try await stage.call(
        "PATCH", place,
        StorageStage.json(["metadata": ["firebaseStorageDownloadTokens": "mine", "k": "v"]]),
        as: "ann")
      #expect(forged.text("downloadTokens") == token && forged["metadata"] == ["k": "v"])
      #expect(try await open(place, "mine") == 403)
      // A second one, then the first is revoked.
      let both = try await stage.call("POST", "\(place)?create_token=true", as: "ann")
      let second = try #require(
        both.text("downloadTokens").split(separator: ",").map(String.init).last)
      #expect(
        try await stage.call("POST", "\(place)?delete_token=\(token)", as: "bob").status == 403)
      #expect(
        try await stage.call("POST", "\(place)?delete_token=\(token)", as: "ann").status == 200)
      #expect(try await open(place, token) == 403)
      #expect(try await open(place, second) == 200)
    }

    @Test func `Without rules, this machine's programs may do everything, and other pages nothing`()
      async throws
    {
      let stage = try await StorageStage()
      #expect(try await stage.put("a", [1]).status == 200)
      func get(_ headers: [String: String], _ user: String? = nil) async throws -> Int {
        try await stage.call("GET", StorageStage.path("a"), as: user, headers: headers).status
      }
      #expect(try await get(["origin": "http://localhost:5173"]) == 200)
      #expect(try await get(["origin": "https://evil.example"]) == 403)
      #expect(try await get(["host": "evil.example:9199"]) == 403)
      #expect(try await get(["origin": "https://evil.example"], "owner") == 403)
      #expect(try await get(["authorization": "Bearer nonsense"]) == 401)
      let remote = try await StorageStage { $0.host = "0.0.0.0" }
      try await remote.database.storage.reference(withPath: "a").putData([1])
      #expect(try await remote.get("a").status == 403)
      #expect(try await remote.get("a", as: "owner").status == 401)
    }
  }

  @Suite struct `Downloads` {
    @Test func `What a browser could run is saved, and nothing has an origin`() async throws {
      let stage = try await StorageStage()
      let address = "/\(StorageStage.bucket)/pages/a%20b"
      for (type, disposition) in [
        ("text/html", "attachment"), ("image/svg+xml", "attachment"),
        ("text/javascript", "attachment"), ("image/png", nil), ("text/plain", nil),
      ] {
        try await stage.put("pages/a b", Array("<script>".utf8), type: type)
        for target in [
          address, "\(StorageStage.path("pages/a b"))?alt=media",
          "/v0/b/\(StorageStage.bucket)/o/pages%2Fa%20b?alt=media",
        ] {
          let answer = try await stage.call("GET", target)
          #expect(answer.status == 200 && answer.headers["content-type"] == type)
          #expect(answer.headers["x-content-type-options"] == "nosniff")
          #expect(answer.headers["content-security-policy"]?.contains("sandbox") == true)
          #expect(answer.headers["content-disposition"] == disposition, "\(type)")
        }
      }
      // Its uploader cannot undo that.
      _ = try await stage.call(
        "PATCH", StorageStage.path("pages/a b"),
        StorageStage.json(["contentType": "TEXT/Html ;x", "contentDisposition": "inline"]))
      let answer = try await stage.call("GET", address)
      #expect(answer.headers["content-disposition"] == "attachment")
      _ = try await stage.call(
        "PATCH", StorageStage.path("pages/a b"),
        StorageStage.json(["contentDisposition": "attachment; filename=x.html"]))
      let named = try await stage.call("GET", address)
      #expect(named.headers["content-disposition"] == "attachment; filename=x.html")
    }

    @Test func `A client that has the object is told so`() async throws {
      let stage = try await StorageStage()
      try await stage.put("a", [1, 2, 3])
      let first = try await stage.download("a")
      let tag = try #require(first.headers["etag"])
      #expect(try await stage.download("a", headers: ["if-none-match": tag]).status == 304)
      #expect(
        try await stage.download("a", headers: ["if-none-match": "\"x\", W/\(tag)"]).status == 304)
      #expect(try await stage.download("a", headers: ["if-none-match": "\"x\""]).status == 200)
      #expect(try await stage.download("a", headers: ["if-match": "\"x\""]).status == 412)
      let partial = try await stage.download("a", headers: ["range": "bytes=1-", "if-range": tag])
      #expect(partial.status == 206 && partial.headers["content-range"] == "bytes 1-2/3")
      let stale = try await stage.download(
        "a", headers: ["range": "bytes=1-", "if-range": "\"x\""])
      #expect(stale.status == 200 && stale.bytes == [1, 2, 3])
      try await stage.put("a", [4])
      #expect(try await stage.download("a", headers: ["if-none-match": tag]).status == 200)
      let generation = first.headers["x-goog-generation"] ?? ""
      let old = try await stage.call(
        "GET", "\(StorageStage.path("a"))?alt=media&generation=\(generation)")
      #expect(old.status == 404)
    }

    @Test func `Several calls come in one request`() async throws {
      let stage = try await StorageStage()
      for name in ["a", "b", "c"] { try await stage.put(name, [1]) }
      var body = ""
      for (number, line) in [
        "DELETE http://other.example\(StorageStage.path("a"))", "GET \(StorageStage.path("b"))",
        "GET \(StorageStage.path("none"))", "GET \(StorageStage.path("c"))?alt=media",
        "POST /batch/storage/v1",
      ].enumerated() {
        body += "--x\nContent-Type: application/http\nContent-ID: <n+\(number)>\n\n"
        body += "\(line) HTTP/1.1\nContent-Length: 0\n\n\n"
      }
      body += "--x--\n"
      let answer = try await stage.call(
        "POST", "/batch/storage/v1", Array(body.utf8),
        headers: ["content-type": "multipart/mixed; boundary=x"])
      let text = String(decoding: answer.bytes, as: UTF8.self)
      let statuses = text.matches(of: /HTTP\/1.1 (\d+)/).map { $0.output.1 }
      #expect(answer.status == 200 && statuses == ["204", "200", "404", "400", "400"], "\(text)")
      #expect(text.contains("content-id: <response-n+4>"))
      #expect(try await stage.get("a").status == 404)
    }
  }
#endif
