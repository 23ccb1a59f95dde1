// The two functions that libFuzzer calls.

import FuzzKit

@c(LLVMFuzzerTestOneInput)
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  unsafe fuzz(QueryTarget.self, start, count)
}

@c(LLVMFuzzerInitialize)
public func initialize(
  _ count: UnsafeMutablePointer<CInt>?, _ arguments: UnsafeMutableRawPointer?
) -> CInt {
  prepare(QueryTarget.self)
}
