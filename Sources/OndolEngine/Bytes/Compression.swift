// LZ4, and the rule for when it is worth its decoding time. Blocks are compressed on their way into
// a segment and decompressed once on their way into the cache, so only the ratio and the decoding
// speed matter.

internal import CLZ4

/// LZ4 blocks.
enum Compression {
  /// The most bytes that `stored` bytes can decompress to: 255 for each, plus a few for the last
  /// token.
  static func largestRaw(fromStored stored: Int) -> Int {
    stored * 255 + 64
  }

  /// Appends `raw` in compressed form and returns true. If that saves less than an eighth, it
  /// appends nothing and returns false.
  static func compress(_ raw: RawSpan, appendingTo output: inout [UInt8]) -> Bool {
    let limit = raw.byteCount - raw.byteCount / 8 - 1
    guard limit > 0, raw.byteCount <= 1 << 30 else { return false }
    let start = output.count
    output.append(contentsOf: repeatElement(0, count: limit))
    // Safe: LZ4 reads `raw` only and writes at most the `limit` bytes just appended.
    let length = unsafe raw.withUnsafeBytes { source in
      unsafe output.withUnsafeMutableBytes { target in
        unsafe LZ4_compress_default(
          source.baseAddress, target.baseAddress.map { unsafe $0 + start },
          Int32(truncatingIfNeeded: source.count), Int32(truncatingIfNeeded: limit))
      }
    }
    output.removeLast(limit - max(0, Int(length)))
    return length > 0
  }

  /// Fills all of `raw` from `stored`. Returns false if `stored` does not decompress to exactly
  /// that many bytes.
  static func decompress(_ stored: RawSpan, into raw: inout MutableRawSpan) -> Bool {
    unsafe raw.withUnsafeMutableBytes { target in unsafe decompress(stored, target) }
  }

  /// Appends the `count` bytes that `stored` decompresses to. If it does not, returns false and
  /// appends nothing.
  static func decompress(
    _ stored: RawSpan, appending count: Int, to output: inout [UInt8]
  ) -> Bool {
    guard count <= Int(Int32.max) else { return false }
    let start = output.count
    output.append(contentsOf: repeatElement(0, count: count))
    let isWhole = unsafe output.withUnsafeMutableBytes { bytes in
      unsafe decompress(stored, UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
    }
    if !isWhole { output.removeLast(count) }
    return isWhole
  }

  private static func decompress(
    _ stored: RawSpan, _ target: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard let source = Int32(exactly: stored.byteCount), let wanted = Int32(exactly: target.count)
    else { return false }
    // Safe: the decoder checks every length in hostile input against both buffers' ends.
    return unsafe stored.withUnsafeBytes { bytes in
      unsafe LZ4_decompress_safe(bytes.baseAddress, target.baseAddress, source, wanted) == wanted
    }
  }
}
