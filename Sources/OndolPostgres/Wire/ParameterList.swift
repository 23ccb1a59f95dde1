// What a statement is given, in the server's binary form and in one buffer: a group of commits is
// megabytes now and then, and is copied once here and once into the library's buffer.

internal import OndolEngine

/// The parameters of one call, in order.
struct ParameterList: Sendable {
  /// Where the bytes of each are; nil is null.
  private(set) var places: [Range<Int>?] = []
  private(set) var buffer: [UInt8] = []

  /// Types of elements, by the numbers the server has for them.
  private enum ElementType: Int32 {
    case bytes = 17
    case int64 = 20
    case int32 = 23
  }

  init() {}

  /// Bytes of all.
  var count: Int { buffer.count }

  mutating func add(_ value: Int32) { place { Self.append(value, to: &$0) } }

  mutating func add(_ value: Int64) { place { Self.append(value, to: &$0) } }

  mutating func add(_ value: Bool) { place { $0.append(value ? 1 : 0) } }

  mutating func add(_ value: [UInt8]) { place { $0 += value } }

  mutating func add(_ value: String) { place { $0 += value.utf8 } }

  mutating func addNull() { places.append(nil) }

  mutating func add(_ values: [[UInt8]?]) {
    place { buffer in
      Self.beginArray(of: .bytes, values.count, hasNulls: values.contains(nil), &buffer)
      for value in values {
        guard let value else {
          Self.append(-1 as Int32, to: &buffer)
          continue
        }
        Self.append(Int32(truncatingIfNeeded: value.count), to: &buffer)
        buffer += value
      }
    }
  }

  mutating func add(_ values: [Int32]) {
    place { buffer in
      Self.beginArray(of: .int32, values.count, hasNulls: false, &buffer)
      for value in values {
        Self.append(4 as Int32, to: &buffer)
        Self.append(value, to: &buffer)
      }
    }
  }

  mutating func add(_ values: [Int64]) {
    place { buffer in
      Self.beginArray(of: .int64, values.count, hasNulls: false, &buffer)
      for value in values {
        Self.append(8 as Int32, to: &buffer)
        Self.append(value, to: &buffer)
      }
    }
  }

  private mutating func place(_ body: (inout [UInt8]) -> Void) {
    let start = buffer.count
    body(&buffer)
    places.append(start..<buffer.count)
  }

  /// An array is its dimensions, whether it has nulls, the type, and for each dimension its length
  /// and its first index; then each element with its length in front. An empty one has none.
  private static func beginArray(
    of type: ElementType, _ count: Int, hasNulls: Bool, _ buffer: inout [UInt8]
  ) {
    append(count == 0 ? 0 : 1 as Int32, to: &buffer)
    append(hasNulls ? 1 : 0 as Int32, to: &buffer)
    append(type.rawValue, to: &buffer)
    if count == 0 { return }
    append(Int32(truncatingIfNeeded: count), to: &buffer)
    append(1 as Int32, to: &buffer)
  }

  // Not by the generic function, which is another module's and is not specialised here: it took a
  // twentieth of a get.

  private static func append(_ value: Int32, to buffer: inout [UInt8]) {
    for shift in stride(from: 24 as Int32, through: 0, by: -8) {
      buffer.append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }

  private static func append(_ value: Int64, to buffer: inout [UInt8]) {
    append(Int32(truncatingIfNeeded: value >> 32), to: &buffer)
    append(Int32(truncatingIfNeeded: value), to: &buffer)
  }
}
