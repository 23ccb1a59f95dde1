// Requests to storage's protocols over a small database: a line with method and path, headers, an
// empty line, and a body, which comes in pieces whose size the first byte says. Whatever comes, the
// answer has a status of the protocol and never says that the server has a fault, the bytes of an
// answer are as many as it says, and the database stays sound.

#if Server
  import Dispatch
  import Ondol
  import OndolAccounts

  @testable import OndolServer

  enum StorageRequestTarget: FuzzTarget {
    static let name = "storage-request"

    static func run(_ bytes: [UInt8]) {
      let isDone = DispatchSemaphore(value: 0)
      Task {
        do {
          try await serve(bytes)
        } catch {
          demand(false, "\(error)")
        }
        isDone.signal()
      }
      isDone.wait()
    }

    static func seeds() -> [[UInt8]] {
      let parts =
        "--b\r\nContent-Type: application/json\r\n\r\n"
        + "{\"name\":\"n\",\"metadata\":{\"k\":\"v\"}}\r\n"
        + "--b\r\nContent-Type: image/png\r\n\r\nbytes\r\n--b--"
      let compose = #"{"sourceObjects":[{"name":"a/b"},{"name":"a-b","generation":"1"}]}"#
      let id = String(repeating: "0", count: 48)
      return [
        "GET /storage/v1/b/bkt/o?prefix=a&delimiter=/&maxResults=1&startOffset=a\r\n\r\n",
        "GET /storage/v1/b/bkt/o?pageToken=YS9i\r\n\r\n",
        "GET /storage/v1/b/bkt/o/a%2Fb?alt=media\r\nRange: bytes=1-2\r\nIf-None-Match: *\r\n\r\n",
        "GET /storage/v1/b/bkt/o/..%2F%00?ifGenerationMatch=0\r\n\r\n",
        "POST /upload/storage/v1/b/bkt/o?uploadType=media&name=x\r\n"
          + "X-Goog-Hash: crc32c=AAAA\r\n\r\nhi",
        "POST /upload/storage/v1/b/bkt/o?uploadType=multipart\r\n"
          + "Content-Type: multipart/related; boundary=b\r\n\r\n\(parts)",
        "POST /upload/storage/v1/b/bkt/o?uploadType=resumable&name=x\r\n"
          + "X-Upload-Content-Length: 9\r\n\r\n{\"contentType\":\"text/html\"}",
        "PUT /upload/storage/v1/b/bkt/o?upload_id=\(id)\r\nContent-Range: bytes 0-1/2\r\n\r\nhi",
        "PATCH /storage/v1/b/bkt/o/a%2Fb\r\n\r\n{\"metadata\":{\"k\":null},\"contentType\":\"x\"}",
        "POST /storage/v1/b/bkt/o/a%2Fb/rewriteTo/b/bkt/o/c?ifSourceGenerationMatch=1\r\n\r\n",
        "POST /storage/v1/b/bkt/o/c/compose\r\n\r\n\(compose)",
        "DELETE /v0/b/bkt/o/a%2Fb\r\n\r\n", "GET /bkt/a/b\r\nRange: bytes=-1\r\n\r\n",
        "POST /v0/b/bkt/o?name=x\r\nX-Goog-Upload-Protocol: resumable\r\n"
          + "X-Goog-Upload-Command: start\r\nX-Goog-Upload-Header-Content-Length: 3\r\n\r\n{}",
        "POST /v0/b/bkt/o?upload_id=\(id)\r\nX-Goog-Upload-Command: upload, finalize\r\n"
          + "X-Goog-Upload-Offset: 0\r\n\r\nhi",
        "POST /batch/storage/v1\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
          + "--b\r\nContent-ID: 1\r\n\r\nDELETE /storage/v1/b/bkt/o/a-b HTTP/1.1\r\n\r\n\r\n--b--",
      ].map { [7] + Array($0.utf8) }
    }

    private static func serve(_ bytes: [UInt8]) async throws {
      let database = try await Database.inMemory()
      for name in ["a/b", "a-b", "a"] {
        try await database.storage.reference(withPath: name).putData(Array(name.utf8))
      }
      let directory = SingleDatabase(ServedDatabase(database))
      let admission = Admission()
      let policy = AccessPolicy { (header, project) throws(DatabaseError) in
        try await admission.principal(ofBearer: header, project: project, in: directory)
      }
      let face = StorageFace(
        directory: directory, admission: admission, policy: policy)
      if let call = call(bytes, to: face) {
        let answer = await face.answer(call)
        demand((200..<600).contains(answer.status), "a status of \(answer.status)")
        demand(answer.status != 500, "the server has a fault: \(call.method) \(call.path)")
        var count = answer.body.count
        if let stream = answer.stream {
          for try await piece in stream.bytes { count += piece.count }
        }
        demand(answer.stream.map { $0.length == count } ?? true, "\(count) bytes came")
        for name in try await database.storage.page(of: ObjectListing()).items.map(\.path) {
          try database.storage.check(name: name)
        }
      }
      demand(try await database.verify(depth: .full).isEmpty, "the database is damaged")
      try await database.close()
    }

    /// The request in an input; nil when there is none.
    private static func call(_ bytes: [UInt8], to face: StorageFace) -> HTTPCall? {
      let rest = Array(bytes.dropFirst())
      let end = zip(rest, zip(rest.dropFirst(), zip(rest.dropFirst(2), rest.dropFirst(3))))
        .enumerated().first { ($1.0, $1.1.0, $1.1.1.0, $1.1.1.1) == (13, 10, 13, 10) }?.offset
      guard let size = bytes.first.map({ Int($0) + 1 }), let end else { return nil }
      let lines = String(decoding: rest[..<end], as: UTF8.self).split(separator: "\r\n")
      guard let words = lines.first?.split(separator: " "), words.count == 2 else { return nil }
      var headers: [String: String] = [:]
      for line in lines.dropFirst() {
        guard let colon = line.firstIndex(of: ":") else { continue }
        headers[line[..<colon].lowercased()] = String(
          line[line.index(after: colon)...].drop { $0 == " " })
      }
      guard var call = HTTPCall(String(words[0]), String(words[1]), headers: headers) else {
        return nil
      }
      let body = Array(rest[(end + 4)...])
      guard face.takesStream(call) else {
        call.body = body
        return call
      }
      call.stream = HTTPBody { take in
        var body = body[...]
        while !body.isEmpty {
          try await take(Array(body.prefix(size)))
          body = body.dropFirst(size)
        }
      }
      return call
    }
  }
#endif
