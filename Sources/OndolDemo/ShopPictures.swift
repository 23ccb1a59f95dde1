// The shop's pictures: files at paths that the items name. A picture and its item are one commit. A
// replaced picture goes with the commit that replaces it, and a picture does not go before its
// item. The story checks each deletion: a deleted picture cannot be read.

import Foundation
import Ondol

extension Shop {
  /// Gives every item a picture, replaces one, removes an item, and counts.
  static func showPictures(
    of items: CollectionReference, _ pictures: Pictures, in database: Database, at place: String
  ) async throws {
    let ids = try await items.order(by: "name").getDocuments().documents.map(\.documentID)
    Story.say(
      "\(Story.count(ids.count, "item")) get a picture each. Item and picture are one commit:")
    for (number, id) in ids.enumerated() {
      try await take(pictures, number, of: items.document(id), in: database)
    }
    try await items.linkBlobs(field: "imagePath", under: "images/")
    Story.say("From now on an item owns the pictures that its imagePath names.")
    try await StoredPictures(database, at: place).show()

    let first = items.document(ids[0])
    if let path = try await self.path(of: first) {
      do {
        try await database.storage.reference(withPath: path).delete()
      } catch {
        Story.say("A picture that an item still names cannot be deleted:")
        Story.show("\(error)")
      }
    }
    try await replace(first, pictures, ids.count, in: database, at: place)
    try await remove(items.document(ids[1]), in: database, at: place)
    Story.elsewhere(
      "documents and pictures are two products, and a job of yours cleans up between them.")
  }

  /// Gives the item another picture.
  private static func replace(
    _ item: DocumentReference, _ pictures: Pictures, _ number: Int, in database: Database,
    at place: String
  ) async throws {
    Story.say("The \(item.documentID) gets another picture. The same commit deletes the old one:")
    let before = try await StoredPictures(database, at: place)
    let old = try await self.path(of: item)
    try await take(pictures, number, of: item, in: database)
    if let old {
      let isThere = try await database.storage.reference(withPath: old).exists()
      Story.show("\(old): \(isThere ? "still there" : "gone")")
    }
    try await StoredPictures.settle(database)
    let after = try await StoredPictures(database, at: place)
    Story.show(
      "stored before: \(Story.bytes(before.bytes)); stored now: \(Story.bytes(after.bytes))")
  }

  /// Deletes the item, and its picture with it.
  private static func remove(
    _ item: DocumentReference, in database: Database, at place: String
  ) async throws {
    Story.say(
      "The \(item.documentID) is no longer sold. One call deletes the item and its picture:")
    let before = try await StoredPictures(database, at: place)
    let path = try await self.path(of: item)
    try await item.delete()
    if let path {
      let isThere = try await database.storage.reference(withPath: path).exists()
      Story.show("\(path): \(isThere ? "still there" : "gone")")
    }
    try await StoredPictures.giveUp(database, at: place, since: before)
  }

  private static func path(of item: DocumentReference) async throws -> String? {
    (try await item.getDocument()["imagePath"] as [String]?)?.first
  }

  /// Puts a picture beside an item, and replaces those it has.
  private static func take(
    _ pictures: Pictures, _ number: Int, of item: DocumentReference, in database: Database
  ) async throws {
    let bytes = try pictures.data(number)
    let path = "images/\(item.documentID)/\(number + 1).\(pictures.suffix(number))"
    try await database.runTransaction { transaction in
      try await transaction.putData(bytes, at: path)
      try transaction.updateData(["imagePath": [path]], forDocument: item)
    }
    let metadata = try await database.storage.reference(withPath: path).getMetadata()
    Story.show("\(path): \(metadata.contentType ?? "?"), \(Story.bytes(Int(metadata.size)))")
  }
}
