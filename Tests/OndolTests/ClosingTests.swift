// What a database leaves behind in its process once it is closed, or let go: nothing.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `A database that is gone` {
  #if os(Linux)
    /// Those who listen kept the engine, and the engine kept them: a program that opened and closed
    /// its databases again and again ran out of descriptors.
    @Test(.timeLimit(.minutes(5)), arguments: [true, false])
    func `leaves no file open and no memory behind`(closes: Bool) async throws {
      let directory = FileManager.default.temporaryDirectory
        .appendingPathComponent("ondol-closing-\(UUID().uuidString)")
      defer { try? FileManager.default.removeItem(at: directory) }
      for _ in 0..<4 {
        let engine = try await live(in: directory.path, closes: closes)
        // Work that was under way holds what it uses until it ends. The limit tells of what never
        // ends, and is wide because hundreds of tests may run beside this one.
        while engine() != nil { try await yield() }
        while try !openFiles(below: directory.path).isEmpty { try await yield() }
      }
    }

    enum Opening: CaseIterable { case writer, reader, encrypted }

    /// A program that kept a closed database kept its directory, its manifest, segments, and a log
    /// that was removed, whose space stayed taken.
    @Test(arguments: Opening.allCases)
    func `gives its files back when it is closed, and not when the last one lets go of it`(
      opening: Opening
    ) async throws {
      let directory = FileManager.default.temporaryDirectory
        .appendingPathComponent("ondol-closing-\(UUID().uuidString)")
      defer { try? FileManager.default.removeItem(at: directory) }
      var options = Database.Options()
      if opening == .encrypted {
        options.encryption = .key([UInt8](repeating: 7, count: 32))
      }
      let writer = try await Database.open(at: directory.path, options: options)
      let items = writer.collection("items")
      for number in 0..<50 {
        try await items.document("i\(number)").setData(
          ["n": Value.integer(Int64(number))], durability: .process)
      }
      try await writer.compact()
      try await writer.close()
      #expect(try openFiles(below: directory.path) == [])
      if opening == .reader { options.access = .readOnly }
      let database = try await Database.open(at: directory.path, options: options)
      let snapshot = database.snapshot()
      #expect(try openFiles(below: directory.path) != [])
      try await database.close()
      #expect(try openFiles(below: directory.path) == [])
      // Nothing of it was read before, so it is not in memory either.
      #expect(throws: DatabaseError.self) { try snapshot.getDocument(items.document("i7")) }
      withExtendedLifetime((writer, database)) {}
    }

    /// Lets others run; throws where the limit of time is over.
    private func yield() async throws {
      try Task.checkCancellation()
      await Task.yield()
    }

    /// Uses a database in many ways; answers with how to ask whether its engine is still there.
    private func live(
      in path: String, closes: Bool
    ) async throws -> @Sendable () -> Engine? {
      let database = try await Database.open(at: path)
      let items = database.collection("items")
      for number in 0..<50 {
        try await items.document("i\(number)").setData(
          ["n": Value.integer(Int64(number))], durability: .process)
      }
      try await items.createIndex(on: ["n"])
      let query = items.whereField("n", isGreaterThan: 3)
      var snapshots = query.snapshots.makeAsyncIterator()
      #expect(try await snapshots.next()?.count == 46)
      try await items.document("i1").updateData(["n": 100])
      #expect(try await snapshots.next()?.count == 47)
      try await database.compact()
      if closes { try await database.close() }
      let engine = database.engine
      return { [weak engine] in engine }
    }

    private func openFiles(below path: String) throws -> [String] {
      let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
      return descriptors.compactMap { descriptor in
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
      }.filter { $0.hasPrefix(path) }
    }
  #endif
}
