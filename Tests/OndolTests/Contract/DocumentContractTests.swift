// The call sites that the interface promises, from a nonisolated function, a main-actor class and
// an actor. That they compile is half of the test.

import Foundation
import Ondol
import Testing

struct Item: Codable, Identifiable, Equatable, Sendable {
  var id = UUID().uuidString
  var imageURL = ""
  var imagePath: [String] = []
  var name: String
  var price: Int
  var count: Int
  var description: String
}

@Suite struct DocumentContractTests {
  @Test func `Documents are written, merged, updated, read and deleted as promised`() async throws {
    try await useDocuments(try await Database.underTest())
  }

  @Test func `The same calls work on the main actor`() async throws {
    try await MainActorClient().use(try await Database.underTest())
  }

  @Test func `The same calls work in an actor`() async throws {
    try await ActorClient().use(try await Database.underTest())
  }

  @Test func `Queries and indexes are used as promised`() async throws {
    try await useQueries(try await Database.underTest())
  }
}

@MainActor private final class MainActorClient {
  private var notes: [String: any FieldContent] = ["note": "kept on the main actor"]

  func use(_ database: Database) async throws {
    let items = database.collection("upload")
    let item = Item(name: "Lamp", price: 30, count: 2, description: "A warm lamp")
    try await items.document(item.id).setData(from: item)
    try await items.document("n").setData(notes)
    notes = [:]
    let result = try await items.document(item.id).updateData(
      ["count": FieldValue.increment(-1)], returning: .after)
    #expect(result.after?["count"] as Int? == 1)
    let found = try await items.whereField("price", isGreaterThan: 10).getDocuments()
    #expect(found.documents.map(\.documentID) == [item.id])
  }
}

private actor ActorClient {
  private var seen: [Version] = []

  func use(_ database: Database) async throws {
    let items = database.collection("upload")
    let item = Item(name: "Lamp", price: 30, count: 2, description: "A warm lamp")
    seen.append(try await items.document(item.id).setData(from: item).version)
    seen.append(try await items.document(item.id).setData(["price": 75], merge: true).version)
    #expect(seen[0] < seen[1])
    let snapshot = try await items.document(item.id).getDocument()
    #expect(try snapshot.data(as: Item.self).price == 75)
  }
}

private func useDocuments(_ database: Database) async throws {
  let items = database.collection("upload")
  let item = Item(name: "Lamp", price: 30, count: 2, description: "A warm lamp")

  try await items.document(item.id).setData(from: item)
  try await items.document("b").setData(["name": "Chair", "price": 80, "tags": ["oak", "new"]])
  try await items.document("b").setData(["price": 75], merge: true)
  try await items.document("b").setData(["price": 70, "x": 1], mergeFields: ["price"])
  try await items.document("c").create(["name": "Desk"])
  let reference = try await items.addDocument(from: item)
  #expect(reference.documentID.utf8.count == 20)

  let chair = try await items.document("b").getDocument()
  #expect(chair.data() == ["name": "Chair", "price": 70, "tags": ["oak", "new"]])

  let result = try await items.document(item.id).updateData(
    [
      "count": FieldValue.increment(-1),
      "imagePath": FieldValue.arrayUnion(["lamp-2.png"]),
      "dimensions.height": 40,
      "updated": FieldValue.serverTimestamp(),
    ], returning: .after)
  #expect(result.after?["count"] as Int? == 1)
  #expect(result.after?["updated"] as Date? == result.commitTime.dateValue())

  let snapshot = try await items.document(item.id).getDocument()
  #expect(snapshot.exists)
  #expect(snapshot.documentID == item.id)
  #expect(snapshot.version == result.version)
  #expect(snapshot.updateTime == result.commitTime)
  #expect(snapshot["name"] as String? == "Lamp")
  #expect(snapshot.get("dimensions.height") as Int? == 40)
  #expect(try snapshot.data(as: Item.self).imagePath == ["lamp-2.png"])
  #expect(snapshot.data()["imagePath"] == ["lamp-2.png"])

  try await items.document("b").delete()
  try await items.document("b").delete()
  #expect(try await items.document("b").getDocument().exists == false)
  await #expect(throws: DatabaseError.self) {
    try await items.document(item.id).updateData(["price": 1], ifVersion: chair.version)
  }
  let variables: [String: any FieldConvertible] = ["price": 1]
  try await items.document("v").setData(variables)
  try await items.document("v").setData(["price": 1], durability: .process)
  try await database.close()
}

private func useQueries(_ database: Database) async throws {
  let uid = "u1"
  let days = (1...7).map { "2024-05-0\($0)" }
  let diary = database.collection("workInfo").document(uid).collection("workHistory")
  for (number, day) in days.enumerated() {
    try await diary.document(day).setData([
      "workDate": day, "status": number % 2 == 0 ? "ended" : "prepare",
    ])
  }
  let week = try await diary.whereField("workDate", in: days).order(by: "workDate").getDocuments()
  #expect(week.documents.map(\.documentID) == days)
  let some = try await diary.whereField(FieldPath.documentID(), in: Array(days[2...4]))
    .getDocuments()
  #expect(some.count == 3)

  try await diary.createIndex(on: ["status", "-workDate"])
  let query = diary.whereField("status", isEqualTo: "ended")
    .order(by: "workDate", descending: true).limit(to: 2)
  let plan = try await query.explain(analyze: true)
  #expect(plan.indexName == "status,-workDate")
  #expect(plan.entriesVisited == 2)
  #expect(try await query.getDocuments().documents.map(\.documentID) == [days[6], days[4]])
  for index in try await diary.listIndexes() {
    #expect(index.name == "status,-workDate")
    #expect(index.state == .ready)
    #expect(index.entries == 7)
    #expect(index.sizeBytes > 0)
  }
  let many = try await diary.getDocuments(ids: [days[3], "none", days[0]])
  #expect(many.map(\.documentID) == [days[3], "none", days[0]])
  #expect(many.map(\.exists) == [true, false, true])
}
