// The fuzzer's program: the two functions that libFuzzer calls. It brings its own `main`. The
// environment names the target, so that all targets are one program and one build.

import Foundation
import FuzzTargets

/// The target of this process.
private let target: any FuzzTarget.Type = {
  let name = ProcessInfo.processInfo.environment["FUZZ_TARGET"] ?? ""
  guard let target = FuzzTargets.named(name) else {
    let names = FuzzTargets.all.map { $0.name }.joined(separator: ", ")
    FileHandle.standardError.write(Data("FUZZ_TARGET names none of \(names)\n".utf8))
    exit(2)
  }
  return target
}()

/// Tries one input.
@c(LLVMFuzzerTestOneInput)
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  // Safe: libFuzzer passes `count` bytes that stay until this function returns.
  let bytes = unsafe UnsafeBufferPointer(start: start, count: count)
  target.run(unsafe Array(bytes))
  return 0
}

/// Prepares the process. If `FUZZ_SEEDS` names a folder, it writes the target's seeds there and
/// ends the process.
@c(LLVMFuzzerInitialize)
public func initialize(
  _ count: UnsafeMutablePointer<CInt>?, _ arguments: UnsafeMutableRawPointer?
) -> CInt {
  guard let folder = ProcessInfo.processInfo.environment["FUZZ_SEEDS"] else {
    _ = target
    return 0
  }
  do {
    let place = URL(filePath: folder)
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    for (index, seed) in target.seeds().enumerated() {
      try Data(seed).write(to: place.appending(path: "seed-\(index)"))
    }
  } catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(1)
  }
  exit(0)
}
