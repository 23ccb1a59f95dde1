// Uploads: in one request and in several, of the right bytes and of wrong ones, before and after a
// crash. What a client was told has arrived is there, and nothing is kept of what is refused.

#if Server
  import Foundation
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct `Uploads` {
    private static let upload = "/upload/storage/v1/b/\(StorageStage.bucket)/o"

    private func range(_ first: Int, _ end: Int, of total: Int?) -> [String: String] {
      ["content-range": "bytes \(first)-\(end - 1)/\(total.map(String.init) ?? "*")"]
    }

    /// How many bytes have arrived; nil when the upload is complete or gone.
    private func received(_ stage: StorageStage, _ upload: String) async throws -> Int? {
      let answer = try await stage.call("PUT", upload, headers: ["content-range": "bytes */*"])
      guard answer.status == 308 else { return nil }
      let last = answer.headers["range"].flatMap { $0.split(separator: "-").last }
      return try last.map { try #require(Int($0)) + 1 } ?? 0
    }

    @Test func `Metadata and bytes in one body make the object`() async throws {
      let stage = try await StorageStage()
      let bytes = someBytes(70_000)
      let head = """
        --xyz\r\ncontent-type: application/json; charset=UTF-8\r\n\r\n\
        {"name": "a/b.bin", "metadata": {"k": "v"}, "cacheControl": "no-store"}\r\n\
        --xyz\r\ncontent-type: image/png\r\n\r\n
        """
      let body = Array(head.utf8) + bytes + Array("\r\n--xyz--".utf8)
      let answer = try await stage.call(
        "POST", "\(Self.upload)?uploadType=multipart", body,
        headers: ["content-type": "multipart/related; boundary=xyz"],
        pieces: [1, 2, 150, 3, 60_000])
      #expect(answer.status == 200 && answer.text("name") == "a/b.bin")
      #expect(answer.text("contentType") == "image/png" && answer["metadata"]?["k"] == "v")
      #expect(try await stage.download("a/b.bin").bytes == bytes)
      // The app's own code sees the same object.
      let reference = stage.database.storage.reference(withPath: "a/b.bin")
      #expect(Array(try await reference.data(maxSize: 1 << 20)) == bytes)
      #expect(try await reference.md5Hash() == answer.text("md5Hash"))
      let trailer = Array("\r\n\r\nx\r\n--xyz--".utf8)
      let broken: [[UInt8]] = [
        Array(body.dropLast(2)), Array(body.dropLast(20)), Array(body.dropFirst(3)),
        Array(body[..<40]), Array(body.dropLast(2)) + trailer,
      ]
      for (number, broken) in broken.enumerated() {
        let answer = try await stage.call(
          "POST", "\(Self.upload)?uploadType=multipart&name=broken", broken,
          headers: ["content-type": "multipart/related; boundary=xyz"])
        #expect(answer.status == 400, "\(number)")
        #expect(try await stage.get("broken").status == 404)
      }
    }

    @Test func `Checksums that come with the bytes are compared`() async throws {
      let stage = try await StorageStage()
      let bytes = Array("hello".utf8)
      let cases: [([String: String], Int)] = [
        (["x-goog-hash": "crc32c=mnG7TA=="], 200),
        (["x-goog-hash": "crc32c=mnG7TA==, md5=XUFAKrxLKna5cZ2REBfFkg=="], 200),
        (["x-goog-hash": "crc32c=AAAAAA=="], 400), (["x-goog-hash": "md5=xx"], 400),
        (["content-md5": "XUFAKrxLKna5cZ2REBfFkg=="], 200), (["content-md5": "AAAA"], 400),
      ]
      for (headers, status) in cases {
        let answer = try await stage.call(
          "POST", "\(Self.upload)?uploadType=media&name=a", bytes, headers: headers)
        #expect(answer.status == status, "\(headers)")
        #expect(try await stage.get("a").status == (status == 200 ? 200 : 404))
        _ = try await stage.call("DELETE", StorageStage.path("a"))
      }
    }

    @Test func `A body that is shorter or longer than it says is refused`() async throws {
      let stage = try await StorageStage()
      for length in [4, 6] {
        let answer = try await stage.call(
          "POST", "\(Self.upload)?uploadType=media&name=a", Array("hello".utf8),
          headers: ["content-length": "\(length)"], length: false)
        #expect(answer.status == 400)
      }
      #expect(try await stage.get("a").status == 404)
    }

    @Test func `An upload goes on where it was, and lies about places change nothing`()
      async throws
    {
      let stage = try await StorageStage()
      let bytes = someBytes(10_000)
      let upload = try await stage.begin("big", ["metadata": ["k": "v"]], total: 10_000)
      #expect(try await received(stage, upload) == 0)
      func put(_ first: Int, _ end: Int, of total: Int?, _ body: [UInt8]) async throws -> Int {
        try await stage.call("PUT", upload, body, headers: range(first, end, of: total)).status
      }
      #expect(try await put(0, 4_000, of: 10_000, Array(bytes[..<4_000])) == 308)
      #expect(try await received(stage, upload) == 4_000)
      // A gap, another size, more bytes than there are, fewer than it says, and more.
      #expect(try await put(5_000, 6_000, of: 10_000, Array(bytes[5_000..<6_000])) == 400)
      #expect(try await put(4_000, 6_000, of: 9_000, Array(bytes[4_000..<6_000])) == 400)
      #expect(try await put(4_000, 10_001, of: nil, someBytes(6_001)) == 400)
      #expect(try await put(4_000, 6_000, of: 10_000, Array(bytes[4_000..<5_000])) == 400)
      #expect(try await put(4_000, 6_000, of: 10_000, Array(bytes[4_000..<7_000])) == 400)
      #expect(try await received(stage, upload) == 4_000)
      #expect(try await stage.get("big").status == 404)
      // What has arrived may come again.
      #expect(try await put(2_000, 7_000, of: 10_000, Array(bytes[2_000..<7_000])) == 308)
      #expect(try await received(stage, upload) == 7_000)
      let end = try await stage.call(
        "PUT", upload, Array(bytes[7_000...]), headers: range(7_000, 10_000, of: 10_000))
      #expect(end.status == 200 && end.text("size") == "10000" && end["metadata"]?["k"] == "v")
      #expect(try await stage.download("big").bytes == bytes)
      // A client that did not get the answer asks again.
      let again = try await stage.call("PUT", upload, headers: ["content-range": "bytes */10000"])
      #expect(again.status == 200 && again.text("generation") == end.text("generation"))
      let left = try await stage.database.uploads.getDocuments().documents.count
      #expect(left == 1)
    }

    @Test func `An upload of unknown size ends when it says so`() async throws {
      let stage = try await StorageStage()
      let bytes = someBytes(3_000)
      let upload = try await stage.begin("a")
      let first = try await stage.call(
        "PUT", upload, Array(bytes[..<2_000]), headers: range(0, 2_000, of: nil))
      #expect(first.status == 308 && first.headers["range"] == "bytes=0-1999")
      let last = try await stage.call(
        "PUT", upload, Array(bytes[2_000...]), headers: range(2_000, 3_000, of: 3_000))
      #expect(last.status == 200)
      #expect(try await stage.download("a").bytes == bytes)
      let empty = try await stage.begin("empty", total: 0)
      let answer = try await stage.call("PUT", empty, headers: ["content-range": "bytes */0"])
      #expect(answer.status == 200 && answer.text("size") == "0")
    }

    @Test func `A cancelled upload is gone, with its bytes`() async throws {
      let stage = try await StorageStage()
      let upload = try await stage.begin("a")
      _ = try await stage.call("PUT", upload, someBytes(500), headers: range(0, 500, of: nil))
      #expect(try await stage.call("DELETE", upload).status == 499)
      #expect(try await stage.call("DELETE", upload).status == 404)
      let answer = try await stage.call("PUT", upload, headers: ["content-range": "bytes */*"])
      #expect(answer.status == 404)
      #expect(try await stage.database.uploads.getDocuments().documents.isEmpty)
    }

    @Test func `Conditions of an upload count when it ends`() async throws {
      let stage = try await StorageStage()
      let upload = try await stage.begin("a", query: "&ifGenerationMatch=0")
      try await stage.put("a", [1, 2, 3])
      let answer = try await stage.call("PUT", upload, [4], headers: range(0, 1, of: 1))
      #expect(answer.status == 412)
      #expect(try await stage.download("a").bytes == [1, 2, 3])
      _ = try await stage.call("DELETE", StorageStage.path("a"))
      let again = try await stage.call("PUT", upload, [4], headers: range(0, 1, of: 1))
      #expect(again.status == 200)
    }

    @Test func `Uploads survive power cuts, and nothing that was acknowledged is lost`()
      async throws
    {
      for seed in Seeds.first(12) {
        var random = SeededRandom(seed: seed)
        let clock = ManualClock()
        let device = SimulatedDevice(seed: seed, clock: clock)
        let bytes = someBytes(20_000, seed)
        var stage = try await StorageStage(clock, device)
        let upload = try await stage.begin("big", total: bytes.count)
        var arrived = 0
        var isDone = false
        while !isDone {
          if random.chance(1, in: 3) {
            device.powerCut()
            stage = try await StorageStage(clock, device)
            #expect(try await received(stage, upload) == arrived, "SEED=\(seed)")
          }
          let end = min(bytes.count, arrived + 1 + random.below(6_000))
          let answer = try await stage.call(
            "PUT", upload, Array(bytes[arrived..<end]),
            headers: range(arrived, end, of: bytes.count))
          isDone = end == bytes.count
          #expect(answer.status == (isDone ? 200 : 308), "SEED=\(seed)")
          arrived = end
        }
        device.powerCut()
        stage = try await StorageStage(clock, device)
        #expect(try await stage.download("big").bytes == bytes, "SEED=\(seed)")
        #expect(try await received(stage, upload) == nil)
        #expect(try await stage.database.verify(depth: .full) == [], "SEED=\(seed)")
        try await stage.database.close()
      }
    }

    @Test func `Abandoned uploads end after a week, though none begins after them`() async throws {
      let clock = ManualClock()
      let device = SimulatedDevice(seed: 1, clock: clock)
      let stage = try await StorageStage(clock, device)
      for number in 0..<20 {
        let upload = try await stage.begin("a\(number)")
        _ = try await stage.call("PUT", upload, someBytes(300), headers: range(0, 300, of: nil))
      }
      #expect(try await stage.database.uploads.getDocuments().documents.count == 40)
      await clock.advance(by: .seconds(7 * 86_400 - 10))
      #expect(try await stage.database.uploads.getDocuments().documents.count == 40)
      await clock.advance(by: .seconds(20))
      #expect(try await stage.database.uploads.getDocuments().documents.isEmpty)
      try await stage.database.close()
      // The rows are removed, not only hidden.
      let next = try await StorageStage(clock, device)
      #expect(try await next.database.verify(depth: .full) == [])
    }

    @Test func `Names that are no objects' are refused, and nothing is kept`() async throws {
      let stage = try await StorageStage()
      let names = [
        "..", ".", "%00", "a%00b", "a%2F%2Fb", "%2Fa", "a%2F", "%2F", "a%0Ab", "%7F%00",
        String(repeating: "a", count: 1_025), "%2F..%2F",
      ]
      for name in names {
        for target in [
          "\(Self.upload)?uploadType=media&name=\(name)",
          "/v0/b/\(StorageStage.bucket)/o?name=\(name)",
        ] {
          #expect(try await stage.call("POST", target, [1]).status == 400, "\(target)")
        }
        for method in ["GET", "DELETE"] {
          let answer = try await stage.call(
            method, "/storage/v1/b/\(StorageStage.bucket)/o/\(name)")
          #expect(answer.status == 400, "\(method) \(name)")
        }
        let begun = try await stage.call(
          "POST", "\(Self.upload)?uploadType=resumable&name=\(name)", [])
        #expect(begun.status == 400, "\(name)")
      }
      // These are names like all others.
      for name in ["a%2F..%2Fb", "...", "..%2Fa", "%252F", "a%2525", "%2e%2e%2e", "a%2F."] {
        let answer = try await stage.call(
          "POST", "\(Self.upload)?uploadType=media&name=\(name)", [1])
        #expect(answer.status == 200, "\(name)")
      }
      let all = try await stage.database.storage.page(of: ObjectListing())
      #expect(all.items.count == 6)
      #expect(try await stage.database.uploads.getDocuments().documents.isEmpty)
    }
  }
#endif
