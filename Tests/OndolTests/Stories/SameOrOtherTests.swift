// Stories of names that look alike, of writes that replace where a merge was meant, and of
// documents that are not what a program expects: each once lost someone's data without an error.

import Testing

@testable import Ondol

@Suite struct SameOrOtherTests {
  /// Two shop items with titles that look the same once overwrote each other's picture.
  @Test func `Ids that look alike are documents of their own`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    let ids = [
      "é", "e\u{301}", "E\u{301}", "É", "straße", "strasse", "STRASSE", "Ａ", "A", "a", "1", "01",
      "1.0", " 1", "1 ", "½", "１", "%2F", "%2f", "\\", "a%2Fb", "ﬁ", "fi", "\u{200b}a", "\u{feff}a",
      "null", "true", "-0", "0", "한", "\u{1112}\u{1161}\u{11ab}",
    ]
    for (number, id) in ids.enumerated() {
      try await items.document(id).create(["number": number, "id": id])
    }
    for (number, id) in ids.enumerated() {
      let found = try await items.document(id).getDocument()
      #expect(found.data()["number"]?.integer == Int64(number), "\(id)")
      let byID = try await items.whereField(FieldPath.documentID(), isEqualTo: id).getDocuments()
      #expect(byID.documents.map { $0.data()["number"] } == [.integer(Int64(number))], "\(id)")
      let byField = try await items.whereField("id", isEqualTo: id).getDocuments()
      #expect(byField.count == 1, "\(id)")
    }
    try await items.createIndex(on: ["id"])
    for id in ids {
      #expect(try await items.whereField("id", isEqualTo: id).getDocuments().count == 1, "\(id)")
    }
    #expect(try await items.getDocuments().count == ids.count)
    try await database.close()
  }

  /// A path that begins with "/" once lost the mark at the beginning of its first name, because the
  /// two are one character to Swift, and the write went to the document of another name.
  @Test func `A mark after a slash belongs to the name`() async throws {
    let database = try await Database.underTest()
    for mark in ["\u{301}", "\u{200d}", "\u{fe0f}"] {
      let name = mark + "shop"
      for path in ["\(name)/\(mark)", "/\(name)/\(mark)", "/\(name)/\(mark)/"] {
        let segments = try DocumentPath(path).segments
        #expect(segments.map { Array($0.utf8) } == [Array(name.utf8), Array(mark.utf8)])
      }
      try await database.document("/\(name)/a").setData(["mark": mark])
      #expect(try await database.collection(name).getDocuments().count == 1)
      #expect(try await database.collection("shop").getDocuments().isEmpty)
    }
    try await database.close()
  }

  @Test func `Fields that look alike, and numbers beside their texts, are kept apart`() async throws
  {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    try await document.setData(["a": 1, "A": 2, "a.b": 3, "b": "1", "c": 1])
    try await document.updateData(["`a.b`": 4])
    #expect(
      try await document.getDocument().data() == ["a": 1, "A": 2, "a.b": 4, "b": "1", "c": 1])
    let collection = database.collection("c")
    #expect(try await collection.whereField("b", isEqualTo: 1).getDocuments().isEmpty)
    #expect(try await collection.whereField("c", isEqualTo: "1").getDocuments().isEmpty)
    #expect(try await collection.whereField("c", isEqualTo: 1.0).getDocuments().count == 1)
    try await database.close()
  }

  /// Setting a value again once lost the school and the major; updating kept them.
  @Test func `Setting replaces, merging keeps, at every depth`() async throws {
    let database = try await Database.underTest()
    let person = database.document("people/kim")
    let whole: [String: Value] = [
      "name": "Kim", "school": "Hanbat", "home": ["city": "Daejeon", "zip": "34158"],
    ]
    func after(
      _ write: (DocumentReference) async throws -> Void
    ) async throws -> [String: Value] {
      try await person.setData(whole)
      try await write(person)
      return try await person.getDocument().data()
    }
    #expect(try await after { try await $0.setData(["name": "Lee"]) } == ["name": "Lee"])
    #expect(
      try await after { try await $0.setData(["name": "Lee"], merge: true) } == [
        "name": "Lee", "school": "Hanbat", "home": ["city": "Daejeon", "zip": "34158"],
      ])
    // An update replaces a map that is named as a field, and a merge adds to it.
    #expect(
      try await after { try await $0.updateData(["home": ["city": "Seoul"]]) } == [
        "name": "Kim", "school": "Hanbat", "home": ["city": "Seoul"],
      ])
    #expect(
      try await after { try await $0.setData(["home": ["city": "Seoul"]], merge: true) } == [
        "name": "Kim", "school": "Hanbat", "home": ["city": "Seoul", "zip": "34158"],
      ])
    #expect(
      try await after { try await $0.updateData(["home.city": "Seoul"]) } == [
        "name": "Kim", "school": "Hanbat", "home": ["city": "Seoul", "zip": "34158"],
      ])
    #expect(
      try await after { try await $0.setData(["home": ["city": "Seoul"]], mergeFields: ["home"]) }
        == ["name": "Kim", "school": "Hanbat", "home": ["city": "Seoul"]])
    try await database.close()
  }

  private struct WorkDay: Codable {
    var day: String
    var minutes: Int
  }

  /// The work diary once showed an empty day if a document did not fit, and the shop showed
  /// nothing.
  @Test func `A document that does not fit is reported with its place, and hides no neighbour`()
    async throws
  {
    let database = try await Database.underTest()
    let days = database.collection("days")
    let stored: [(String, [String: Value])] = [
      ("1", ["day": "Mon", "minutes": 480]), ("2", ["day": "Tue", "minutes": "eight hours"]),
      ("3", ["day": "Wed"]), ("4", ["day": nil, "minutes": 1]),
      ("5", ["day": "Fri", "minutes": 60.5]),
      ("6", ["day": "Sat", "minutes": 30.0]),
    ]
    for (id, fields) in stored {
      try await days.document(id).setData(fields.mapValues { $0 as any FieldContent })
    }
    let found = try await days.getDocuments()
    #expect(found.count == stored.count)
    var failures: [String: String] = [:]
    for document in found.documents {
      do {
        _ = try document.data(as: WorkDay.self)
      } catch {
        failures[document.documentID] = "\(error)"
      }
    }
    #expect(failures.keys.sorted() == ["2", "3", "4", "5"])
    for (id, field) in [("2", "minutes"), ("3", "minutes"), ("4", "day"), ("5", "minutes")] {
      #expect(failures[id]?.contains(field) == true, "\(id): \(failures[id] ?? "")")
    }
    try await database.close()
  }
}
