// A directory's lock on a real disk.

import Foundation
import Testing
import OndolPlatform

@testable import OndolEngine

@Suite struct `The lock of a directory` {
  #if os(Linux)
    /// A program that starts others forks, and until a child has become the other program it holds
    /// the lock's descriptor. A database that was closed in the meantime once could not be
    /// reopened.
    @Test func `is free once it is released, even if a child has inherited its descriptor`() throws
    {
      let place = FileManager.default.temporaryDirectory.appending(
        path: "ondol-lock-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: place) }
      let directory = try DiskFileSystem().openDirectory(at: place.path, create: false)
      let lock = try directory.lock(owner: "first")
      let inherited = try #require(
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { name in
          let target = try? FileManager.default.destinationOfSymbolicLink(
            atPath: "/proc/self/fd/\(name)")
          return target == place.path + "/LOCK" ? CInt(name).map { dup($0) } : nil
        }.first)
      defer { close(inherited) }
      #expect(throws: EngineError.self) { try directory.lock(owner: "second") }
      lock.release()
      try directory.lock(owner: "third").release()
    }
  #endif
}
