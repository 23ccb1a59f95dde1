// The pictures in storage, in figures that you can check: how many are stored, how many bytes they
// have, and whether one can still be read.
//
// Ondol frees a picture without a holder in the background, at once if there is no grace period, as
// here. So the pass that a story requests often finds nothing left to do, and reports that it freed
// nothing. That is true of the pass, and interests nobody. The difference between before and after
// counts.

import Foundation
import Ondol

/// The pictures of a database at some moment.
struct StoredPictures {
  /// The stored pictures, each counted once, however many documents have it.
  let pictures: Int
  /// The contents that were made from them and are stored with them.
  let sizes: Int
  let bytes: Int
  /// The size of the pictures' files in bytes.
  let filesSize: Int

  init(_ database: Database, at place: String) async throws {
    let statistics = try await database.storage.statistics()
    sizes = statistics.derived
    pictures = statistics.contents - statistics.derived
    bytes = statistics.bytes
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
    Story.show("stored: \(Self.text(pictures, sizes)), \(Story.bytes(bytes))")
  }

  private static func text(_ pictures: Int, _ sizes: Int) -> String {
    Story.count(pictures, "picture") + (sizes == 0 ? "" : " and \(Story.count(sizes, "size"))")
  }

  /// Waits until all unheld contents are freed. A background pass may be doing that already, and
  /// then the requested one has nothing left to do.
  static func settle(_ database: Database) async throws {
    for _ in 0..<200 {
      try await database.storage.reclaim()
      guard try await database.storage.statistics().unheldContents > 0 else { return }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Waits until all unheld contents are freed, and reports what has been freed since `before`.
  static func giveUp(
    _ database: Database, at place: String, since before: StoredPictures
  ) async throws {
    try await settle(database)
    let after = try await StoredPictures(database, at: place)
    let gone = text(before.pictures - after.pictures, before.sizes - after.sizes)
    Story.show("no longer stored: \(gone), \(Story.bytes(before.bytes - after.bytes))")
    if after.filesSize < before.filesSize {
      let size = Story.bytes(before.filesSize - after.filesSize)
      Story.show("the database's files are smaller by \(size)")
    } else {
      Story.show("the database uses their space for new data")
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
