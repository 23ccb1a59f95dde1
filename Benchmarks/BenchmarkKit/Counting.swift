// Marks around work to be counted, for a run that measures figures independent of the machine
// instead of time: allocations, instructions, system calls. A library that `Scripts/bench --counts`
// loads into the process receives the marks; without it they do nothing. The counts between two
// marks of a name are added up.

import Foundation
import OndolPlatform

package enum Counting {
  private typealias Begin = @convention(c) (UnsafePointer<CChar>) -> Void
  private typealias End = @convention(c) (UnsafePointer<CChar>, UInt64) -> Void

  /// The library's two functions, if it is loaded. Safe: Scripts/lib/counts.c declares them with
  /// these types.
  private static let marks: (begin: Begin, end: End)? = {
    guard let program = unsafe dlopen(nil, RTLD_NOW),
      let begin = unsafe dlsym(program, "counts_begin"),
      let end = unsafe dlsym(program, "counts_end")
    else { return nil }
    return unsafe (unsafeBitCast(begin, to: Begin.self), unsafeBitCast(end, to: End.self))
  }()

  /// Counts `body` as a number of operations of a workload.
  package static func count<Result>(
    _ workload: String, operations: Int, _ body: () async throws -> Result
  ) async rethrows -> Result {
    guard let marks = unsafe marks else { return try await body() }
    unsafe marks.begin(workload)
    let result = try await body()
    unsafe marks.end(workload, UInt64(operations))
    return result
  }
}
