// KeyReader reads what KeyWriter wrote: whole components, truncated ones, stamped ones, and damaged
// ones, which it must refuse without reading elsewhere.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct KeyReaderTests {
  @Test(arguments: Seeds.first(2))
  func `Written keys are read back, in either direction`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<3_000 {
      let values = (0..<3).map { _ in samples.value() }
      let descending = (0..<3).map { _ in samples.random.oneIn(2) }
      let id = samples.text(maximumLength: 40)
      var writer = KeyWriter([1, 2])
      for (value, descending) in zip(values, descending) {
        writer.append(value, descending: descending)
      }
      writer.append(id: id, descending: descending[0])

      var reader = KeyReader(writer.bytes.bytes)
      var skipper = KeyReader(writer.bytes.bytes)
      try reader.skip(raw: 2)
      try skipper.skip(raw: 2)
      for (value, descending) in zip(values, descending) {
        let component = try reader.component(descending: descending)
        #expect(component == .value(value), "seed \(seed)")
        let isWhole = try skipper.skip(descending: descending)
        #expect(isWhole)
      }
      let read = try reader.id(descending: descending[0])
      #expect(read.utf8.elementsEqual(id.utf8), "seed \(seed)")
      let isAtEnd = reader.isAtEnd
      #expect(isAtEnd)
      let skippedID = try skipper.id(descending: descending[0])
      #expect(skippedID.utf8.elementsEqual(id.utf8), "seed \(seed)")
    }
  }

  @Test func `A whole number is read as an integer when it fits`() throws {
    let numbers: [(Value, Value)] = [
      (3.0, 3), (-0.0, 0), (.double(0x1p63), .double(0x1p63)), (.double(-0x1p63), .integer(.min)),
      (.integer(.max), .integer(.max)), (.double(1e300), .double(1e300)),
      (.integer(-9_007_199_254_740_993), .integer(-9_007_199_254_740_993)),
    ]
    for (value, expected) in numbers {
      var writer = KeyWriter()
      writer.append(value)
      var reader = KeyReader(writer.bytes.bytes)
      guard case .value(let read) = try reader.component() else { Issue.record("cut"); continue }
      #expect(read.isIdentical(to: expected), "\(value)")
    }
  }

  @Test func `A component is cut after 1024 bytes, and the reader knows`() throws {
    let limit = KeyCoding.maximumComponentLength
    for descending in [false, true] {
      // The tag and the end take three bytes.
      for (length, isCut) in [(limit - 3, false), (limit - 2, true), (5_000, true)] {
        var writer = KeyWriter()
        let text = String(repeating: "x", count: length)
        #expect(writer.append(.string(text), descending: descending) == isCut)
        writer.append(id: text, descending: descending)
        var reader = KeyReader(writer.bytes.bytes)
        let component = try reader.component(descending: descending)
        #expect(component == (isCut ? .cut : .value(.string(text))))
        let id = try reader.id(descending: descending)
        #expect(id == text)
        let isAtEnd = reader.isAtEnd
        #expect(isAtEnd)
      }
    }
  }

  @Test(arguments: Seeds.first(2))
  func `Cut components keep the order, and later ones are found`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    var keys: [(place: ReferencePlace, bytes: [UInt8], isCut: Bool)] = []
    for _ in 0..<150 {
      var value = samples.value(depth: 2)
      // Long values, so that the limit is inside every kind of value.
      let filler = Value.string(String(repeating: "f", count: 950 + samples.random.below(70)))
      value =
        samples.random.oneIn(2) ? .array([filler, value, value]) : .map(["a": filler, "b": value])
      var writer = KeyWriter()
      let isCut = writer.append(value)
      keys.append((ReferencePlace(value), writer.bytes, isCut))
      for descending in [false, true] {
        var row = KeyWriter()
        row.append(value, descending: descending)
        row.append(id: "document")
        var reader = KeyReader(row.bytes.bytes)
        let isWhole = try reader.skip(descending: descending)
        #expect(isWhole != isCut)
        let id = try reader.id()
        #expect(id == "document", "seed \(seed): \(value)")
        var second = KeyReader(row.bytes.bytes)
        let component = try second.component(descending: descending)
        #expect(component == (isCut ? .cut : .value(value)), "seed \(seed)")
      }
    }
    #expect(keys.contains { $0.isCut } && keys.contains { !$0.isCut })
    for left in keys {
      for right in keys {
        let found = order(left.bytes, right.bytes)
        let expected = left.place.compare(right.place).signum()
        #expect(found == expected || (found == 0 && left.isCut && right.isCut), "seed \(seed)")
      }
    }
  }

  @Test func `The commit's time is stamped into eight bytes, or cut off as a whole`() throws {
    for descending in [false, true] {
      for filler in stride(from: 990, through: 1_030, by: 1) {
        let text = Value.string(String(repeating: "f", count: filler))
        let moment = Timestamp(unchecked: 1_700_000_000_123_456)
        var pending = KeyWriter([1, 2, 3])
        pending.append(.array([text, .pendingTimestamp, "end"]), descending: descending)
        var known = KeyWriter([1, 2, 3])
        known.append(.array([text, .timestamp(moment), "end"]), descending: descending)
        let stamped = Self.stamped(pending.bytes, pending.stamps, moment)
        #expect(stamped == known.bytes, "\(filler)")
        #expect(known.stamps.isEmpty)

        var reader = KeyReader(known.bytes.bytes)
        try reader.skip(raw: 3)
        try reader.skip(descending: descending)
        let isAtEnd = reader.isAtEnd
        #expect(isAtEnd, "\(filler)")
      }
    }
  }

  @Test func `A pending timestamp is noted with its form`() {
    var writer = KeyWriter([9])
    writer.append("x")
    writer.append(.pendingTimestamp)
    writer.append(.map(["a": .pendingTimestamp]), descending: true)
    #expect(writer.stamps.map(\.offset) == [6, 20])
    #expect(writer.stamps.map(\.form) == [.orderedTime, .descendingTime])
  }

  @Test func `A pending timestamp sorts after every other`() {
    #expect(ValueOrder.compare(.pendingTimestamp, .timestamp(.maximum)) > 0)
  }

  @Test(arguments: Seeds.first(2))
  func `Damaged keys throw or read as something, and nothing worse`(seed: UInt64) {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<4_000 {
      var writer = KeyWriter()
      writer.append(samples.value())
      writer.append(samples.value(), descending: true)
      var bytes = writer.bytes
      for _ in 0...samples.random.below(3) {
        bytes[samples.random.below(bytes.count)] ^= 1 << UInt8(samples.random.below(8))
      }
      bytes.removeLast(samples.random.below(bytes.count))
      var reader = KeyReader(bytes.bytes)
      var skipper = KeyReader(bytes.bytes)
      do {
        for descending in [false, true] {
          _ = try reader.component(descending: descending)
          try skipper.skip(descending: descending)
        }
      } catch {
        #expect(error.offset <= bytes.count)
      }
    }
  }

  @Test func `Values are read as deep as they may be nested, and no deeper`() throws {
    for (depth, isReadable) in [
      (KeyCoding.maximumDepth, true), (KeyCoding.maximumDepth + 1, false),
    ] {
      let bytes = [UInt8](repeating: 0x58, count: depth) + [UInt8](repeating: 0x05, count: depth)
      var reader = KeyReader(bytes.bytes)
      var skipper = KeyReader(bytes.bytes)
      let isRead = (try? reader.component()) != nil
      let isSkipped = (try? skipper.skip()) != nil
      #expect(isRead == isReadable && isSkipped == isReadable)
    }
  }

  private static func stamped(
    _ key: [UInt8], _ stamps: [(offset: Int, form: StampForm)], _ moment: Timestamp
  ) -> [UInt8] {
    var bytes = key
    for stamp in stamps {
      var body: [UInt8] = []
      body.appendBigEndian(UInt64(bitPattern: moment.microsecondsSince1970) ^ 1 << 63)
      for (index, octet) in body.enumerated() {
        bytes[stamp.offset + index] = stamp.form == .descendingTime ? ~octet : octet
      }
    }
    return bytes
  }
}
