// Many databases in one process. Each once had two threads as soon as it was open, and up to
// nineteen in use, so that 500 of them had a thousand at rest.

import Foundation
import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct `Many databases` {
  private static let count = 200

  private func withDatabases(_ body: ([Engine]) async throws -> Void) async throws {
    let place = FileManager.default.temporaryDirectory.appending(path: "ondol-\(UUID())")
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: place) }
    var engines: [Engine] = []
    for number in 0..<Self.count {
      let path = place.appending(path: "\(number)").path(percentEncoded: false)
      engines.append(try await Engine.open(at: path, options: tinyOptions()))
    }
    try await body(engines)
    for engine in engines { try await engine.close() }
  }

  @Test func `They share sixteen threads, however hard all of them work`() async throws {
    try await withDatabases { engines in
      try await withThrowingTaskGroup { group in
        for (place, engine) in engines.enumerated() {
          group.addTask {
            for round in 0..<20 {
              let key = rowKey("\(place)-\(round)", group: 1)
              try await engine.put([key: [UInt8](repeating: 7, count: 500)], durability: .power)
              #expect(try await engine.snapshot().get(key)?.count == 500)
            }
            try await engine.flush()
            try await engine.compact()
          }
        }
        try await group.waitForAll()
      }
      // One more may watch files.
      #expect(SharedThreads.process.threadCount < SharedThreads.most)
    }
  }

  #if os(Linux)
    // The lock and the directory, and the log of a database that has been written.
    @Test func `A database at rest has two descriptors beside its lock`() async throws {
      try await withDatabases { engines in
        for engine in engines {
          try await engine.put([rowKey("a"): [1]], durability: .power)
          try await engine.flush()
        }
        let links = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        let targets = links.compactMap {
          try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }
        for engine in engines {
          let path = engine.directory.path
          let open = targets.filter { $0 == path || $0.hasPrefix(path + "/") }
          #expect(open.count { !$0.hasSuffix(".seg") } <= 3, "\(open)")
        }
      }
    }
  #endif

  @Test func `Databases that are only open have no threads`() async throws {
    let threads = SharedThreads()
    var environment = Environment.memory()
    environment.threads = threads
    var engines: [Engine] = []
    for number in 0..<Self.count {
      engines.append(try await Engine.open(at: "/\(number)", environment: environment))
    }
    // Creating a database is the upkeep's work, and takes at most its lane's threads.
    #expect(threads.threadCount <= 2)
    for engine in engines { try await engine.close() }
  }
}
