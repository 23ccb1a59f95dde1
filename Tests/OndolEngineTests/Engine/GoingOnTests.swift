// A reader beside a writer continues in the logs where it stopped. Commits of any length arrive
// whole, a look costs as much as the new commits and not as the existing ones, and damage after the
// end is not an end.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct `A reader that goes on in the logs` {
  private let environment = Environment.memory()

  private func open(
    _ access: FileAccess, _ options: EngineOptions = EngineOptions()
  ) async throws -> Engine {
    try await Engine.open(at: "db", options: options, environment: environment, access: access)
  }

  private func logs() throws -> Set<String> {
    let directory = try environment.fileSystem.openDirectory(at: "db", create: false)
    return Set(try directory.list().filter { $0.hasPrefix("LOG-") })
  }

  @Test func `A commit of several frames comes as a whole`() async throws {
    let writer = try await open(.readWrite)
    let reader = try await open(.readOnly)
    for round in 1...3 {
      var rows: [[UInt8]: [UInt8]?] = [:]
      for number in 0..<(1 + round * 300) {
        rows[rowKey("\(number)")] = .some([UInt8](repeating: UInt8(round), count: 7_000))
      }
      try await writer.put(rows)
      #expect(try await reader.refresh())
      let snapshot = try reader.snapshot()
      #expect(snapshot.sequence.rawValue == UInt64(round))
      for (key, value) in rows { #expect(try await snapshot.get(key) == value) }
    }
    // Nothing new has come, though the writer may have sorted its rows in the meantime.
    _ = try await reader.refresh()
    #expect(try reader.snapshot().sequence.rawValue == 3)
    try await reader.close()
    try await writer.close()
  }

  @Test func `A look at new commits costs a few reads, however large the database is`() async throws
  {
    let world = SimulatedWorld(seed: 5)
    let writer = try await Engine.open(at: "db", environment: world.environment)
    for number in 0..<400 { try await writer.put([rowKey("\(number)"): [1]]) }
    let reader = try await Engine.open(
      at: "db", environment: world.environment, access: .readOnly)
    for number in 0..<100 {
      try await writer.put([rowKey("\(number)"): [2]])
      let before = world.fileSystem.count(of: .read)
      #expect(try await reader.refresh())
      #expect(world.fileSystem.count(of: .read) - before < 16)
      #expect(try await reader.snapshot().get(rowKey("\(number)")) == [2])
    }
    try await reader.close()
    try await writer.close()
  }

  @Test func `Each step says which rows were changed, unless no log tells it any more`()
    async throws
  {
    let writer = try await open(.readWrite, tinyOptions())
    let reader = try await open(.readOnly, tinyOptions())
    let steps = Guarded<[[String: UInt64]?]>([])
    reader.observeRefreshes { step in
      var rows: [String: UInt64] = [:]
      let isKnown = try? step.visitRows { key, commit in
        rows[String(decoding: key.array.dropFirst(4), as: UTF8.self)] = commit.sequence.rawValue
      }
      steps.withLock { $0.append(isKnown == true ? rows : nil) }
    }
    try await writer.put([rowKey("a"): [1], rowKey("b", group: 2): [1]])
    try await writer.put([rowKey("a"): [2]])
    _ = try await reader.refresh()
    _ = try await reader.refresh()
    #expect(steps.withLock { $0 } == [["a": 2, "b": 1]])
    // The next log is created in the background. Until it exists, commits go into the first.
    let logs = try logs()
    repeat {
      for number in 0..<400 { try await writer.put([rowKey("\(number)"): [3]]) }
      try await writer.compact()
    } while try !self.logs().isDisjoint(with: logs)
    _ = try await reader.refresh()
    #expect(steps.withLock { $0 } == [["a": 2, "b": 1], nil])
    let last = try writer.snapshot().sequence.rawValue
    try await writer.put([rowKey("c"): nil])
    _ = try await reader.refresh()
    #expect(steps.withLock { $0.last } == ["c": last + 1])
    try await reader.close()
    try await writer.close()
  }

  @Test func `Damage after the read part is reported, and not taken for the end`() async throws {
    let writer = try await open(.readWrite)
    try await writer.put([rowKey("a"): [1]], durability: .power)
    let reader = try await open(.readOnly)
    let pattern: [UInt8] = Array("a value to be found".utf8)
    try await writer.put([rowKey("b"): pattern], durability: .power)
    // This commit says that the one before was on the device.
    try await writer.put([rowKey("c"): [1]], durability: .power)
    let (log, place) = try #require(try find(pattern))
    try log.write([UInt8](repeating: 0xee, count: 4).bytes, at: place)
    let error = await #expect(throws: EngineError.self) { _ = try await reader.refresh() }
    guard case .corrupt(let file, _, _)? = error else {
      Issue.record("\(error.map { "\($0)" } ?? "nothing") is not about damage")
      return
    }
    #expect(file == log.name)
    #expect(try await reader.snapshot().get(rowKey("a")) == [1])
    try log.write(pattern.bytes, at: place)
    #expect(try await reader.refresh())
    #expect(try await reader.snapshot().get(rowKey("c")) == [1])
    try await reader.close()
    try await writer.close()
  }

  /// Returns the log that contains these bytes, and their place.
  private func find(_ pattern: [UInt8]) throws -> (any File, UInt64)? {
    let directory = try environment.fileSystem.openDirectory(at: "db", create: false)
    for name in try directory.list() where name.hasPrefix("LOG-") {
      let file = try directory.open(name, access: .readWrite)
      let bytes = try file.read(at: 0, count: 64 << 10)
      if let place = bytes.indices.first(where: { bytes[$0...].starts(with: pattern) }) {
        return (file, UInt64(place))
      }
    }
    return nil
  }
}
