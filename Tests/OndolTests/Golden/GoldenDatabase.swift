// Databases that were written once and are read at every run, by this version and by every later
// one. A change of any byte of the format fails here. Each has its expected contents beside it, as
// text. `Tests/Golden/README.md` explains how they are made.

import Foundation
import OndolEngine

@testable import Ondol

/// A kept database, with its contents.
struct GoldenDatabase: CustomStringConvertible {
  /// The name of its directory.
  let name: String

  var description: String { name }

  /// With `ONDOL_GOLDEN=new` in the environment all are recreated, and nothing else is tested.
  static let makesNew = ProcessInfo.processInfo.environment["ONDOL_GOLDEN"] == "new"

  static let folder = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Golden")

  /// All kept databases.
  static var all: [GoldenDatabase] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path(folder))) ?? []
    return names.filter { $0.hasSuffix(".jsonl") }.sorted()
      .map { GoldenDatabase(name: String($0.dropLast(".jsonl".count))) }
  }

  var directory: URL { Self.folder.appending(path: name) }
  private var contentFile: URL { Self.folder.appending(path: "\(name).jsonl") }

  /// Its contents, a line for each item.
  func content() throws -> [String] {
    try String(contentsOf: contentFile, encoding: .utf8).split(separator: "\n").map(String.init)
  }

  /// The files of the database with their bytes.
  func files() throws -> [(name: String, bytes: [UInt8])] {
    try FileManager.default.contentsOfDirectory(atPath: Self.path(directory)).sorted().map { name in
      (name, Array(try Data(contentsOf: directory.appending(path: name))))
    }
  }

  /// Copies it to a new directory, because an open changes it.
  func copy(to place: String) throws {
    try FileManager.default.copyItem(atPath: Self.path(directory), toPath: place)
  }

  /// Replaces the database with the files of a simulated disk, and its contents.
  func replace(with files: [(name: String, bytes: [UInt8])], content: [String]) throws {
    try? FileManager.default.removeItem(at: directory)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    for (name, bytes) in files {
      try Data(bytes).write(to: directory.appending(path: name))
    }
    try (content.joined(separator: "\n") + "\n")
      .write(to: contentFile, atomically: true, encoding: .utf8)
  }

  private static func path(_ url: URL) -> String { url.path(percentEncoded: false) }
}
