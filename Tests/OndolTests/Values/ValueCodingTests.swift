// Documents as bytes: what comes back, what is found in place, what the sequencer fills in, and
// what damaged or hostile bytes must not do.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ValueCodingTests {
  /// The row with its stamps filled in, as the sequencer does.
  private static func row(
    _ fields: [String: Value], _ symbols: inout SymbolTable,
    createTime: Timestamp? = nil, sequence: UInt64 = 7, time: Int64 = 1_000
  ) throws -> [UInt8] {
    let document = try ValueEncoder.document(fields, createTime: createTime, symbols: &symbols)
    var bytes = document.bytes
    for stamp in document.stamps {
      switch stamp.form {
      case .sequence: bytes.overwriteLittleEndian(sequence, at: stamp.offset)
      case .time: bytes.overwriteLittleEndian(time, at: stamp.offset)
      case .orderedTime, .descendingTime: Issue.record("not in documents")
      }
    }
    return bytes
  }

  private static func decoded(_ row: [UInt8], _ symbols: SymbolTable) throws -> [String: Value] {
    try DocumentView(row.bytes).fields(symbols)
  }

  @Test(arguments: Seeds.first(3))
  func `Documents come back to the last bit`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    var symbols = SymbolTable()
    for _ in 0..<500 {
      let fields = samples.fields(depth: 4, maximumCount: 12)
      let row = try Self.row(fields, &symbols)
      #expect(try Self.decoded(row, symbols).isIdentical(to: fields), "seed \(seed): \(fields)")
    }
  }

  @Test(arguments: Seeds.first(2))
  func `A field is found without its siblings`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    var symbols = SymbolTable()
    for _ in 0..<300 {
      let fields = samples.fields(depth: 3, maximumCount: 40)
      let row = try Self.row(fields, &symbols)
      let view = try DocumentView(row.bytes)
      try check(fields, at: [], in: view, symbols)
      for missing in [["x"], ["n", "n"], ["nab", "nope"]] where fields[missing[0]] == nil {
        let found = try Self.value(missing, in: view, symbols)
        #expect(found == nil)
      }
    }
  }

  private func check(
    _ fields: [String: Value], at path: [String], in view: borrowing DocumentView,
    _ symbols: SymbolTable
  ) throws {
    for (name, value) in fields {
      let path = path + [name]
      let found = try Self.value(path, in: view, symbols)
      #expect(found?.isIdentical(to: value) == true, "\(path)")
      if let inner = value.map { try check(inner, at: path, in: view, symbols) }
    }
  }

  private static func value(
    _ path: [String], in view: borrowing DocumentView, _ symbols: SymbolTable
  ) throws -> Value? {
    let resolved = ResolvedPath(try FieldPath(path).names(), in: symbols)
    guard let field = try view.field(resolved) else { return nil }
    return try field.value(symbols)
  }

  @Test func `A field compares with a value as its own value does`() throws {
    var samples = ValueSamples(seed: 5)
    var symbols = SymbolTable()
    for _ in 0..<1_000 {
      let value = samples.value()
      let other = samples.random.oneIn(2) ? samples.variant(of: value) : samples.value()
      let row = try Self.row(["v": value, "w": 1], &symbols)
      let view = try DocumentView(row.bytes)
      let path = ResolvedPath(["v"], in: symbols)
      guard let field = try view.field(path) else { Issue.record("no field"); return }
      let order = try field.compare(other, symbols)
      #expect(order.signum() == ValueOrder.compare(value, other).signum())
    }
  }

  @Test func `The envelope carries the version and both times`() throws {
    var symbols = SymbolTable()
    let created = try ValueEncoder.document([:], createTime: nil, symbols: &symbols)
    #expect(created.stamps.map(\.offset) == [0, 8, 16])
    #expect(created.stamps.map(\.form) == [.sequence, .time, .time])
    let row = try Self.row(
      [:], &symbols, createTime: Timestamp(unchecked: 5), sequence: 9, time: 6)
    let view = try DocumentView(row.bytes)
    let envelope = (view.version.rawValue, view.updateTime, view.createTime)
    #expect(envelope == (9, Timestamp(unchecked: 6), Timestamp(unchecked: 5)))
    #expect(row.count == 28)
  }

  @Test func `Pending timestamps are stamped wherever they are, also in wide maps`() throws {
    var symbols = SymbolTable()
    let long = Value.string(String(repeating: "x", count: 70_000))
    let moment = Timestamp(unchecked: 77)
    func fields(_ time: Value) -> [String: Value] {
      ["a": time, "b": ["c": [1, time, ["d": time]]], "e": long, "f": time, "g": ["h": time]]
    }
    let row = try Self.row(fields(.pendingTimestamp), &symbols, time: 77)
    let read = try Self.decoded(row, symbols)
    #expect(read.isIdentical(to: fields(.timestamp(moment))))
    let resolved = Value.map(fields(.pendingTimestamp)).resolvingPending(with: moment)
    #expect(resolved.isIdentical(to: .map(read)))
  }

  @Test func `Containers become wide where they must`() throws {
    var symbols = SymbolTable()
    let text = Value.string(String(repeating: "x", count: 9_000))
    var samples = ValueSamples(seed: 6)
    for count in [1, 6, 7, 8, 20] {
      let texts = Value.array(Array(repeating: text, count: count))
      let fields: [String: Value] = [
        "texts": texts, "nulls": .array(Array(repeating: nil, count: 31_000)), "short": 1,
        "map": .map(Dictionary(uniqueKeysWithValues: (0..<count).map { ("k\($0)", text) })),
        "other": samples.value(),
      ]
      let row = try Self.row(fields, &symbols)
      #expect(try Self.decoded(row, symbols).isIdentical(to: fields), "\(count)")
      let view = try DocumentView(row.bytes)
      let found = try Self.value(["map", "k0"], in: view, symbols)
      #expect(found == text)
    }
  }

  @Test func `When the table of names is full, maps keep their own names`() throws {
    var symbols = try SymbolTable(names: (0..<SymbolTable.maximumCount - 1).map { "f\($0)" })
    var samples = ValueSamples(seed: 7)
    for _ in 0..<20 {
      var fields: [String: Value] = ["f3": 1, "map": .map(samples.fields(depth: 2))]
      for index in 0..<samples.random.below(40) {
        fields["new\(index)"] = samples.value()
      }
      fields["long"] = .string(String(repeating: "y", count: samples.random.below(80_000)))
      let row = try Self.row(fields, &symbols)
      #expect(try Self.decoded(row, symbols).isIdentical(to: fields))
      try check(fields, at: [], in: DocumentView(row.bytes), symbols)
      let missing = try Self.value(["newer"], in: DocumentView(row.bytes), symbols)
      #expect(missing == nil)
    }
    #expect(symbols.count == SymbolTable.maximumCount)
  }

  @Test func `Names keep their numbers, and equal only to the byte`() throws {
    var symbols = SymbolTable()
    _ = try Self.row(["b": 1], &symbols)
    _ = try Self.row(["a": 1, "b": ["é": 1]], &symbols)
    #expect(symbols.symbol("b") == 0 && symbols.count == 3)
    _ = try Self.row(["e\u{301}": 1], &symbols)
    #expect(symbols.count == 4)
    #expect(symbols.name(9) == nil)
    #expect(throws: MalformedBytes.self) { try SymbolTable(names: ["a", "a"]) }
    let copy = try SymbolTable(names: symbols.names)
    #expect(symbols.names.allSatisfy { copy.symbol($0) == symbols.symbol($0) })
  }

  @Test func `New names get their numbers in their own order, in every run`() throws {
    var symbols = SymbolTable()
    let names = (0..<20).map { "n\($0)" }
    _ = try Self.row(
      Dictionary(uniqueKeysWithValues: names.map { ($0, ["z": 1, "y": 2]) }), &symbols)
    #expect(symbols.names == names.sorted() + ["y", "z"])
  }

  @Test func `An unstorable value is refused with its field, and the table survives`() throws {
    var symbols = SymbolTable()
    var deep: Value = 1
    for _ in 0..<ValueCoding.maximumDepth { deep = ["d": deep] }
    let refused: [([String: Value], DatabaseError.Code, String?)] = [
      (["": 1], .invalidArgument, "``"), (["a": ["__x__": 1]], .invalidArgument, "a.__x__"),
      (["a": deep], .invalidArgument, nil),
      (["a": .bytes([UInt8](repeating: 0, count: 17 << 20))], .resourceExhausted, nil),
    ]
    for (fields, code, field) in refused {
      do throws(DatabaseError) {
        _ = try ValueEncoder.document(fields, createTime: nil, symbols: &symbols)
        Issue.record("\(field ?? "") was taken")
      } catch {
        #expect(error.code == code)
        if let field { #expect(error.field == field) }
      }
    }
    #expect(symbols.symbol("a") != nil)
    #expect(throws: Never.self) { try Self.row(["a": deep["d"] ?? nil], &symbols) }
  }

  @Test(arguments: Seeds.first(3))
  func `Damaged documents throw or read as something, and nothing worse`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    var symbols = SymbolTable()
    for _ in 0..<300 {
      let fields = samples.fields(depth: 3, maximumCount: 10)
      let row = try Self.row(fields, &symbols)
      let paths =
        fields.keys.map { ResolvedPath([$0, "nab"], in: symbols) }
        + fields.keys.map { ResolvedPath([$0], in: symbols) }
      for _ in 0..<10 {
        Self.read(Self.damaged(row, &samples.random), paths, symbols)
      }
      Self.read(Array(row.dropLast(samples.random.below(row.count))), paths, symbols)
    }
  }

  private static func damaged(_ row: [UInt8], _ random: inout SeededNumbers) -> [UInt8] {
    var bytes = row
    for _ in 0...random.below(4) {
      // Mostly after the envelope, where the tables are.
      let offset = min(
        bytes.count - 1, random.oneIn(8) ? random.below(24) : 24 + random.below(bytes.count - 24))
      if random.oneIn(2) {
        bytes[offset] ^= 1 << UInt8(random.below(8))
      } else {
        bytes[offset] = UInt8(random.below(256))
      }
    }
    return bytes
  }

  private static func read(_ row: [UInt8], _ paths: [ResolvedPath], _ symbols: SymbolTable) {
    do throws(MalformedBytes) {
      let view = try DocumentView(row.bytes)
      for path in paths {
        do throws(MalformedBytes) {
          if let field = try view.field(path) {
            _ = try field.compare("x", symbols)
            _ = try field.value(symbols)
          }
        } catch {
          #expect(error.offset <= row.count, "\(error)")
        }
      }
      _ = try view.fields(symbols)
    } catch {
      #expect(error.offset <= row.count, "\(error)")
    }
  }

  @Test func `Tables that lie are refused`() throws {
    var symbols = SymbolTable()
    let good = try Self.row(["a": "text", "b": ["c": 300]], &symbols)
    #expect(throws: Never.self) { try Self.decoded(good, symbols) }
    let map = ValueCoding.envelopeLength
    let changes: [(String, (inout [UInt8]) -> Void)] = [
      ("an unknown table", { $0[map] = 0xf0 }),
      ("both kinds of symbols", { $0[map] = 0xe6 }),
      ("an array", { $0[map] = 0xe8 }),
      ("a huge count", { $0[map + 3] = 0xff }),
      ("symbols out of order", { $0.swapAt(map + 4, map + 5) }),
      ("an unknown symbol", { $0[map + 5] = 200 }),
      ("two slots with one value", { $0[map + 8] = $0[map + 6] }),
      ("a slot that points at the header", { $0[map + 6] = 0 }),
      ("a slot without meaning", { $0.overwriteLittleEndian(UInt16(0xf003), at: map + 6) }),
      ("bytes behind the fields", { $0.append(0) }),
      ("no end", { $0.removeLast() }),
      ("a text that is not UTF-8", { $0[map + 12] = 0xff }),
      ("a time out of range", { $0.overwriteLittleEndian(Int64.max, at: 8) }),
    ]
    for (name, change) in changes {
      var bytes = good
      change(&bytes)
      #expect(throws: MalformedBytes.self, "\(name)") { try Self.decoded(bytes, symbols) }
    }
  }

  @Test func `Values within values without end are refused`() {
    // Arrays of one element, each directly after the header of the one before.
    var row = [UInt8](repeating: 0, count: 24) + [0xe2, 0, 1, 0, 0, 7, 0]
    for _ in 0..<5_000 {
      row += [0xe8, 0, 1, 0, 6, 0]
    }
    #expect(throws: MalformedBytes.self) {
      try Self.decoded(row, try SymbolTable(names: ["a"]))
    }
  }

  @Test func `Values take as many bytes as the guide to sizes tells`() throws {
    var symbols = try SymbolTable(names: ["a", "b"])
    let digest = try #require(BlobDigest(bytes: [UInt8](repeating: 7, count: 32)))
    let sizes: [(Value, Int)] = [
      (nil, 0), (true, 0), (-1_024, 0), (1_023, 0), (-1_025, 3), (1_024, 3), (32_767, 3),
      (32_768, 5), (.integer(1 << 31), 9), (.integer(.min), 9), (0.5, 5), (0.1, 9),
      (.timestamp(.maximum), 9), ("", 2), ("Lamp", 2 + 4),
      (.string(String(repeating: "x", count: 200)), 3 + 200), (.bytes([1, 2]), 2 + 2),
      (.reference(try DocumentPath("c/d")), 2 + 3),
      (.geoPoint(try GeoPoint(latitude: 1, longitude: 2)), 17), (.vector([1, 2, 3]), 2 + 3 * 8),
      (.blob(try BlobReference(digest: digest, length: 3)), 42), ([:], 4), (["b": nil], 4 + 3),
      ([], 4), ([nil, true, 5], 4 + 3 * 2),
    ]
    let document = try Self.row([:], &symbols)
    #expect(document.count == 28)
    for (value, size) in sizes {
      #expect(try Self.row(["a": value], &symbols).count == 28 + 3 + size, "\(value)")
    }
  }

  @Test func `The bytes of a document are those written down`() throws {
    var symbols = try SymbolTable(names: ["name", "price", "tags"])
    let document = try ValueEncoder.document(
      ["name": "Lamp", "price": 3_000, "tags": [1, nil, 0.5]],
      createTime: Timestamp(unchecked: 2), symbols: &symbols)
    #expect(
      document.bytes == [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
        0xe2, 0, 3, 0, 0, 1, 2, 13, 0, 19, 0, 22, 0,
        0x28, 4, 0x4c, 0x61, 0x6d, 0x70,
        0x10, 0xb8, 0x0b,
        0xe8, 0, 3, 0, 0x01, 0xf8, 0x00, 0xf0, 10, 0, 0x19, 0, 0, 0, 0x3f,
      ])
  }
}
