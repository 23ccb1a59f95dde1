// Objects by path: puts come back, with metadata and preconditions, copies and moves, listing,
// URLs, and live folders. HolderTests covers the holders.

import Foundation
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct StorageTests {
  private static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var random = SeededNumbers(seed: seed)
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() >> 11) }
  }

  private func database() async throws -> Database { try await Database.underTest() }

  // MARK: - Paths

  @Test(
    arguments: [
      ("", "", nil, ""), ("/", "", nil, ""), ("//", "", nil, ""), ("a", "a", "", "a"),
      ("/a/", "a", "", "a"), ("a/b", "a/b", "a", "b"), ("//a///b//", "a/b", "a", "b"),
      ("a/b/c.png", "a/b/c.png", "a/b", "c.png"), ("é/\u{301}x", "é/\u{301}x", "é", "\u{301}x"),
    ] as [(String, String, String?, String)])
  func `A path has one form, a parent and a name`(
    path: String, full: String, parent: String?, name: String
  ) async throws {
    let storage = try await database().storage
    let reference = storage.reference(withPath: path)
    #expect(Array(reference.fullPath.utf8) == Array(full.utf8))
    #expect(reference.parent()?.fullPath == parent)
    #expect(Array(reference.name.utf8) == Array(name.utf8))
    #expect(reference.root() == storage.reference())
    #expect(reference.child("/x//y/").fullPath == (full.isEmpty ? "x/y" : full + "/x/y"))
    #expect(reference.child("") == reference)
  }

  @Test(arguments: ["", "/", ".", "..", "a\nb", "a/\u{7}", String(repeating: "x", count: 1_025)])
  func `A path that cannot be one is refused by every call`(path: String) async throws {
    let database = try await database()
    let reference = database.storage.reference(withPath: path)
    func refused(_ call: () async throws -> Void) async {
      await #expect { try await call() } throws: {
        ($0 as? DatabaseError)?.code == .invalidArgument
      }
    }
    await refused { try await reference.putData([1]) }
    await refused { _ = try await reference.getMetadata() }
    await refused { _ = try await reference.data(maxSize: 10) }
    await refused { try await reference.delete() }
    await refused { _ = try await reference.downloadURL() }
    let batch = database.batch()
    await refused { try batch.putData([1], at: path) }
  }

  // MARK: - Bytes

  @Test(arguments: [0, 1, 1_000, 5_000, 70_000, 1_048_577, 3_000_000])
  func `A put object comes back, whole and in ranges`(count: Int) async throws {
    let storage = try await database().storage
    let photo = storage.reference(withPath: "images/lamp.png")
    let bytes = Self.bytes(count)
    let metadata = try await photo.putData(bytes)
    #expect(metadata.size == count && metadata.path == "images/lamp.png")
    #expect(try await Array(photo.data(maxSize: count)) == bytes)
    for range in [0..<0, 0..<1, 5..<900, 60_000..<70_001, count..<(count + 5), 3..<Int.max] {
      var read: [UInt8] = []
      for try await chunk in photo.bytes(in: range) { read += chunk }
      #expect(read == Array(bytes[range.clamped(to: 0..<count)]), "\(range)")
    }
    if count > 0 {
      await #expect { try await photo.data(maxSize: count - 1) } throws: {
        ($0 as? DatabaseError)?.code == .resourceExhausted
      }
    }
  }

  @Test func `Chunks, single bytes and files are put alike`() async throws {
    let storage = try await database().storage
    let bytes = Self.bytes(2_500_000)
    let chunks = AsyncStream<Data> { continuation in
      for start in stride(from: 0, to: bytes.count, by: 300_001) {
        continuation.yield(Data(bytes[start..<min(bytes.count, start + 300_001)]))
      }
      continuation.finish()
    }
    let digest = try await storage.reference(withPath: "a").putData(bytes).sha256
    var completed: [Int] = []
    let put = try await storage.reference(withPath: "b").put(chunks) {
      completed.append($0.completedBytes)
    }
    #expect(put.sha256 == digest && completed.last == bytes.count && completed.count == 9)
    let single = AsyncStream<UInt8> { continuation in
      for byte in bytes.prefix(100_000) { continuation.yield(byte) }
      continuation.finish()
    }
    let third = storage.reference(withPath: "c")
    #expect(try await third.put(single).size == 100_000)
    #expect(try await Array(third.data(maxSize: .max)) == Array(bytes.prefix(100_000)))

    let scratch = try ScratchDirectory()
    let (source, target) = (scratch.path("in put.bin"), scratch.path("output.bin"))
    try Data(bytes).write(to: URL(filePath: source))
    try Data("old".utf8).write(to: URL(filePath: target))
    let file = storage.reference(withPath: "d")
    var fractions: [Double] = []
    #expect(
      try await file.putFile(from: source) { fractions.append($0.fraction ?? -1) }.sha256 == digest)
    #expect(fractions.first == 0 && fractions.last == 1)
    try await file.write(toFile: target)
    #expect(try Data(contentsOf: URL(filePath: target)) == Data(bytes))
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path("")).count == 2)
    await #expect { try await file.putFile(from: scratch.path("none")) } throws: {
      ($0 as? DatabaseError)?.code == .notFound
    }
    #expect(try await file.getMetadata().sha256 == digest)
  }

  @Test func `An upload that is interrupted, cancelled or of other bytes changes nothing`()
    async throws
  {
    struct Interruption: Error {}
    let database = try await database()
    let photo = database.storage.reference(withPath: "a")
    let old = try await photo.putData(Self.bytes(10))
    let broken = AsyncThrowingStream<[UInt8], any Error> { continuation in
      continuation.yield(Self.bytes(2_000_000))
      continuation.finish(throwing: Interruption())
    }
    await #expect(throws: Interruption.self) { try await photo.put(broken) }
    let wrong = try #require(BlobDigest(bytes: [UInt8](repeating: 7, count: 32)))
    for bytes in [Self.bytes(100), Self.bytes(3_000_000)] {
      await #expect { try await photo.putData(bytes, expecting: wrong) } throws: {
        ($0 as? DatabaseError)?.code == .invalidArgument
      }
    }
    let code = await withTaskGroup(of: DatabaseError.Code?.self) { group in
      group.cancelAll()
      group.addTask {
        do throws(DatabaseError) {
          try await photo.putData(Self.bytes(50, seed: 9))
          return nil
        } catch {
          return error.code
        }
      }
      return await group.next() ?? nil
    }
    #expect(code == .cancelled)
    #expect(try await photo.getMetadata() == old)
    #expect(try await Array(photo.data(maxSize: 10)) == Self.bytes(10))
  }

  @Test(arguments: [2_000_000, 4_000_000])
  func `A file that changes its length while it is put is refused`(length: UInt64) async throws {
    let scratch = try ScratchDirectory()
    let photo = try await database().storage.reference(withPath: "a")
    let old = try await photo.putData(Self.bytes(10))
    let path = scratch.path("in.bin")
    try Data(Self.bytes(3_000_000)).write(to: URL(filePath: path))
    await #expect {
      try await photo.putFile(from: path) { progress in
        guard progress.completedBytes == 0 else { return }
        try? FileHandle(forWritingTo: URL(filePath: path)).truncate(atOffset: length)
      }
    } throws: {
      ($0 as? DatabaseError)?.code == .aborted
    }
    #expect(try await photo.getMetadata() == old)
    try await photo.putFile(from: path)
    #expect(try await photo.getMetadata().size == Int(length))
  }

  // MARK: - Metadata and preconditions

  @Test func `Metadata has the put's values, and an update changes the assigned ones`() async throws
  {
    let photo = try await database().storage.reference(withPath: "images/lamp")
    let first = try await photo.putData(
      [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1],
      metadata: StorageMetadata(cacheControl: "private", customMetadata: ["by": "me", "n": "1"]))
    #expect(first.contentType == "image/png" && first.name == "lamp" && first.size == 9)
    #expect(first.metageneration == 1 && first.customMetadata == ["by": "me", "n": "1"])
    #expect(try await photo.getMetadata() == first)

    var change = first
    change.contentType = "image/x-mine"
    change.cacheControl = nil
    change.customMetadata = ["by": "you"]
    let second = try await photo.updateMetadata(change)
    #expect(second.contentType == "image/x-mine" && second.cacheControl == nil)
    #expect(second.customMetadata == ["by": "you"] && second.metageneration == 2)
    #expect(second.generation == first.generation && second.created == first.created)
    #expect(try #require(second.updated) > (try #require(first.updated)))

    let third = try await photo.updateMetadata(StorageMetadata(contentLanguage: "ko"))
    #expect(third.contentType == "image/x-mine" && third.contentLanguage == "ko")
    let replaced = try await photo.putData(Array("hello".utf8))
    #expect(replaced.generation > first.generation && replaced.metageneration == 1)
    #expect(replaced.contentType == "text/plain" && replaced.customMetadata.isEmpty)
  }

  @Test func `Puts, updates and deletes can require a generation`() async throws {
    let photo = try await database().storage.reference(withPath: "a")
    func code(_ call: () async throws -> Void) async -> DatabaseError.Code? {
      do { try await call() } catch { return (error as? DatabaseError)?.code }
      return nil
    }
    #expect(await code { try await photo.putData([1], ifGeneration: 5) } == .aborted)
    let first = try await photo.putData([1], ifGeneration: 0)
    #expect(await code { try await photo.putData([2], ifGeneration: 0) } == .alreadyExists)
    let second = try await photo.putData([2], ifGeneration: first.generation)
    #expect(await code { try await photo.putData([3], ifGeneration: first.generation) } == .aborted)
    #expect(await code { try await photo.delete(ifGeneration: first.generation) } == .aborted)
    let update = StorageMetadata(contentType: "a/b")
    #expect(
      await code { try await photo.updateMetadata(update, ifMetageneration: 2) } == .aborted)
    try await photo.updateMetadata(
      update, ifGeneration: second.generation, ifMetageneration: 1)
    try await photo.delete(ifGeneration: second.generation)
    #expect(await code { try await photo.delete() } == .notFound)
    #expect(await code { try await photo.updateMetadata(update) } == .notFound)
    #expect(await code { _ = try await photo.data(maxSize: 1) } == .notFound)
    #expect(try await !photo.exists())
  }

  @Test func `A copy and a move are one commit, and touch no bytes`() async throws {
    let database = try await Database.underTest(
      options: Database.Options(changeRetention: Database.ChangeRetention()))
    let storage = database.storage
    let (a, b, c) = (
      storage.reference(withPath: "a"), storage.reference(withPath: "x/b"),
      storage.reference(withPath: "c")
    )
    let metadata = StorageMetadata(contentType: "k/i", customMetadata: ["n": "1"])
    let original = try await a.putData([1, 2, 3], metadata: metadata)
    let token = try database.changeToken()
    let copy = try await a.copy(to: b)
    #expect(copy.sha256 == original.sha256 && copy.customMetadata == ["n": "1"])
    #expect(copy.contentType == "k/i" && copy.generation > original.generation)
    let moved = try await b.move(to: c, ifGeneration: 0)
    #expect(moved.path == "c" && moved.sha256 == original.sha256)
    #expect(try await !b.exists())
    #expect(try await a.exists())
    await #expect { try await b.move(to: c) } throws: { ($0 as? DatabaseError)?.code == .notFound }
    await #expect { try await a.copy(to: c, ifGeneration: 0) } throws: {
      ($0 as? DatabaseError)?.code == .alreadyExists
    }
    var changes = database.changes(since: token).makeAsyncIterator()
    let first = try #require(try await changes.next())
    #expect(first.objects.map(\.reference) == [b] && first.documents.isEmpty)
    let second = try #require(try await changes.next())
    #expect(Set(second.objects.map(\.reference)) == [b, c])
    #expect(second.objects.contains { $0.before == copy && $0.after == nil })
  }

  // MARK: - Folders and URLs

  @Test func `A folder lists its objects and folders, in pages`() async throws {
    let storage = try await database().storage
    let names = [
      "a", "a/1", "a/2/x", "a/2/y", "a/3", "a-b", "b", "c/d/e", "ab/x", "a/2", "é", "a/한",
    ]
    for name in names { try await storage.reference(withPath: name).putData(Array(name.utf8)) }
    let root = try await storage.reference().listAll()
    #expect(root.items.map(\.fullPath) == ["a", "a-b", "b", "é"])
    #expect(root.prefixes.map(\.fullPath) == ["a", "ab", "c"])
    let a = try await storage.reference(withPath: "a").listAll()
    #expect(a.items.map(\.name) == ["1", "2", "3", "한"] && a.prefixes.map(\.name) == ["2"])
    #expect(try await storage.reference(withPath: "none").listAll().items.isEmpty)
    for size in 1...5 {
      for folder in [storage.reference(), storage.reference(withPath: "a")] {
        let all = try await folder.listAll()
        var (items, prefixes): ([StorageReference], [StorageReference]) = ([], [])
        var token: String?
        repeat {
          let page = try await folder.list(maxResults: size, pageToken: token)
          #expect(page.items.count + page.prefixes.count <= size)
          items += page.items
          prefixes += page.prefixes
          token = page.nextPageToken
        } while token != nil
        #expect(items == all.items && prefixes == all.prefixes, "pages of \(size)")
      }
    }
    for (size, token) in [(0, nil), (1_001, nil), (5, "b/x"), (5, "\n")] {
      await #expect {
        try await storage.reference().list(maxResults: size, pageToken: token)
      } throws: { ($0 as? DatabaseError)?.code == .invalidArgument }
    }
  }

  @Test func `No app sees the collection that paths are in`() async throws {
    let database = try await database()
    try await database.storage.reference(withPath: "a/b").putData([1])
    try await database.collection("items").document("x").setData(["n": 1])
    #expect(try await database.listCollections().map(\.path) == ["items"])
    #expect(try await database.contents().collections.map(\.pattern) == ["items"])
    await #expect(throws: DatabaseError.self) {
      try await database.collection(StorageRows.root).getDocuments()
    }
  }

  @Test func `A URL leads back to its path`() async throws {
    let storage = try await database().storage
    for path in ["a", "images/my lamp #1?.png", "é/한/%2F"] {
      let reference = storage.reference(withPath: path)
      try await reference.putData([1])
      let url = try await reference.downloadURL()
      #expect(!url.isFileURL)
      #expect(try storage.reference(for: url) == reference)
      try await reference.putData([2])
      #expect(try await reference.downloadURL() == url)
    }
    let other = try await database().storage
    let url = try await storage.reference(withPath: "a").downloadURL()
    #expect(throws: DatabaseError.self) { try other.reference(for: url) }
    #expect(throws: DatabaseError.self) {
      try storage.reference(for: try #require(URL(string: "https://example.org/a")))
    }
    let scratch = try ScratchDirectory()
    let database = try await Database.open(at: scratch.path("d.ondol"))
    let large = database.storage.reference(withPath: "films/a b.mp4")
    try await large.putData(Self.bytes(2_000_000))
    let file = try await large.downloadURL()
    #expect(file.isFileURL)
    #expect(try Array(Data(contentsOf: file)) == Self.bytes(2_000_000))
    #expect(try database.storage.reference(for: file) == large)
    try await database.close()
  }

  @Test func `A URL is a file's for contents that have a file of their own`() async throws {
    let scratch = try ScratchDirectory()
    let database = try await Database.open(at: scratch.path("d.ondol"))
    for (count, isFile) in [(512 << 10, false), ((512 << 10) + 1, true)] {
      let object = database.storage.reference(withPath: "films/\(count)")
      try await object.putData(Self.bytes(count))
      #expect(try await object.downloadURL().isFileURL == isFile)
    }
    try await database.close()
  }

  @Test func `A path and a folder are live, and a move is never seen half`() async throws {
    let storage = try await database().storage
    let folder = storage.reference(withPath: "images")
    var updates = folder.snapshots.makeAsyncIterator()
    #expect(try await updates.next()?.items.isEmpty == true)
    try await folder.child("a").putData([1])
    let first = try #require(try await updates.next())
    #expect(first.items.map(\.path) == ["images/a"] && !first.exists)
    try await storage.reference(withPath: "imagesX").putData([1])
    try await folder.child("a").move(to: folder.child("sub/b"))
    let second = try #require(try await updates.next())
    #expect(second.items.isEmpty && second.prefixes == [folder.child("sub")])
    try await folder.putData([9])
    #expect(try await updates.next()?.metadata?.size == 1)
    var all = storage.reference().snapshots.makeAsyncIterator()
    let root = try #require(try await all.next())
    #expect(root.items.map(\.path) == ["images", "imagesX"])
    #expect(root.prefixes.map(\.fullPath) == ["images"])
  }
}
