// What all fuzz targets share: how the fuzzer's call reaches a target, how a broken promise is
// told, and how the first inputs of its corpus are made. libFuzzer brings its own `main`, so a
// target is only the two functions that it calls.

import Foundation

/// One thing that is tried with any bytes.
package protocol FuzzTarget {
  /// Tries `input`. Whatever does not hold is told with `demand`.
  static func run(_ input: [UInt8])

  /// Inputs to begin from: sound ones, so that the fuzzer need not invent them. The same ones at
  /// each call.
  static func seeds() -> [[UInt8]]
}

/// Ends the process, which the fuzzer takes for a find, unless `condition` holds.
package func demand(
  _ condition: Bool, _ message: @autoclosure () -> String, line: UInt = #line
) {
  guard !condition else { return }
  FileHandle.standardError.write(Data("Line \(line): \(message())\n".utf8))
  preconditionFailure("a promise is broken")
}

/// What libFuzzer's call for one input comes to.
package func fuzz<Target: FuzzTarget>(
  _ target: Target.Type, _ start: UnsafePointer<UInt8>?, _ count: Int
) -> CInt {
  // Safe: libFuzzer gives `count` bytes that stay until we return.
  let bytes = unsafe UnsafeBufferPointer(start: start, count: count)
  target.run(unsafe Array(bytes))
  return 0
}

/// What libFuzzer's first call comes to. With `FUZZ_SEEDS` set to a folder, the target's seeds are
/// written there and the process ends.
package func prepare<Target: FuzzTarget>(_ target: Target.Type) -> CInt {
  guard let folder = ProcessInfo.processInfo.environment["FUZZ_SEEDS"] else { return 0 }
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
