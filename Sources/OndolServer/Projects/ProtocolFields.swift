// The fields of Protocol Buffers' messages, one after the other. The export's messages are of the
// second version, with groups, and there are few of them, so they are read here without generated
// code, and every mistake has its offset.

#if Server
  import Ondol

  /// A message that is no message.
  struct ProtocolFault: Error {
    /// Where, in the record.
    let offset: Int
    let reason: String
  }

  /// A field's content.
  enum ProtocolField {
    case number(UInt64)
    case eight(UInt64)
    case four(UInt32)
    /// A text, bytes or a message.
    case bytes(ArraySlice<UInt8>)
    /// The fields of a group.
    case group(ArraySlice<UInt8>)
  }

  /// Reads the fields of a message. The indexes of its bytes are offsets in the record.
  struct ProtocolFields {
    /// The deepest nesting of groups.
    private static let mostGroups = 8

    private let bytes: ArraySlice<UInt8>
    private(set) var position: Int

    init(_ bytes: ArraySlice<UInt8>) {
      self.bytes = bytes
      position = bytes.startIndex
    }

    func fault(_ reason: String) -> ProtocolFault {
      ProtocolFault(offset: position, reason: reason)
    }

    /// The next field; nil at the end.
    mutating func next() throws(ProtocolFault) -> (number: Int, field: ProtocolField)? {
      guard position < bytes.endIndex else { return nil }
      let (number, type) = try tag()
      guard type == 3 else { return (number, try simple(type)) }
      let start = position
      var open = [number]
      while let last = open.last {
        let end = position
        let (number, type) = try tag()
        if type == 4 {
          guard number == last else { throw fault("a group ends that has not begun") }
          open.removeLast()
          if open.isEmpty { return (number, .group(bytes[start..<end])) }
        } else if type == 3 {
          guard open.count < Self.mostGroups else { throw fault("groups are nested too deep") }
          open.append(number)
        } else {
          _ = try simple(type)
        }
      }
      throw fault("a group has no end")
    }

    private mutating func tag() throws(ProtocolFault) -> (number: Int, type: UInt8) {
      let tag = try varint()
      guard let number = Int(exactly: tag >> 3), (1..<1 << 29).contains(number) else {
        throw fault("a field has no number")
      }
      return (number, UInt8(tag & 7))
    }

    private mutating func simple(_ type: UInt8) throws(ProtocolFault) -> ProtocolField {
      switch type {
      case 0: return .number(try varint())
      case 1: return .eight(try fixed(8))
      case 2:
        let length = try varint()
        guard length <= UInt64(bytes.endIndex - position) else {
          throw fault("a field goes past the end of its message")
        }
        let start = position
        position += Int(length)
        return .bytes(bytes[start..<position])
      case 5: return .four(UInt32(truncatingIfNeeded: try fixed(4)))
      default: throw fault("a field has the unknown type \(type)")
      }
    }

    private mutating func fixed(_ count: Int) throws(ProtocolFault) -> UInt64 {
      guard count <= bytes.endIndex - position else {
        throw fault("a field goes past the end of its message")
      }
      defer { position += count }
      return bytes[position..<position + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func varint() throws(ProtocolFault) -> UInt64 {
      var number: UInt64 = 0
      for shift in stride(from: UInt64(0), to: 64, by: 7) {
        guard position < bytes.endIndex else { throw fault("the message ends within a number") }
        let byte = bytes[position]
        position += 1
        guard shift < 63 || byte < 2 else { break }
        number |= UInt64(byte & 0x7F) << shift
        if byte < 0x80 { return number }
      }
      throw fault("a number has more than 64 bits")
    }
  }

  /// Writes the fields of a message.
  struct ProtocolWriter {
    private(set) var bytes: [UInt8] = []

    private mutating func varint(_ number: UInt64) {
      var rest = number
      while rest >= 0x80 {
        bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
        rest >>= 7
      }
      bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    private mutating func tag(_ number: Int, _ type: UInt64) { varint(UInt64(number) << 3 | type) }

    mutating func write(_ number: Int, _ value: Int64) {
      tag(number, 0)
      varint(UInt64(bitPattern: value))
    }

    mutating func write(_ number: Int, _ value: Double) {
      tag(number, 1)
      for shift in stride(from: 0, to: 64, by: 8) {
        bytes.append(UInt8(truncatingIfNeeded: value.bitPattern >> shift))
      }
    }

    mutating func write(_ number: Int, _ value: some Collection<UInt8>) {
      tag(number, 2)
      varint(UInt64(value.count))
      bytes += value
    }

    mutating func write(_ number: Int, _ text: String) { write(number, Array(text.utf8)) }

    /// A message in a field.
    mutating func message(_ number: Int, _ body: (inout ProtocolWriter) -> Void) {
      var inner = ProtocolWriter()
      body(&inner)
      write(number, inner.bytes)
    }

    mutating func group(_ number: Int, _ body: (inout ProtocolWriter) -> Void) {
      tag(number, 3)
      body(&self)
      tag(number, 4)
    }
  }
#endif
