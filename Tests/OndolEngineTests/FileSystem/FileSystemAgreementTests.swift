// There are three file systems: the disk, the one in memory and the simulated one. Without crashes
// they behave alike, so a test on one holds for the others.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

/// The result of an operation, in terms that all file systems share.
private enum Outcome: Equatable {
  case bytes([UInt8])
  case number(UInt64)
  case names([String])
  case done
  case failed(errno: Int32)
  case inUse
}

private enum Step {
  case create(String)
  case open(String)
  case remove(String)
  case list
  case sync
  case write(handle: Int, bytes: [UInt8], offset: UInt64)
  case writeSynced(handle: Int, bytes: [UInt8], offset: UInt64)
  case read(handle: Int, offset: UInt64, count: Int)
  case size(handle: Int)
  case syncFile(handle: Int)
  case lock
  case release(Int)

  init(from random: inout OndolTestKit.SeededRandom) {
    let name = "\(random.below(6)).seg"
    let handle = random.below(1_000)
    let offset = UInt64(random.pick([random.below(10), random.below(9_000), 4_095, 4_096]))
    switch random.below(32) {
    case 0..<4: self = .create(name)
    case 4..<6: self = .open(name)
    case 6..<8: self = .remove(name)
    case 8: self = .list
    case 9: self = .sync
    case 10..<18:
      let count = random.pick([0, 1, random.below(600), random.below(10_000)])
      let bytes = random.bytes(count)
      self =
        random.chance(1, in: 4)
        ? .writeSynced(handle: handle, bytes: bytes, offset: offset)
        : .write(handle: handle, bytes: bytes, offset: offset)
    case 18..<26: self = .read(handle: handle, offset: offset, count: random.below(12_000))
    case 26..<28: self = .size(handle: handle)
    case 28: self = .syncFile(handle: handle)
    case 29: self = .lock
    default: self = .release(handle)
    }
  }
}

/// One file system under the same steps as the others.
private final class Candidate {
  private let directory: any Directory
  private var handles: [any File] = []
  private var locks: [any DirectoryLock] = []

  init(_ fileSystem: any FileSystem, path: String) throws {
    directory = try fileSystem.openDirectory(at: path, create: true)
  }

  func perform(_ step: Step) -> Outcome {
    do throws(EngineError) {
      return try attempt(step)
    } catch {
      switch error {
      case .io(_, _, _, let errno): return .failed(errno: errno)
      case .inUse: return .inUse
      default: return .failed(errno: -1)
      }
    }
  }

  private func attempt(_ step: Step) throws(EngineError) -> Outcome {
    switch step {
    case .create(let name): handles.append(try directory.create(name))
    case .open(let name): handles.append(try directory.open(name, access: .readWrite))
    case .remove(let name): try directory.remove(name)
    case .list: return .names(try directory.list().filter { $0 != "LOCK" }.sorted())
    case .sync: try directory.sync()
    case .write(let handle, let bytes, let offset):
      try file(handle)?.write(bytes.bytes, at: offset)
    case .writeSynced(let handle, let bytes, let offset):
      try file(handle)?.writeSynced(bytes.bytes, at: offset)
    case .read(let handle, let offset, let count):
      return .bytes(try file(handle)?.read(at: offset, count: count) ?? [])
    case .size(let handle): return .number(try file(handle)?.size() ?? 0)
    case .syncFile(let handle): try file(handle)?.sync()
    case .lock: locks.append(try directory.lock(owner: "test"))
    case .release(let lock): if !locks.isEmpty { locks[lock % locks.count].release() }
    }
    return .done
  }

  private func file(_ handle: Int) -> (any File)? {
    handles.isEmpty ? nil : handles[handle % handles.count]
  }
}

@Suite struct `The file systems` {
  @Test(arguments: 0..<20)
  func `agree as long as nothing crashes`(seed: Int) throws {
    let place = FileManager.default.temporaryDirectory
      .appendingPathComponent("ondol-agreement-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: place) }
    let simulated = try Candidate(SimulatedFileSystem(), path: "/db")
    let others = [
      (name: "disk", candidate: try Candidate(DiskFileSystem(), path: place.path)),
      (name: "memory", candidate: try Candidate(MemoryFileSystem(), path: "/db")),
    ]
    var random = OndolTestKit.SeededRandom(seed: UInt64(seed))
    for number in 0..<300 {
      let step = Step(from: &random)
      let expected = simulated.perform(step)
      for other in others {
        #expect(
          other.candidate.perform(step) == expected, "SEED=\(seed) step \(number) \(other.name)")
      }
    }
  }

  @Test func `do not make a directory unless told to`() {
    let place = FileManager.default.temporaryDirectory
      .appendingPathComponent("ondol-missing-\(UUID().uuidString)").path
    let fileSystems: [any FileSystem] = [
      DiskFileSystem(), MemoryFileSystem(), SimulatedFileSystem(),
    ]
    for fileSystem in fileSystems {
      #expect(throws: EngineError.self) {
        try fileSystem.openDirectory(at: place, create: false)
      }
    }
  }
}
