// The shop's pictures: files at paths that the items name. Picture and item are one commit, a
// picture that is replaced goes with the commit that replaces it, and one that an item has does not
// go before the item. At the end the accounts are shown.

import Foundation
import Ondol

extension Shop {
  /// Gives every item a picture, replaces one, takes an item away, and counts.
  static func showPictures(
    of items: CollectionReference, _ pictures: Pictures, in database: Database
  ) async throws {
    Story.chapter("The shop's pictures")
    let ids = try await items.order(by: "name").getDocuments().documents.map(\.documentID)
    for (number, id) in ids.enumerated() {
      try await take(pictures, number, of: items.document(id), in: database)
    }
    Story.say("\(ids.count) items have pictures. Bytes and item are in one commit, for each.")
    try await items.linkBlobs(field: "imagePath", under: "images/")
    Story.say("From now on the items keep what their imagePath names.")
    try await Accounts.show(database)

    let listing = try await database.storage.reference(withPath: "images").listAll()
    Story.say("Folders below images/: \(listing.prefixes.map(\.name).joined(separator: ", "))")
    do {
      try await listing.prefixes[0].listAll().items.first?.delete()
    } catch {
      Story.say("Deleting a picture that an item has is refused:")
      Story.say("  \(error)")
    }
    Story.say("\(ids[0]) gets another picture; the old one goes in that commit.")
    try await take(pictures, ids.count, of: items.document(ids[0]), in: database)
    try await Accounts.show(database)

    Story.say("\(ids[1]) is no longer sold: document and picture go in one commit.")
    try await items.document(ids[1]).delete()
    try await Accounts.show(database)
    Story.say("Giving up what nobody holds any more:")
    try await Accounts.reclaim(database)
    try await Accounts.show(database)
  }

  /// Puts a picture beside an item, in the place of those it has.
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
    Story.say("  \(path): \(metadata.contentType ?? "?"), \(metadata.size) bytes")
  }
}

/// What storage has, and who holds it.
enum Accounts {
  static func show(_ database: Database) async throws {
    let storage = try await database.storage.statistics()
    Story.say(
      "  stored: \(storage.contents) contents, \(storage.bytes) bytes; held by \(storage.paths)"
        + " paths, \(storage.documents) documents, \(storage.derived) derivations"
        + " (\(storage.heldBytes) bytes if each had its own); held by nobody:"
        + " \(storage.unheldContents); reclaimed: \(storage.reclaimedContents) contents,"
        + " \(storage.reclaimedBytes) bytes")
  }

  static func reclaim(_ database: Database) async throws {
    let freed = try await database.storage.reclaim()
    Story.say("  \(freed.contents) contents given up, files smaller by \(freed.bytes) bytes")
  }
}
