// Replays what fuzzing has kept: every input of the corpus goes through its target, without a
// fuzzer and in an ordinary build. A broken promise ends the process, which names the input.

import Foundation
import OndolEngine
import Testing

@Suite(.serialized) struct `Inputs that fuzzing kept` {
  @Test(arguments: FuzzTargets.all.map { $0.name })
  func `Every input of the corpus keeps the promises of its target`(_ name: String) async throws {
    let target = try #require(FuzzTargets.named(name))
    let folder = Self.corpus.appending(path: name)
    let inputs = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    #expect(!inputs.isEmpty)
    for input in inputs {
      let bytes = Array(try Data(contentsOf: folder.appending(path: input)))
      await Self.attempt(target, bytes, named: "\(name)/\(input)")
    }
  }

  @Test(arguments: FuzzTargets.all.map { $0.name })
  func `Every seed of a target keeps its promises`(_ name: String) async throws {
    let target = try #require(FuzzTargets.named(name))
    for (index, seed) in target.seeds().enumerated() {
      await Self.attempt(target, seed, named: "\(name), seed \(index)")
    }
  }

  /// On a separate thread, because a target may wait there for tasks of the pool.
  private static func attempt(
    _ target: any FuzzTarget.Type, _ input: [UInt8], named name: String
  ) async {
    underTrial.withLock { $0 = name }
    await withCheckedContinuation { isDone in
      Thread.detachNewThread {
        target.run(input)
        isDone.resume()
      }
    }
  }

  @Test func `The corpus has no folder without a target, and is small`() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
    var wanted = Set(FuzzTargets.all.map { $0.name })
    #if !Server
      wanted.formUnion(["firestore-request", "rules", "storage-request", "token", "websocket"])
    #endif
    #expect(Set(folders) == wanted)
    let top = try #require(FileManager.default.enumerator(atPath: Self.corpus.path))
    var bytes = 0
    while top.nextObject() != nil { bytes += top.fileAttributes?[.size] as? Int ?? 0 }
    #expect(
      bytes < 200_000, "the corpus has \(bytes) bytes; Scripts/fuzz --minimise makes it small")
  }

  /// `Fuzz/Corpus`, found from this file's path.
  private static let corpus = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Corpus")
}
