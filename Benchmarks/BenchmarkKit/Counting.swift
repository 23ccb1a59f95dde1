// Marks around what is to be counted, for a run in which not time is measured but what does not
// depend on the machine: allocations, instructions, calls of the system. A library that
// `Scripts/bench --counts` loads into the process takes them; without it they do nothing. What lies
// between two marks of a name is added up.

import Foundation
import OndolPlatform

package enum Counting {
  private typealias Begin = @convention(c) (UnsafePointer<CChar>) -> Void
  private typealias End = @convention(c) (UnsafePointer<CChar>, UInt64) -> Void

  /// The library's two functions, when it is loaded. Safe: they are declared so in
  /// Scripts/lib/counts.c.
  private static let marks: (begin: Begin, end: End)? = {
    guard let program = unsafe dlopen(nil, RTLD_NOW),
      let begin = unsafe dlsym(program, "counts_begin"),
      let end = unsafe dlsym(program, "counts_end")
    else { return nil }
    return unsafe (unsafeBitCast(begin, to: Begin.self), unsafeBitCast(end, to: End.self))
  }()

  /// Counts what `body` does, as so many operations of a workload.
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
