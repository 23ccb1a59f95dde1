// What strangers send and the parsers make of it: ranges, bodies of several parts, paths and
// tokens.

#if Server
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct `Parsers of storage's protocols` {
    @Test func `A range is part of the bytes, or says that there are none such`() {
      let cases: [(String?, Int, WantedBytes)] = [
        (nil, 10, .all), ("bytes=0-0", 10, .some(0..<1)), ("bytes=2-5", 10, .some(2..<6)),
        ("bytes=8-", 10, .some(8..<10)), ("bytes=8-99", 10, .some(8..<10)),
        ("bytes=-3", 10, .some(7..<10)), ("bytes=-99", 10, .some(0..<10)),
        ("bytes=-0", 10, .none), ("bytes=10-", 10, .none), ("bytes=10-20", 10, .none),
        ("bytes=0-", 0, .none), ("bytes=-1", 0, .none),
        ("bytes=5-2", 10, .all), ("bytes=1-2,4-5", 10, .all), ("lines=1-2", 10, .all),
        ("bytes=+1-2", 10, .all), ("bytes=--2", 10, .all), ("bytes=-", 10, .all),
        ("bytes=1-9999999999999999999", 10, .all), ("bytes=99999999999999999999-", 10, .all),
        ("bytes=999999999999999999-", 10, .none), ("bytes=1-999999999999999999", 10, .some(1..<10)),
      ]
      for (header, length, wanted) in cases {
        #expect(WantedBytes(header, of: length) == wanted, "\(header ?? "nil") of \(length)")
      }
    }

    @Test func `The place of an upload's bytes is exact`() {
      let good: [(String, Range<Int>?, Int?)] = [
        ("bytes 0-9/10", 0..<10, 10), ("bytes 5-9/*", 5..<10, nil), ("bytes */10", nil, 10),
        ("bytes */*", nil, nil), ("bytes */0", nil, 0),
      ]
      for (header, bytes, total) in good {
        let range = UploadRange(header)
        #expect(range != nil && range?.bytes == bytes && range?.total == total, "\(header)")
      }
      let bad = [
        "", "bytes", "bytes 0-9", "bytes 9-0/10", "bytes 0-10/10", "bytes -1-5/10", "bytes a-b/c",
        "bytes 0-9/10/11", "bytes 0-9/-10", "bytes 0-9/99999999999999999999", "lines 0-9/10",
        "bytes 0x0-9/10", "bytes  0-9/10", "bytes 0-9/ 10",
      ]
      for header in bad { #expect(UploadRange(header) == nil, "\(header)") }
    }

    private func events(
      _ body: [UInt8], _ sizes: [Int], boundary: String = "b"
    ) throws -> [(headers: [String: String], bytes: [UInt8])]? {
      var reader = try #require(
        MultipartReader(contentType: "multipart/related; boundary=\"\(boundary)\""))
      var parts: [(headers: [String: String], bytes: [UInt8])] = []
      var (rest, sizes) = (body[...], sizes[...])
      while !rest.isEmpty {
        let size = min(rest.count, max(1, sizes.popFirst() ?? rest.count))
        for event in try reader.take(Array(rest.prefix(size))) {
          switch event {
          case .part(let headers, _): parts.append((headers, []))
          case .bytes(let bytes): parts[parts.count - 1].bytes += bytes
          }
        }
        rest = rest.dropFirst(size)
      }
      return reader.isComplete ? parts : nil
    }

    @Test func `Parts are the same however the body is cut, also with beginnings of delimiters`()
      throws
    {
      for seed in Seeds.first(200) {
        var random = SeededRandom(seed: seed)
        let pieces = [
          "\r\n", "--", "--b", "\r\n--", "\r", "\n", "-", "b", "x", "\r\n-b", "\0", "\r\n\r\n",
        ]
        let parts = (0..<random.below(4)).map { _ in
          (0..<random.below(12)).map { _ in random.pick(pieces) }.joined()
            .replacing("\r\n--b", with: "?")
        }
        var body = random.chance(1, in: 2) ? "preamble\r\n" : ""
        for (number, part) in parts.enumerated() {
          body += "--b\r\nX-Number: \(number)\r\n\r\n\(part)\r\n"
        }
        body += "--b--\r\nepilogue"
        let bytes = Array(body.utf8)
        let sizes = (0..<bytes.count).map { _ in 1 + random.below(7) }
        let found = try #require(try events(bytes, sizes), "SEED=\(seed)")
        #expect(found.map(\.headers) == parts.indices.map { ["x-number": "\($0)"] }, "SEED=\(seed)")
        #expect(found.map(\.bytes) == parts.map { Array($0.utf8) }, "SEED=\(seed)")
        // A body that is cut is never complete.
        let cut = random.below(bytes.count - "epilogue".count - 2)
        let isWhole = (try? events(Array(bytes.prefix(cut)), sizes)) != nil
        let isComplete = isWhole ? try events(Array(bytes.prefix(cut)), sizes) != nil : false
        #expect(!isComplete, "SEED=\(seed) cut at \(cut)")
      }
    }

    @Test func `Headers of a part are bounded, and a type names its boundary`() throws {
      let long = String(repeating: "x", count: 40_000)
      #expect(throws: StorageFailure.self) {
        try events(Array("--b\r\nA: \(long)\r\n\r\n\r\n--b--".utf8), [1_000])
      }
      #expect(throws: StorageFailure.self) { try events(Array(long.utf8), [1_000]) }
      #expect(throws: StorageFailure.self) { try events(Array("--b\r\nno colon\r\n\r\n".utf8), []) }
      for type in [
        "", "multipart/related", "text/plain; boundary=b", "multipart/related; boundary=",
        "multipart/related; boundary=\(String(repeating: "b", count: 300))",
      ] { #expect(MultipartReader(contentType: type) == nil, "\(type)") }
    }

    @Test func `Each path is one call, or none`() throws {
      func route(_ method: String, _ target: String) throws -> String? {
        StorageRoute(try #require(HTTPCall(method, target)))?.name
      }
      let cases: [(String, String, String?)] = [
        ("GET", "/storage/v1/b", "storage.buckets.list"),
        ("GET", "/storage/v1/b/bkt", "storage.buckets.get"),
        ("GET", "/storage/v1/b/bkt/o", "storage.objects.list"),
        ("GET", "/storage/v1/b/bkt/o/a%2Fb", "storage.objects.get"),
        ("GET", "/download/storage/v1/b/bkt/o/a%2Fb?alt=media", "storage.objects.get"),
        ("POST", "/upload/storage/v1/b/bkt/o?uploadType=media", "storage.objects.insert"),
        ("POST", "/resumable/upload/storage/v1/b/bkt/o", "storage.objects.insert"),
        ("PATCH", "/storage/v1/b/bkt/o/a", "storage.objects.patch"),
        ("PUT", "/storage/v1/b/bkt/o/a", "storage.objects.update"),
        ("DELETE", "/storage/v1/b/bkt/o/a", "storage.objects.delete"),
        ("POST", "/storage/v1/b/bkt/o/a/copyTo/b/other/o/c", "storage.objects.copy"),
        ("POST", "/storage/v1/b/bkt/o/a/rewriteTo/b/other/o/c", "storage.objects.rewrite"),
        ("POST", "/storage/v1/b/bkt/o/a/moveTo/o/c", "storage.objects.move"),
        ("POST", "/storage/v1/b/bkt/o/a/compose", "storage.objects.compose"),
        ("POST", "/storage/v1/b/bkt/o/a/acl", "storage.unavailable"),
        ("DELETE", "/storage/v1/b/bkt", "storage.unavailable"),
        ("POST", "/batch/storage/v1", "storage.batch"),
        ("GET", "/v0/b/bkt/o", "objects.list"), ("POST", "/v0/b/bkt/o?name=a", "objects.upload"),
        ("GET", "/v0/b/bkt/o/a%2Fb?alt=media", "objects.get"),
        ("PATCH", "/v0/b/bkt/o/a", "objects.update"),
        ("POST", "/v0/b/bkt/o/a?create_token=true", "objects.update"),
        ("DELETE", "/v0/b/bkt/o/a", "objects.delete"),
        ("GET", "/bkt/a/b.txt", "objects.address"), ("HEAD", "/bkt/a", "objects.address"),
        ("GET", "/v0/b/bkt/o/a/b", nil), ("GET", "/v0/x", nil), ("PUT", "/bkt/a", nil),
        ("GET", "/", nil), ("GET", "/bkt", nil), ("GET", "/upload/x", nil),
        ("PATCH", "/storage/v1/b/bkt/o", nil),
      ]
      for (method, target, name) in cases {
        #expect(try route(method, target) == name, "\(method) \(target)")
      }
    }

    @Test func `Types that a browser runs are known in every spelling`() {
      for type in [
        "text/html", "TEXT/HTML; charset=utf-8", " text/html", "text/ html", "image/svg+xml",
        "application/xhtml+xml", "text/xml", "application/rss+xml", "text/javascript",
        "application/ecmascript", "text/html,x", "application/pdf", "html", "",
      ] { #expect(ObjectDownload.isActive(type), "\(type)") }
      for type in ["image/png", "text/plain", "video/mp4", "application/octet-stream"] {
        #expect(!ObjectDownload.isActive(type), "\(type)")
      }
    }

    @Test func `Times are as headers have them`() throws {
      let time = try Timestamp(microsecondsSince1970: 784_111_777_000_000)
      #expect(time.headerText == "Sun, 06 Nov 1994 08:49:37 GMT")
      #expect(Timestamp(unchecked: 0).headerText == "Thu, 01 Jan 1970 00:00:00 GMT")
      #expect(Timestamp(unchecked: -1).headerText == "Wed, 31 Dec 1969 23:59:59 GMT")
    }
  }
#endif
