// Groups of writes with names: what a device sends again, what was refused, and what another device
// sends under the same identity.

#if Sync
  import Ondol
  import Testing

  @Suite struct NamedGroupTests {
    private func group(_ number: Int64, _ name: String) throws -> WriteGroup {
      try #require(WriteGroup(stream: "s", number: number, name: name))
    }

    private func increment(_ path: String) throws -> ClientWrite {
      ClientWrite(
        path: try DocumentPath(path), .patch([:], mask: []),
        transforms: [.init(path: ["n"], .increment(1))])
    }

    @Test func `A group that comes again is answered with what it came to`() async throws {
      let database = try await Database.inMemory()
      try await database.prepareForWriteGroups()
      let first = try await database.commit([try increment("a/b")], as: try group(1, "one"))
      _ = try await database.commit([try increment("a/c")], as: try group(2, "two"))
      // Somebody else changes the document meanwhile.
      try await database.document("a/b").updateData(["other": true])
      let again = try await database.commit([try increment("a/b")], as: try group(1, "one"))
      #expect(again.time == first.time)
      #expect(again.answers.map(\.updateTime) == first.answers.map(\.updateTime))
      #expect(try await database.document("a/b").getDocument()["n"] as Int? == 1)
    }

    @Test func `A number that comes again under another name is another device's`() async throws {
      let database = try await Database.inMemory()
      try await database.prepareForWriteGroups()
      _ = try await database.commit([try increment("a/b")], as: try group(1, "one"))
      let (write, other) = (try increment("a/b"), try group(1, "uno"))
      do throws(DatabaseError) {
        _ = try await database.commit([write], as: other)
        Issue.record("the other device's group was taken for a repeated one")
      } catch {
        #expect(ForeignGroup.isReason(of: error))
      }
      #expect(try await database.document("a/b").getDocument()["n"] as Int? == 1)
    }

    @Test func `A group that was refused is never committed`() async throws {
      let database = try await Database.inMemory()
      try await database.prepareForWriteGroups()
      let write = ClientWrite(
        path: try DocumentPath("a/b"), .replace(["n": 1]), condition: .exists(true))
      let refusal = DatabaseError(.notFound, "there is no document to update")
      try await database.refuse(try group(1, "one"), for: refusal)
      try await database.document("a/b").setData(["n": 0])
      let late = try group(1, "one")
      do throws(DatabaseError) {
        _ = try await database.commit([write], as: late)
        Issue.record("a late copy of a refused group was committed")
      } catch {
        #expect(error.code == .notFound)
      }
      // Nor is a committed group refused afterwards.
      _ = try await database.commit([write], as: try group(2, "two"))
      try await database.refuse(try group(2, "two"), for: refusal)
      _ = try await database.commit([write], as: try group(2, "two"))
      #expect(try await database.document("a/b").getDocument()["n"] as Int? == 1)
    }

    @Test func `The names of a device's last groups are kept`() async throws {
      let database = try await Database.inMemory()
      try await database.prepareForWriteGroups()
      for number in 1...70 {
        _ = try await database.commit(
          [try increment("a/b")], as: try group(Int64(number), "g\(number)"))
      }
      for number in 7...70 {
        _ = try await database.commit(
          [try increment("a/b")], as: try group(Int64(number), "g\(number)"))
      }
      #expect(try await database.document("a/b").getDocument()["n"] as Int? == 70)
      await #expect(throws: DatabaseError.self) {
        _ = try await database.commit([try increment("a/b")], as: try group(6, "g6"))
      }
    }
  }
#endif
