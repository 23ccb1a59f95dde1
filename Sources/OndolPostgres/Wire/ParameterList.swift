// The parameters of a statement in the server's binary form, in one buffer. A group of commits may
// be several megabytes. It is copied once here and once into the library's buffer.

internal import OndolEngine

/// The parameters of one call, in order.
struct ParameterList: Sendable {
  /// The position of each parameter's bytes; nil is null.
  private(set) var places: [Range<Int>?] = []
  private(set) var buffer: [UInt8] = []

  /// Types of elements, by the server's numbers.
  private enum ElementType: Int32 {
    case bytes = 17
    case int64 = 20
    case int32 = 23
  }

  init() {}

  /// The total size.
  var count: Int { buffer.count }

  mutating func add(_ value: Int32) { place { $0.appendBigEndian(value) } }

  mutating func add(_ value: Int64) { place { $0.appendBigEndian(value) } }

  mutating func add(_ value: Bool) { place { $0.append(value ? 1 : 0) } }

  mutating func add(_ value: [UInt8]) { place { $0 += value } }

  mutating func add(_ value: String) { place { $0 += value.utf8 } }

  mutating func addNull() { places.append(nil) }

  mutating func add(_ values: [[UInt8]?]) {
    place { buffer in
      Self.beginArray(of: .bytes, values.count, hasNulls: values.contains(nil), &buffer)
      for value in values {
        guard let value else {
          buffer.appendBigEndian(-1 as Int32)
          continue
        }
        buffer.appendBigEndian(Int32(truncatingIfNeeded: value.count))
        buffer += value
      }
    }
  }

  mutating func add(_ values: [Int32]) {
    place { buffer in
      Self.beginArray(of: .int32, values.count, hasNulls: false, &buffer)
      for value in values {
        buffer.appendBigEndian(4 as Int32)
        buffer.appendBigEndian(value)
      }
    }
  }

  mutating func add(_ values: [Int64]) {
    place { buffer in
      Self.beginArray(of: .int64, values.count, hasNulls: false, &buffer)
      for value in values {
        buffer.appendBigEndian(8 as Int32)
        buffer.appendBigEndian(value)
      }
    }
  }

  private mutating func place(_ body: (inout [UInt8]) -> Void) {
    let start = buffer.count
    body(&buffer)
    places.append(start..<buffer.count)
  }

  /// An array consists of the number of its dimensions, whether it has nulls, its type, the length
  /// and first index of each dimension, and then each element preceded by its length. An empty
  /// array has no dimension.
  private static func beginArray(
    of type: ElementType, _ count: Int, hasNulls: Bool, _ buffer: inout [UInt8]
  ) {
    buffer.appendBigEndian(count == 0 ? 0 : 1 as Int32)
    buffer.appendBigEndian(hasNulls ? 1 : 0 as Int32)
    buffer.appendBigEndian(type.rawValue)
    if count == 0 { return }
    buffer.appendBigEndian(Int32(truncatingIfNeeded: count))
    buffer.appendBigEndian(1 as Int32)
  }
}
