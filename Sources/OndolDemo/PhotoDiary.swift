// A photo diary: an entry a day, with a photo as a property of its Codable type. The photo goes
// with the entry: after its entry is replaced or deleted, no entry has it, and Ondol frees its
// bytes.

import ArgumentParser
import Foundation
import Ondol

struct PhotoDiary: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "photodiary",
    abstract: "A photo diary: blobs in Codable documents, derived contents, a live list.")

  @OptionGroup var options: DemoOptions
  @OptionGroup var pictures: PictureOptions

  func run() async throws {
    guard let pictures = try Pictures(pictures) else {
      throw ValidationError("--pictures is needed: a directory with PNG or JPEG files")
    }
    try await Self.tell(
      at: try options.database(of: "photodiary"), pictures, killing: options.kill)
  }
}

/// A day with a photo.
struct DiaryEntry: Codable, Equatable {
  var title: String
  var date: String
  var photo: BlobReference?
}

extension PhotoDiary {
  private static let titles = ["한강", "비 오는 날", "시장", "첫눈", "바다"]

  static func tell(at place: String, _ pictures: Pictures, killing: Bool) async throws {
    Story.chapter("A photo diary", in: place)
    var databaseOptions = Database.Options()
    databaseOptions.blobGracePeriod = .zero
    let database = try await Database.open(at: place, options: databaseOptions)
    let diary = database.collection("diary")
    let known = try await diary.getDocuments().documents
    if !known.isEmpty {
      Story.say("Found \(known.count) entries from an earlier run; deleting them.")
      for entry in known { try await entry.reference.delete() }
      try await StoredPictures.settle(database)
    }
    try await fill(diary, pictures, killing: killing)
    try await StoredPictures(database, at: place).show()
    try await look(diary)
    try await search(diary)
    try await change(diary, pictures, at: place)
    try await database.close()
    Story.next("photodiary", at: place == "demo/photodiary.ondol" ? nil : place)
  }

  /// Two entries share a photo, which is stored once.
  private static func fill(
    _ diary: CollectionReference, _ pictures: Pictures, killing: Bool
  ) async throws {
    let storage = diary.database.storage
    Story.say("Five days, each with a photo as a property of its Codable type:")
    var acknowledged = Acknowledgements(killing: killing, done: 0, total: titles.count + 1)
    for (number, title) in titles.enumerated() {
      let photo = try await storage.put(try pictures.data(number))
      let entry = DiaryEntry(title: title, date: "2026-05-0\(number + 1)", photo: photo)
      try await diary.document("day-\(number + 1)").setData(from: entry)
      Story.show(
        "\(entry.date) \(title): \(photo.contentType ?? "?"), \(Story.bytes(Int(photo.length)))")
      acknowledged.add()
    }
    let again = try await storage.put(try pictures.data(0))
    let entry = DiaryEntry(title: "다시 한강", date: "2026-05-06", photo: again)
    try await diary.document("day-6").setData(from: entry)
    acknowledged.add()
    Story.say("A sixth day has the first day's photo. Equal bytes are stored once:")
  }

  private static func look(_ diary: CollectionReference) async throws {
    let storage = diary.database.storage
    Story.say("The sizes of the photos, each computed once and stored with its photo:")
    for document in try await diary.order(by: "date").getDocuments().documents {
      let entry = try document.data(as: DiaryEntry.self)
      guard let photo = entry.photo else { continue }
      let size = try await storage.derive("size", from: photo) { bytes in
        // The files' bytes are included, because equal sizes would be one content, and the story
        // counts contents.
        Data("\(PictureSize.text(bytes) ?? "unknown") in \(Story.bytes(bytes.count))".utf8)
      }
      let text = String(decoding: try await storage.data(of: size), as: UTF8.self)
      Story.show("\(entry.date) \(entry.title): \(text)")
    }
  }

  /// Two days mention the river, with different endings of the word.
  private static func search(_ diary: CollectionReference) async throws {
    try await diary.createSearchIndex(on: ["title"])
    let words = "한강에서"
    Story.say("The days that mention \(words), by an index of their words, the best first:")
    for match in try await diary.query.search(words, in: "title").getMatches() {
      let day = try match.document.data(as: DiaryEntry.self)
      let found = match.ranges(in: "title").map { "\(day.title[$0])" }
      Story.show("\(day.date) \(day.title): found \(found.joined(separator: ", "))")
    }
    Story.elsewhere("Firestore has no search, and a word with its particle is another word.")
  }

  private static func change(
    _ diary: CollectionReference, _ pictures: Pictures, at place: String
  ) async throws {
    let database = diary.database
    let shared = try await diary.document("day-6").getDocument(as: DiaryEntry.self).photo
    Story.say("The second day gets another photo. No entry has the old one any more:")
    let photo = try await database.storage.put(try pictures.data(titles.count))
    var before = try await StoredPictures(database, at: place)
    try await diary.document("day-2").updateData(["photo": photo])
    try await StoredPictures.giveUp(database, at: place, since: before)
    try await diary.document("day-1").delete()
    if let shared {
      let bytes = try await database.storage.data(of: shared)
      let isSame = bytes == (try pictures.data(0))
      Story.say("The first day is deleted. Its photo stays, because the sixth day also has it:")
      Story.show(
        "read back: \(Story.bytes(bytes.count)), \(isSame ? "the same as" : "OTHERS than")"
          + " the file's"
      )
    }
    before = try await StoredPictures(database, at: place)
    try await diary.document("day-6").delete()
    Story.say("The sixth day is also deleted. Now no entry has the photo:")
    try await StoredPictures.giveUp(database, at: place, since: before)
    if let shared {
      let canRead = try await StoredPictures.canRead(shared, in: database)
      Story.show("Can it still be read? \(canRead ? "YES" : "No").")
    }
    Story.elsewhere(
      "your code counts the uses of a file before it deletes one, or never deletes any.")
    let findings = try await database.verify(depth: .full)
    Story.say("A full check of the database finds \(Story.count(findings.count, "fault")).")
    for finding in findings { Story.show("\(finding)") }
  }
}
