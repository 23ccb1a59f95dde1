// Writes that have no effect on the stored state yet: a delete of a document that is created before
// the commit, a write of an existing value that then changes. They were once dropped when the batch
// was made. So the commit kept a value that another writer had put there in the meantime, and was
// itself ordered after that, and no order of the two explains both.

import Ondol
import Testing

@Suite struct WriteWithoutEffectTests {
  @Test func `A delete in a transaction removes a document created while it ran`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("other").setData(["n": 1])
    var attempts = 0
    try await database.runTransaction { transaction in
      attempts += 1
      if attempts == 1 { try await apart { try await items.document("late").setData(["n": 1]) } }
      try transaction.deleteDocument(items.document("late"))
      try transaction.setData(["n": 2], forDocument: items.document("other"))
    }
    #expect(attempts == 2)
    #expect(try await !items.document("late").getDocument().exists)
  }

  @Test func `A recursive delete also removes a collection created while it ran`()
    async throws
  {
    let database = try await Database.underTest()
    let late = database.document("late/one")
    var attempts = 0
    try await database.runTransaction { transaction in
      attempts += 1
      if attempts == 1 { try await apart { try await late.setData(["n": 1]) } }
      try transaction.deleteDocument(late)
      try transaction.setData(["n": 2], forDocument: database.document("items/other"))
    }
    #expect(attempts == 2)
    #expect(try await !late.getDocument().exists)
  }

  @Test func `A write of an existing value restores it after a change while it ran`()
    async throws
  {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("same").setData(["n": 1])
    var attempts = 0
    try await database.runTransaction { transaction in
      attempts += 1
      if attempts == 1 { try await apart { try await items.document("same").setData(["n": 7]) } }
      try transaction.setData(["n": 1], forDocument: items.document("same"))
      try transaction.setData(["n": 2], forDocument: items.document("other"))
    }
    #expect(attempts > 1)
    #expect(try await items.document("same").getDocument()["n"] == 1)
  }
}
