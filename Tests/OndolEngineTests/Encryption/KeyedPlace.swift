// A database whose groups of keyspaces have keys of their own, and its rows.

import OndolTestKit

@testable import OndolEngine

/// A database in a simulated file system, whose groups can have keys.
struct KeyedPlace {
  var fileSystem = SimulatedFileSystem()
  let oracle = SealOracle()
  var seed: UInt64 = 1

  func open(history: Bool = false) async throws -> Engine {
    let world = SimulatedWorld(fileSystem: fileSystem, seed: seed)
    var environment = world.environment
    environment.vault = oracle
    var options = tinyOptions()
    options.valueThreshold = 300
    if history {
      options.historyRetention = HistoryRetention(microseconds: .max, bytes: .max)
    }
    return try await Engine.open(at: "/db", options: options, environment: environment)
  }

  var directory: any Directory {
    get throws { try fileSystem.openDirectory(at: "/db", create: false) }
  }

  func bytes(of name: String) throws -> [UInt8] {
    let file = try directory.open(name, access: .readOnly)
    return try file.read(at: 0, count: Int(file.size()))
  }

  func write(_ bytes: [UInt8], to name: String) throws {
    try? directory.remove(name)
    let file = try directory.create(name)
    try file.write(bytes.bytes, at: 0)
    try file.sync()
    try directory.sync()
  }
}

extension Engine {
  /// The rows of a group, by the text after the keyspace.
  func rows(of group: UInt32) throws -> [String: [UInt8]] {
    var cursor = try snapshot().cursor(
      from: rowKey("", group: group), to: rowKey("", group: group + 1))
    var rows: [String: [UInt8]] = [:]
    try cursor.seekToFirst()
    while cursor.isValid {
      let text = String(decoding: cursor.key.array.dropFirst(4), as: UTF8.self)
      rows[text] = try cursor.value.array
      try cursor.next()
    }
    return rows
  }
}
