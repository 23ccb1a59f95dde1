// JSON, CSV and the other texts that the tools write. Any bytes are read, or refused with a place
// inside them. Every form that keeps types preserves every value to the last bit, and cells, file
// names and moments come back as well.

import OndolEngine

@testable import Ondol
@testable import OndolJSON

enum JSONTarget: FuzzTarget {
  static let name = "json"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    switch input.below(7) {
    case 0: read(input.rest(), .extended)
    case 1: read(input.rest(), .plain)
    case 2: comeBack(input.value(depth: 5))
    case 3: repeatDocument(input.fields(depth: 4))
    case 4: input.flag() ? readCells(input.rest()) : writeCells(&input)
    case 6: readFile(&input)
    default: readNames(&input)
    }
  }

  // MARK: - JSON

  private static func read(_ bytes: [UInt8], _ dialect: JSONDialect) {
    do throws(JSONError) {
      comeBack(try JSONReader.read(bytes, dialect))
    } catch {
      demand(
        error.column >= 1 && error.column <= bytes.count + 1,
        "\(error.reason) at column \(error.column) of \(bytes.count)")
    }
    if let fields = try? JSONReader.readDocument(bytes.bytes, dialect) { repeatDocument(fields) }
  }

  private static func comeBack(_ value: Value) {
    for form in [JSONForm.relaxed, .canonical] {
      let text = JSONWriter.line(value, form)
      let again = try? JSONReader.read(Array(text.utf8))
      demand(
        again?.isIdentical(to: value) == true, "\(value) as \(text) comes back as \(again as Any)")
      let second = again.map { JSONWriter.line($0, form) }
      demand(second?.utf8.elementsEqual(text.utf8) == true, "\(text) becomes \(second as Any)")
      demand((try? JSONReader.read(Array(text.utf8), .plain)) != nil, "\(text) is no plain JSON")
    }
    demand(
      (try? JSONReader.read(Array(JSONWriter.line(value, .plain).utf8), .plain)) != nil,
      "\(value) is no JSON without types")
  }

  private static func repeatDocument(_ fields: [String: Value]) {
    for form in [JSONForm.relaxed, .canonical] {
      let text = JSONWriter.line(id: "a", fields, form)
      var again = try? JSONReader.readDocument(Array(text.utf8))
      let id = again?.removeValue(forKey: JSONWriter.documentIDName)
      // A field of that name existed, and it is undefined which of the two comes back.
      if fields[JSONWriter.documentIDName] != nil { return }
      demand(id?.string == "a", "\(text) has lost its id")
      demand(
        again?.isIdentical(to: fields) == true, "\(fields) as \(text) comes back as \(again as Any)"
      )
    }
  }

  // MARK: - Cells

  private static func readCells(_ bytes: [UInt8]) {
    var start = 0
    while let end = CSV.recordEnd(bytes, from: start) {
      demand(end > start && end <= bytes.count, "a record from \(start) to \(end)")
      start = end
    }
    guard let cells = try? CSV.cells(bytes.bytes) else { return }
    demand(!cells.isEmpty, "a record without cells")
    comeBack(cells)
  }

  private static func writeCells(_ input: inout FuzzInput) {
    comeBack(
      (0...input.below(5)).map { _ in
        let pieces = ["\"", ",", "\r", "\n", "a", "é", "\u{301}", "\"\"", " "]
        let text = (0..<input.below(6)).map { _ in input.pick(pieces) }.joined()
        return CSV.Cell(text, isQuoted: input.flag())
      })
  }

  private static func comeBack(_ cells: [CSV.Cell]) {
    let record = Array(CSV.record(cells).utf8)
    demand(
      CSV.recordEnd(record, from: 0) == record.count, "\(cells) end inside \(record.count) bytes")
    let again = try? CSV.cells(record.bytes)
    let isSame = again.map { again in
      again.count == cells.count
        && zip(again, cells).allSatisfy { $0.text.utf8.elementsEqual($1.text.utf8) }
    }
    demand(isSame == true, "\(cells) come back as \(again as Any)")
  }

  // MARK: - Names and moments

  private static func readNames(_ input: inout FuzzInput) {
    if let moment = try? Timestamp(microsecondsSince1970: Int64(bitPattern: input.edge())) {
      let text = Moment.text(moment)
      let again = (try? Moment.timestamp(text)).flatMap { $0 }
      demand(again == moment, "\(moment) as \(text) comes back as \(again as Any)")
    }
    let name = input.text()
    demand(
      FileNaming.decoded(FileNaming.encoded(name))?.utf8.elementsEqual(name.utf8) == true,
      "\(name.debugDescription) does not come back from the name of a file")
    let text = String(decoding: input.rest(), as: UTF8.self)
    _ = FileNaming.decoded(text)
    if let moment = (try? Moment.timestamp(text)).flatMap({ $0 }) {
      let again = (try? Moment.timestamp(Moment.text(moment))).flatMap { $0 }
      demand(again == moment, "\(text) is \(moment) and \(again as Any)")
    }
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    let texts = [
      #"{"a": 1, "b": [true, null, -1.5e3, "\u00e9\n"], "c": {"$date": "2026-05-01T09:30:00.5Z"}}"#,
      #"{"$numberDouble": "NaN"}"#, #"{"$literal": {"$date": 1}}"#, #"{"$geoPoint": [37.5, 127]}"#,
      #"{"$binary": {"base64": "AQID", "subType": "00"}}"#, #"{"$vector": [1, "NaN"]}"#,
      #"{"$reference": "users/alice"}"#, #"[9223372036854775807, 1.0, {"$numberLong": "5"}]"#,
    ]
    var chance = Chance(14)
    return texts.enumerated().map { [UInt8($0.offset % 2)] + $0.element.utf8 }
      + (2..<6).flatMap { kind in [40, 120].map { [UInt8(kind)] + chance.bytes($0) } }
      + [[6, 0, 0, 0, 2] + "[{\"a\":1},\n{\"a\":[]}]".utf8]
      + [[6, 1, 0, 1, 0] + "#\na;b\n1;2\n".utf8]
      + [[4, 1] + "a,\"b \"\"c\"\"\",,d\r\n".utf8, [5, 7, 7] + "2026-05-01T09:30:00+09:00".utf8]
  }
}
