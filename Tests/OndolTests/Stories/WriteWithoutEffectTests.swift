// Writes to which what is stored makes no difference, yet: a delete of a document that comes to be
// before the commit, a write of what is there and does not stay. They were forgotten when the batch
// was made, so the commit kept what somebody else had put there meanwhile, and was itself ordered
// behind that: no order of the two explains both.

import Ondol
import Testing

@Suite struct WriteWithoutEffectTests {
  @Test func `A delete in a transaction removes what came while the transaction ran`() async throws
  {
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

  @Test func `A delete below a collection that came while the transaction ran removes it too`()
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

  @Test func `A write of what is there puts it back when it changed while the transaction ran`()
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
