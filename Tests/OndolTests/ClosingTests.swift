// What a database leaves in its process after it is closed or released: nothing.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `A database that is gone` {
  #if os(Linux)
    /// Listeners once kept the engine, and the engine kept them. A program that opened and closed
    /// its databases again and again ran out of descriptors.
    @Test(.timeLimit(.minutes(5)), arguments: [true, false])
    func `leaves no open file and no memory`(closes: Bool) async throws {
      let directory = FileManager.default.temporaryDirectory
        .appendingPathComponent("ondol-closing-\(UUID().uuidString)")
      defer { try? FileManager.default.removeItem(at: directory) }
      for _ in 0..<4 {
        let engine = try await live(in: directory.path, closes: closes)
        // Work under way holds its resources until it ends. The limit finds work that never ends,
        // and is wide because hundreds of tests may run beside this one.
        while engine() != nil { try await yield() }
        while try !openFiles(below: directory.path).isEmpty { try await yield() }
      }
    }

    enum Opening: CaseIterable { case writer, reader, encrypted }

    /// A program that kept a closed database once kept its directory, its manifest, segments, and a
    /// removed log, whose space stayed in use.
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
      // None of it was read before, so it is not in memory either.
      #expect(throws: DatabaseError.self) { try snapshot.getDocument(items.document("i7")) }
      withExtendedLifetime((writer, database)) {}
    }

    /// Its files are in memory. It holds resources of the store: connections, and versions of rows.
    @Test func `on a store lets go of the store`() async throws {
      let environment = Environment.live()
      let store = SimulatedStore(seed: 1, environment: environment)
      let database = try await Database.open(at: "store", environment: environment, on: store)
      try await database.collection("items").document("a").setData(["n": 1])
      await database.engine.forgetVersions()
      #expect(store.processesWithPins == 1)
      try await database.close()
      #expect(store.processesWithPins == 0)
      withExtendedLifetime(database) {}
    }

    /// A failed device ends writing, and closing reports that. The files are released all the same.
    @Test func `gives its files back after errors`() async throws {
      let directory = temporary()
      defer { try? FileManager.default.removeItem(at: directory) }
      let device = FailingDevice()
      var environment = Environment.live()
      environment.fileSystem = FailingFileSystem(base: environment.fileSystem, device: device)
      let database = try await Database.open(at: directory.path, environment: environment)
      let item = database.collection("items").document("a")
      try await item.setData(["n": 1])
      device.fails.withLock { $0 = true }
      await #expect(throws: DatabaseError.self) { try await item.setData(["n": 2]) }
      await #expect(throws: DatabaseError.self) { try await item.setData(["n": 3]) }
      #expect(try openFiles(below: directory.path) != [])
      try? await database.close()
      #expect(try openFiles(below: directory.path) == [])
      withExtendedLifetime(database) {}
    }

    @Test(.timeLimit(.minutes(5)), arguments: [Database.Access.readWrite, .readOnly])
    func `keeps nothing open that could not be opened`(
      access: Database.Access
    ) async throws {
      let directory = temporary()
      defer { try? FileManager.default.removeItem(at: directory) }
      let path = directory.path
      let writer = try await Database.open(at: path)
      try await writer.collection("items").document("a").setData(["n": 1])
      try await writer.compact()
      try await writer.collection("items").document("b").setData(["n": 2])
      if access == .readWrite {
        // Two concurrent writers.
        let before = try openFiles(below: path).sorted()
        await #expect(throws: DatabaseError.self) { try await Database.open(at: path) }
        while try openFiles(below: path).sorted() != before { try await yield() }
      }
      try await writer.close()
      var options = Database.Options()
      options.access = access
      var failures = 0
      for name in try FileManager.default.contentsOfDirectory(atPath: path).sorted() {
        let file = directory.appendingPathComponent(name)
        guard let bytes = try? Data(contentsOf: file), !bytes.isEmpty else { continue }
        try Data(repeating: 0x5a, count: bytes.count).write(to: file)
        do {
          let database = try await Database.open(at: path, options: options)
          try? await database.close()
        } catch {
          failures += 1
        }
        while try !openFiles(below: path).isEmpty { try await yield() }
        try bytes.write(to: file)
      }
      #expect(failures > 0)
    }

    /// The kernel's notification about the writer's steps is a descriptor as well.
    @Test(.timeLimit(.minutes(5)))
    func `watches no files after it was a reader with listeners`() async throws {
      let directory = temporary()
      defer { try? FileManager.default.removeItem(at: directory) }
      let writer = try await Database.open(at: directory.path)
      try await writer.collection("items").document("a").setData(["n": 1])
      let inode = try #require(
        try FileManager.default.attributesOfItem(atPath: directory.path)[.systemFileNumber]
          as? Int)
      #expect(watches(of: inode) == 0)
      var options = Database.Options()
      options.access = .readOnly
      let reader = try await Database.open(at: directory.path, options: options)
      var snapshots = reader.collection("items").snapshots.makeAsyncIterator()
      #expect(try await snapshots.next()?.count == 1)
      try await writer.collection("items").document("b").setData(["n": 2])
      #expect(try await snapshots.next()?.count == 2)
      try await reader.close()
      while watches(of: inode) > 0 { try await yield() }
      try await writer.close()
      #expect(try openFiles(below: directory.path) == [])
      withExtendedLifetime((writer, reader)) {}
    }

    /// Descriptors of the process that watch the directory.
    private func watches(of inode: Int) -> Int {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fdinfo")) ?? []
      return names.count { name in
        let text = try? String(contentsOfFile: "/proc/self/fdinfo/\(name)", encoding: .utf8)
        return text?.contains("ino:\(String(inode, radix: 16)) ") ?? false
      }
    }

    private func temporary() -> URL {
      FileManager.default.temporaryDirectory
        .appendingPathComponent("ondol-closing-\(UUID().uuidString)")
    }

    /// Lets others run. Throws after the time limit.
    private func yield() async throws {
      try Task.checkCancellation()
      await Task.yield()
    }

    /// Uses a database in many ways. Returns a check of whether its engine still exists.
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

/// A device that accepts no more bytes once it fails.
private final class FailingDevice: Sendable {
  let fails = Guarded(false)

  func check(_ name: String) throws(EngineError) {
    guard fails.withLock({ $0 }) else { return }
    throw .io(operation: "pwrite", file: name, offset: nil, errno: EIO)
  }
}

private struct FailingFileSystem: FileSystem {
  let base: any FileSystem
  let device: FailingDevice

  func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory {
    FailingDirectory(try base.openDirectory(at: path, create: create), device)
  }
}

private final class FailingDirectory: ForwardingDirectory {
  let base: any Directory
  private let device: FailingDevice

  init(_ base: any Directory, _ device: FailingDevice) {
    self.base = base
    self.device = device
  }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    FailingFile(try base.open(name, access: access), device)
  }

  func create(_ name: String) throws(EngineError) -> any File {
    FailingFile(try base.create(name), device)
  }
}

private final class FailingFile: ForwardingFile {
  let base: any File
  private let device: FailingDevice

  init(_ base: any File, _ device: FailingDevice) {
    self.base = base
    self.device = device
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    try device.check(name)
    try base.write(bytes, at: offset)
  }

  func sync() throws(EngineError) {
    try device.check(name)
    try base.sync()
  }

  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    try device.check(name)
    try base.writeSynced(bytes, at: offset)
  }
}
