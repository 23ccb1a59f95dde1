// The holders of contents: references in documents, paths, and linked fields, distinguished by the
// fate of a content when one of them goes. HolderModelTests does the same with random histories.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct HolderTests {
  private func database() async throws -> Database { try await Database.underTest() }

  private func code(_ call: () async throws -> Void) async -> DatabaseError.Code? {
    do { try await call() } catch { return (error as? DatabaseError)?.code }
    return nil
  }

  /// The names of a content's holders.
  private func holders(of blob: BlobReference, in database: Database) async throws -> Set<String> {
    let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    return Set(try rows.holderNames(of: blob.digest, atMost: 100))
  }

  @Test func `A reference anywhere in a document holds, until the commit that takes it out`()
    async throws
  {
    let database = try await database()
    let items = database.collection("items")
    let blob = try await database.storage.put(Array("bytes".utf8))
    #expect(blob.contentType == "text/plain" && blob.length == 5)
    #expect(try await holders(of: blob, in: database).isEmpty)
    try await items.document("a").setData(["list": [["deep": ["x": blob]]], "n": 1])
    try await items.document("b").setData(["photo": blob, "again": blob])
    #expect(try await holders(of: blob, in: database) == ["items/a", "items/b"])
    try await items.document("b").updateData(["photo": FieldValue.delete()])
    #expect(try await holders(of: blob, in: database) == ["items/a", "items/b"])
    try await items.document("b").updateData(["again": FieldValue.delete()])
    #expect(try await holders(of: blob, in: database) == ["items/a"])
    // A patch without it, and a merging set, leave it.
    try await items.document("a").updateData(["n": 2])
    try await items.document("a").setData(["m": 2], merge: true)
    #expect(try await holders(of: blob, in: database) == ["items/a"])
    #expect(try await Array(database.storage.data(of: blob)) == Array("bytes".utf8))
    try await items.document("a").setData(["n": 3])
    #expect(try await holders(of: blob, in: database).isEmpty)
  }

  @Test func `Codable properties and queries take blobs as they take other values`() async throws {
    struct Entry: Codable, Equatable {
      var title: String
      var photo: BlobReference?
      var more: [BlobReference] = []
    }
    let database = try await database()
    let diary = database.collection("diary")
    let blob = try await database.storage.put([1, 2, 3], contentType: "a/b")
    let entry = Entry(title: "x", photo: blob, more: [blob])
    try await diary.document("a").setData(from: entry)
    #expect(try await diary.document("a").getDocument(as: Entry.self) == entry)
    try await diary.createIndex(on: ["photo"])
    let found = try await diary.whereField("photo", isEqualTo: blob).getDocuments()
    #expect(found.documents.map(\.documentID) == ["a"])
    #expect(found.documents[0]["photo"] as BlobReference? == blob)
  }

  @Test func `Content that is not stored cannot be referred to`() async throws {
    let database = try await database()
    let digest = try #require(BlobDigest(bytes: [UInt8](repeating: 1, count: 32)))
    let blob = try BlobReference(digest: digest, length: 3)
    await #expect { try await database.document("items/a").setData(["photo": blob]) } throws: {
      let error = $0 as? DatabaseError
      return error?.code == .failedPrecondition && error?.path == "items/a"
    }
    #expect(try await !database.document("items/a").getDocument().exists)
  }

  @Test func `Bytes and document are one commit, or none of it`() async throws {
    struct Change: Error {}
    let database = try await database()
    let item = database.document("items/a")
    try await database.runTransaction { transaction in
      let blob = try await transaction.putData([1, 2], at: "images/a")
      try transaction.setData(["photo": blob, "imagePath": "images/a"], forDocument: item)
      #expect(try transaction.getMetadata(at: "images/a")?.size == 2)
    }
    let photo = database.storage.reference(withPath: "images/a")
    let metadata = try await photo.getMetadata()
    let blob = try #require(metadata.blob)
    #expect(try await holders(of: blob, in: database) == ["items/a", "images/a"])
    #expect(try await item.getDocument()["photo"] as BlobReference? == blob)

    await #expect(throws: Change.self) {
      try await database.runTransaction { transaction in
        try await transaction.putData([3], at: "images/b")
        try transaction.updateData(["x": 1], forDocument: item)
        throw Change()
      }
    }
    #expect(try await !database.storage.reference(withPath: "images/b").exists())

    let batch = database.batch()
    try batch.putData([7], at: "images/c", metadata: StorageMetadata(contentType: "q/r"))
    try batch.setData(["n": 1], forDocument: database.document("items/c"))
    try batch.deleteObject(at: "images/a")
    try await batch.commit()
    #expect(
      try await database.storage.reference(withPath: "images/c").getMetadata().contentType == "q/r")
    #expect(try await holders(of: blob, in: database) == ["items/a"])
    let failing = database.batch()
    try failing.putData([8], at: "images/d")
    failing.deleteDocument(item, ifVersion: Version(rawValue: 1 << 40))
    #expect(await code { try await failing.commit() } == .aborted)
    #expect(try await !database.storage.reference(withPath: "images/d").exists())
  }

  @Test func `A staged blob in a transaction is held by the transaction's writes`() async throws {
    let database = try await database()
    let blob = try await database.runTransaction { transaction in
      let blob = try await transaction.put([5, 6])
      try transaction.setData(["photo": blob], forDocument: database.document("items/a"))
      // A query sees the writes so far, including holders.
      _ = try transaction.getDocuments(database.collection("items"))
      return blob
    }
    #expect(try await holders(of: blob, in: database) == ["items/a"])
    #expect(try await Array(database.storage.data(of: blob)) == [5, 6])
  }

  @Test func `Recursive deletes, drops and ended documents let go`() async throws {
    let database = try await database()
    let blob = try await database.storage.put([1])
    for path in ["users/a", "users/a/posts/p", "users/b/posts/q", "other/x"] {
      try await database.document(path).setData(["photo": blob])
    }
    #expect(try await holders(of: blob, in: database).count == 4)
    try await database.document("users/a").delete(recursive: true)
    #expect(try await holders(of: blob, in: database) == ["users/b/posts/q", "other/x"])
    try await database.collection("users/b/posts").drop()
    #expect(try await holders(of: blob, in: database) == ["other/x"])
    try await database.document("users/c").setData(["photo": blob])
    try await database.collection("users").drop()
    #expect(try await holders(of: blob, in: database) == ["other/x"])
    try await database.collection("other").setTimeToLive(field: "end")
    try await database.document("other/x").updateData([
      "end": Timestamp(microsecondsSince1970: 1)
    ])
    while try await !holders(of: blob, in: database).isEmpty { await Task.yield() }
  }

  @Test func `A schema change moves a document's references with its fields`() async throws {
    let database = try await database()
    let items = database.collection("items")
    let (kept, lost) = (try await database.storage.put([1]), try await database.storage.put([2]))
    try await items.document("a").setData(["photo": kept, "old": lost])
    try await items.setSchema(version: 2) { fields, _ in
      fields["picture"] = fields.removeValue(forKey: "photo")
      fields["old"] = nil
    }
    #expect(try await items.document("a").getDocument()["picture"] as BlobReference? == kept)
    try await items.document("a").updateData(["n": 1])
    #expect(try await holders(of: kept, in: database) == ["items/a"])
    #expect(try await holders(of: lost, in: database).isEmpty)
  }

  // MARK: - Links

  @Test func `A linked path stays as long as a document links it`() async throws {
    let database = try await database()
    let (items, storage) = (database.collection("items"), database.storage)
    for name in ["a", "b", "c"] {
      try await storage.reference(withPath: "images/\(name)").putData([1])
    }
    try await items.linkBlobs(field: "imagePath", under: "images/")
    #expect(
      await code { try await items.document("x").setData(["imagePath": "images/none"]) }
        == .failedPrecondition)
    try await items.document("x").setData([
      "imagePath": ["images/a", "images/b", "https://example.org", ""]
    ])
    try await items.document("y").setData(["imagePath": "/images//b/"])
    #expect(
      await code { try await storage.reference(withPath: "images/b").delete() }
        == .failedPrecondition)
    await #expect {
      try await storage.reference(withPath: "images/a").move(to: storage.reference(withPath: "z"))
    } throws: { ($0 as? DatabaseError)?.message.contains("items/x") == true }
    try await storage.reference(withPath: "images/a").putData([2])

    try await items.document("x").updateData(["imagePath": FieldValue.arrayRemove(["images/a"])])
    #expect(
      try await storage.reference(withPath: "images").listAll().items.map(\.name) == ["b", "c"])
    try await items.document("x").delete()
    #expect(try await storage.reference(withPath: "images/b").exists())
    try await items.document("y").delete()
    // Nothing ever linked the last.
    #expect(try await storage.reference(withPath: "images").listAll().items.map(\.name) == ["c"])
  }

  @Test func `A commit that releases a path and puts it again keeps it`() async throws {
    let database = try await database()
    let item = database.document("items/x")
    try await database.collection("items").linkBlobs(field: "image")
    try await database.runTransaction { transaction in
      try await transaction.putData([1], at: "a")
      try await transaction.putData([1], at: "b")
      try transaction.setData(["image": "a"], forDocument: item)
    }
    try await database.runTransaction { transaction in
      try transaction.updateData(["image": "b"], forDocument: item)
      _ = try transaction.getDocuments(database.collection("items"))
      try transaction.updateData(["image": "a"], forDocument: item)
    }
    #expect(try await database.storage.reference().listAll().items.map(\.name) == ["a", "b"])
    try await database.runTransaction { transaction in
      try transaction.updateData(["image": "b"], forDocument: item)
      try await transaction.putData([2], at: "a")
    }
    #expect(try await database.storage.reference().listAll().items.map(\.name) == ["a", "b"])
    try await database.runTransaction { transaction in
      try transaction.deleteObject(at: "b")
      try transaction.deleteDocument(item)
    }
    #expect(try await database.storage.reference().listAll().items.map(\.name) == ["a"])
  }

  @Test func `Elements of maps in arrays are linked, also in subcollections`() async throws {
    let database = try await database()
    let storage = database.storage
    for name in ["a", "b", "c"] { try await storage.reference(withPath: name).putData([1]) }
    try await database.collection("users/u/albums").linkBlobs(field: "photos[].file")
    let album = database.document("users/v/albums/x")
    try await album.setData(["photos": [["file": "a", "n": 1], ["file": "b"], ["no": "c"]]])
    #expect(
      await code { try await storage.reference(withPath: "a").delete() } == .failedPrecondition)
    #expect(await code { try await storage.reference(withPath: "c").delete() } == nil)
    try await database.document("users/v").delete(recursive: true)
    #expect(try await storage.reference().listAll().items.isEmpty)
  }

  @Test func `Documents that were there are linked, or name the path they lack`() async throws {
    let database = try await database()
    let (items, storage) = (database.collection("items"), database.storage)
    for number in 0..<600 {
      try await storage.reference(withPath: "p/\(number)").putData([UInt8(number & 255)])
      try await items.document("d\(number)").setData(["path": "p/\(number)"], durability: .memory)
    }
    try await items.linkBlobs(field: "path")
    #expect(
      await code { try await storage.reference(withPath: "p/599").delete() } == .failedPrecondition)
    try await items.document("d7").delete()
    #expect(try await !storage.reference(withPath: "p/7").exists())
    try await items.drop(includingDeclarations: true)
    #expect(try await storage.reference(withPath: "p").listAll().items.isEmpty)

    try await items.document("a").setData(["path": "p/none"])
    await #expect { try await items.linkBlobs(field: "path") } throws: {
      let error = $0 as? DatabaseError
      return error?.code == .failedPrecondition && error?.path == "items/a"
    }
    try await items.document("a").setData(["path": "p/none", "n": 1])
    #expect(try await items.listIndexes().isEmpty)
  }

  @Test func `An unlinked collection keeps nothing any more`() async throws {
    let database = try await database()
    let items = database.collection("items")
    try await database.storage.reference(withPath: "a").putData([1])
    try await items.document("x").setData(["path": "a"])
    try await items.linkBlobs(field: "path")
    try await items.unlinkBlobs(field: "path")
    try await items.document("x").delete()
    try await database.storage.reference(withPath: "a").delete()
  }

  @Test func `Two concurrent releases of a path remove it`() async throws {
    for round in 0..<20 {
      let database = try await database()
      let items = database.collection("items")
      try await database.storage.reference(withPath: "a").putData([UInt8(round)])
      try await items.linkBlobs(field: "path")
      for id in ["x", "y", "z"] { try await items.document(id).setData(["path": "a"]) }
      await withTaskGroup(of: Void.self) { group in
        for id in ["x", "y", "z"] {
          group.addTask { _ = try? await items.document(id).delete(durability: .process) }
        }
      }
      #expect(try await !database.storage.reference(withPath: "a").exists(), "round \(round)")
    }
  }

  @Test func `Deleting a path and linking it at once leaves no dangling path`() async throws {
    for round in 0..<20 {
      let database = try await database()
      let item = database.document("items/x")
      let object = database.storage.reference(withPath: "a")
      try await object.putData([UInt8(round)])
      try await database.collection("items").linkBlobs(field: "path")
      async let deleted: ()? = try? object.delete()
      async let linked: WriteResult? = try? item.setData(["path": "a"])
      _ = await (deleted, linked)
      #expect(try await object.exists() == item.getDocument().exists, "round \(round)")
    }
  }

  // MARK: - Readers and snapshots

  /// A database in which only reads keep a content without a holder.
  private func impatientDatabase() async throws -> Database {
    var options = Database.Options()
    options.blobLease = .zero
    options.blobGracePeriod = .zero
    return try await Database.underTest(options: options)
  }

  @Test(arguments: [10, 30_000, 2_500_000])
  func `A reader of an object continues while it is overwritten`(count: Int) async throws {
    let database = try await impatientDatabase()
    let photo = database.storage.reference(withPath: "a")
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    try await photo.putData(bytes)
    var pieces = photo.bytes().makeAsyncIterator()
    var read = try #require(try await pieces.next())
    try await photo.putData([1])
    for _ in 0..<3 { try await database.storage.reclaim() }
    while let piece = try await pieces.next() { read += piece }
    #expect(read == bytes)
    #expect(try await Array(photo.data(maxSize: 1)) == [1])
  }

  @Test func `A snapshot's references can be read for as long as it lives`() async throws {
    let database = try await impatientDatabase()
    let item = database.document("items/a")
    try await database.runTransaction { transaction in
      let blob = try await transaction.put([1, 2, 3])
      try transaction.setData(["photo": blob], forDocument: item)
    }
    var snapshot: DatabaseSnapshot? = database.snapshot()
    try await item.delete()
    for _ in 0..<3 { try await database.storage.reclaim() }
    let seen = try #require(try snapshot?.getDocument(item)["photo"] as BlobReference?)
    #expect(try await Array(database.storage.data(of: seen)) == [1, 2, 3])
    snapshot = nil
    for _ in 0..<3 { try await database.storage.reclaim() }
    #expect(await code { _ = try await database.storage.data(of: seen) } == .notFound)
    #expect(await code { try await item.setData(["photo": seen]) } == .failedPrecondition)
    let again = try await database.storage.put([1, 2, 3])
    #expect(again.digest == seen.digest)
  }

  @Test func `Deleting the last holder and referring again at once loses no bytes`() async throws {
    for round in 0..<20 {
      let database = try await impatientDatabase()
      let (old, new) = (database.document("items/old"), database.document("items/new"))
      let blob = try await database.runTransaction { transaction in
        let blob = try await transaction.put([UInt8(round), 1, 2])
        try transaction.setData(["photo": blob], forDocument: old)
        return blob
      }
      async let deleted: ()? = try? {
        try await old.delete()
        try await database.storage.reclaim()
      }()
      async let referred: WriteResult? = try? new.setData(["photo": blob])
      let isReferred = await referred != nil
      _ = await deleted
      for _ in 0..<2 { try await database.storage.reclaim() }
      let bytes = try? await database.storage.data(of: blob)
      #expect((bytes.map { Array($0) } == [UInt8(round), 1, 2]) == isReferred, "round \(round)")
      #expect(try await database.verify(depth: .full) == [], "round \(round)")
    }
  }

  // MARK: - Derived contents

  @Test func `A derived content is made once, and belongs to the bytes`() async throws {
    let database = try await database()
    let storage = database.storage
    let photo = storage.reference(withPath: "a")
    try await photo.putData([1, 2, 3])
    let count = Guarded(0)
    @Sendable func thumbnail(_ reference: StorageReference) async throws -> BlobReference {
      try await reference.derive("small") { bytes in
        count.withLock { $0 += 1 }
        return Array(bytes.reversed())
      }
    }
    let copy = storage.reference(withPath: "b")
    try await photo.copy(to: copy)
    let all = try await withThrowingTaskGroup(of: BlobReference.self) { group in
      for reference in [photo, copy, photo, copy] {
        group.addTask { try await thumbnail(reference) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(Set(all).count == 1 && count.withLock { $0 } == 1)
    #expect(try await Array(storage.data(of: all[0])) == [3, 2, 1])
    #expect(try await holders(of: all[0], in: database).count == 1)
    try await photo.putData([9, 8])
    #expect(try await Array(storage.data(of: thumbnail(photo))) == [8, 9])
    // A content derived from its own child does not hold itself.
    let back = try await storage.derive("back", from: all[0]) { Array($0.reversed()) }
    #expect(try await holders(of: back, in: database) == ["b"])
  }
}
