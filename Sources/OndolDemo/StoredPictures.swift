// What storage has of pictures, in figures that whoever runs the demo can check: contents that are
// stored, files that are there, and bytes that can still be read.
//
// A picture that nobody holds any more is given up in the background, at once where there is no
// grace period, as here. So the pass that a story asks for often finds nothing left to do, and says
// of itself that it gave up nothing: true of the pass, and of no interest to anybody. What counts
// is the difference between before and after.

import Foundation
import Ondol

/// The pictures of a database at some moment.
struct StoredPictures {
  /// Contents that are stored, each once, however many hold it.
  let contents: Int
  let bytes: Int
  /// Documents, paths and derived values that have one.
  let holders: Int
  /// Bytes of the files that pictures are in.
  let filesSize: Int

  init(_ database: Database, at place: String) async throws {
    let statistics = try await database.storage.statistics()
    contents = statistics.contents
    bytes = statistics.bytes
    holders = statistics.documents + statistics.paths + statistics.derived
    filesSize = Self.filesSize(at: place)
  }

  private static func filesSize(at place: String) -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: place)) ?? []
    return names.filter { [".pack", ".content"].contains(where: $0.hasSuffix) }.reduce(0) {
      sum, name in
      let attributes = try? FileManager.default.attributesOfItem(atPath: "\(place)/\(name)")
      return sum + ((attributes?[.size] as? NSNumber)?.intValue ?? 0)
    }
  }

  func show() {
    Story.show(
      "stored: \(Story.count(contents, "content")), \(Story.bytes(bytes)), used"
        + " \(Story.count(holders, "time"))")
  }

  /// Waits until all is given up that nobody holds, and tells what has come back since `before`.
  static func giveUp(
    _ database: Database, at place: String, since before: StoredPictures
  ) async throws {
    try await database.storage.reclaim()
    let after = try await StoredPictures(database, at: place)
    let gone = before.contents - after.contents
    Story.show(
      "\(Story.count(gone, "content")) of \(Story.bytes(before.bytes - after.bytes))"
        + " \(gone == 1 ? "is" : "are") no longer stored.")
    if after.filesSize < before.filesSize {
      Story.show("Their files are smaller by \(Story.bytes(before.filesSize - after.filesSize)).")
    } else {
      Story.show(
        "Their files still take \(Story.bytes(after.filesSize)): free space inside a file is given"
          + " back once it is more than half of the file.")
    }
    after.show()
  }

  /// Whether the bytes of a picture can still be read.
  static func canRead(_ picture: BlobReference, in database: Database) async throws -> Bool {
    do {
      _ = try await database.storage.data(of: picture)
      return true
    } catch {
      guard error.code == .notFound else { throw error }
      return false
    }
  }
}
