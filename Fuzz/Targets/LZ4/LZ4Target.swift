// The code around LZ4. Any bytes are compressed and come back, or are reported as incompressible.
// Any bytes that claim to be compressed fill exactly the announced number of bytes, or are refused
// and leave their destination unchanged.

@testable import OndolEngine

enum LZ4Target: FuzzTarget {
  static let name = "lz4"

  /// More than LZ4 can produce from an input of the fuzzer's length.
  private static let longest = 1 << 20

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    if input.flag() {
      repeatRaw(&input)
    } else {
      let count = length(&input)
      decompress(input.rest(), to: count, expecting: nil)
    }
  }

  // MARK: - Round trips

  private static func repeatRaw(_ input: inout FuzzInput) {
    var raw: [UInt8] = []
    while !input.isSpent {
      // Runs and copies, which can be compressed.
      switch input.below(4) {
      case 0: raw += [UInt8](repeating: input.byte(), count: input.below(600))
      case 1: raw += raw.suffix(input.below(300))
      default: raw += input.take(input.below(64))
      }
      guard raw.count < longest else { break }
    }
    let before: [UInt8] = [7, 8, 9]
    var output = before
    let isCompressed = Compression.compress(raw.bytes, appendingTo: &output)
    demand(output.starts(with: before), "what was there has changed")
    guard isCompressed else { return demand(output == before, "something was appended") }
    let stored = Array(output.dropFirst(before.count))
    demand(
      stored.count < raw.count - raw.count / 8, "\(raw.count) bytes became \(stored.count)")
    demand(
      raw.count <= Compression.largestRaw(fromStored: stored.count),
      "\(stored.count) bytes cannot become \(raw.count)")
    decompress(stored, to: raw.count, expecting: raw)
    for other in [0, raw.count - 1, raw.count + 1, raw.count * 2] where other >= 0 {
      demand(!decompress(stored, to: other, expecting: nil), "\(other) bytes are not what it was")
    }
  }

  /// Decompresses in both ways, which must agree.
  @discardableResult
  private static func decompress(
    _ stored: [UInt8], to count: Int, expecting raw: [UInt8]?
  ) -> Bool {
    let before: [UInt8] = [1, 2]
    var appended = before
    let isAppended = Compression.decompress(stored.bytes, appending: count, to: &appended)
    demand(appended.starts(with: before), "what was there has changed")
    demand(
      appended.count == before.count + (isAppended ? count : 0),
      "\(appended.count) bytes for \(count)")
    var filled = [UInt8](repeating: 0, count: count)
    // Safe: the span is used only within the closure.
    let isFilled = unsafe filled.withUnsafeMutableBytes { buffer in
      var place = unsafe MutableRawSpan(_unsafeBytes: buffer)
      return Compression.decompress(stored.bytes, into: &place)
    }
    demand(isFilled == isAppended, "appending says \(isAppended), filling \(isFilled)")
    if isFilled {
      demand(filled == Array(appended.dropFirst(before.count)), "the two ways differ")
      demand(
        count <= Compression.largestRaw(fromStored: stored.count),
        "\(stored.count) bytes became \(count)")
    }
    if let raw { demand(isFilled && filled == raw, "\(raw.count) bytes do not come back") }
    return isFilled
  }

  private static func length(_ input: inout FuzzInput) -> Int {
    input.flag() ? input.below(1_024) : Int(truncatingIfNeeded: input.edge() % UInt64(longest))
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var chance = Chance(9)
    var stored: [UInt8] = []
    let raw = [UInt8]("to be or not to be, to be or not to be".utf8)
    _ = Compression.compress((raw + raw).bytes, appendingTo: &stored)
    let length = UInt8(2 * raw.count)
    return [[0, 1, length, 0] + stored, [1, 0, 65, 200, 1, 9, 1, 80]]
      + [20, 80, 300].map { [1] + chance.bytes($0) } + [[0] + chance.bytes(40)]
  }
}
