// `ondol export` returns what `ondol import` took in: files of the test's own of each form, and
// tables and lists that many machines have.

import Foundation
import Ondol
import OndolEngine
import OndolJSON
import Testing

@Suite struct `What the ondol program exports` {
  let scratch: ScratchDirectory
  let shop: String

  init() throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
  }

  private func write(_ name: String, _ text: String) throws -> String {
    let path = scratch.path(name)
    try Data(text.utf8).write(to: URL(filePath: path))
    return path
  }

  /// Returns the exported file.
  private func exported(
    _ file: String, _ options: [String], as back: [String]
  ) async throws -> String {
    let first = try await scratch.ondol(["import", shop, file, "--into", "t"] + options)
    #expect(first.status == 0, "\(first.messages)")
    let second = try await scratch.ondol(["export", shop, "t", "-o", "-"] + back)
    #expect(second.status == 0, "\(second.messages)")
    _ = try await scratch.ondol("rmcoll", shop, "t", "--yes")
    return second.output
  }

  /// The values of an array in the order of their texts, because they have none of their own.
  private func sorted(_ text: String, _ names: String...) throws -> [String] {
    var value = try JSONReader.read(Array(text.utf8), .plain)
    for name in names { value = try #require(value.map?[name]) }
    return try #require(value.array).map { JSONWriter.line($0) }.sorted()
  }

  /// The records of a table in the order of their texts.
  private func records(_ text: String, _ form: CSV.Form = CSV.Form()) throws -> [[String]] {
    let bytes = Array(text.utf8)
    var records: [[String]] = []
    var start = 0
    while start < bytes.count {
      let end = CSV.recordEnd(bytes, from: start, form) ?? bytes.count
      let record = Array(bytes[start..<end])
      start = end
      if form.comment.isEmpty || !record.starts(with: form.comment) {
        records.append(try CSV.cells(record.bytes, form).map(\.text))
      }
    }
    return records.sorted { $0.lexicographicallyPrecedes($1) }
  }

  // MARK: - Files of the test's own

  private static let objects = [
    #"{"a":1,"b":[true,null,-1.5,"x\ny"],"c":{"d":{},"$e":[1]}}"#, #"{"a":"1","é":"[{"}"#, "{}",
  ]

  @Test func `JSON of every layout comes back`() async throws {
    let array = "[" + Self.objects.joined(separator: ",\n") + "]"
    let expected = try sorted(array)
    let plain = ["--no-ids", "--format", "json"]
    let options = ["--plain"]
    #expect(try sorted(await exported(try write("a.json", array), options, as: plain)) == expected)
    let lines = Self.objects.joined(separator: "\n")
    #expect(try sorted(await exported(try write("b.jsonl", lines), options, as: plain)) == expected)
    let held = try await exported(
      try write("c.json", "{\"x\":{\"rows\":\(array)}}"), options + ["--at", "x.rows"],
      as: plain + ["--at", "x.rows"])
    #expect(try sorted(held, "x", "rows") == expected)
    let back = try await exported(
      try write("d.json", array), options, as: ["--no-ids", "--format", "jsonl"])
    #expect(try sorted("[" + back.split(separator: "\n").joined(separator: ",") + "]") == expected)
    let nothing = try await exported(
      try write("e.json", "[{\"__name__\":\"a\"}]"), options, as: ["--format", "json"])
    #expect(nothing == "[\n{\"__name__\":\"a\"}\n]\n")
  }

  @Test(arguments: [(",", "\r\n"), (";", "\n"), ("\t", "\n"), ("|", "\r")])
  func `Tables come back with their columns in order`(
    delimiter: String, lineBreak: String
  ) async throws {
    let rows = [
      ["z", "id", "a"], ["1", "1", "x,y;z|\t"], ["", "2", "a\"b\(lineBreak)c"], ["é", "3", " "],
    ]
    let byte = try #require(delimiter.utf8.first)
    let text = rows.map { row in
      CSV.record(row.map { CSV.Cell($0) }, delimiter: byte, lineBreak: lineBreak)
    }
    .joined()
    let back = try await exported(
      try write("t", text), ["--id-field", "id"],
      as: [
        "--format", "csv", "--no-ids", "--columns", "z,id,a", "--delimiter",
        delimiter == "\t" ? "tab" : delimiter,
      ])
    let sorted = rows.sorted { $0.lexicographicallyPrecedes($1) }
    #expect(try records(back, CSV.Form(delimiter: byte)) == sorted)
  }

  @Test func `A column that is not asked for is named`() async throws {
    _ = try await scratch.ondol(
      "import", shop, "-", "--into", "t", input: #"{"__name__":"a","x":1,"y":2}"#)
    let result = try await scratch.ondol(
      "export", shop, "t", "-o", "-", "--format", "csv", "--columns", "y,z", "--no-header")
    #expect(result.output == "a,2,\r\n")
    #expect(result.messages.contains("x: left out"), "\(result.messages)")
  }

  // MARK: - GeoJSON

  private static func collection(_ geometries: [String]) -> String {
    let features = geometries.enumerated().map { index, geometry in
      #"{"type":"Feature","id":"f\#(index)","properties":{"n":\#(index),"of":["a"]},"#
        + #""geometry":\#(geometry)}"#
    }
    return "{\"type\":\"FeatureCollection\",\"features\":[\n\(features.joined(separator: ",\n"))]}"
  }

  private func checkComesBack(_ geometries: [String]) async throws {
    let text = Self.collection(geometries)
    let back = try await exported(
      try write("f.geojson", text), ["--at", "features", "--id-field", "id"],
      as: ["--format", "geojson"])
    #expect(try sorted(back, "features") == sorted(text, "features"))
    #expect(back.hasPrefix("{\"type\":\"FeatureCollection\","))
  }

  @Test func `Features come back`() async throws {
    try await checkComesBack([
      #"{"type":"Point","coordinates":[127.0,37.5]}"#,
      #"{"type":"Point","coordinates":[-0.25,51.5,12.0]}"#, "null",
      #"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1.0,2.0]}]}"#,
    ])
  }

  /// Whether an array can contain an array.
  private static func storesNestedArrays() async throws -> Bool {
    let scratch = try ScratchDirectory()
    let database = try await Database.open(at: scratch.path("nested.ondol"))
    let isStored: Bool
    do throws(DatabaseError) {
      try await database.document("t/a").setData([
        "a": Value.array([.array([.integer(1)])])
      ])
      isStored = true
    } catch {
      isStored = false
    }
    try await database.close()
    return isStored
  }

  @Test(.enabled("an array in an array can be stored") { try await storesNestedArrays() })
  func `Lines and nested polygons come back`() async throws {
    let ring = "[[0.0,0.0],[4.0,0.0],[4.0,4.0],[0.0,0.0]]"
    let hole = "[[1.0,1.0],[2.0,1.0],[2.0,2.0],[1.0,1.0]]"
    try await checkComesBack([
      #"{"type":"LineString","coordinates":\#(ring)}"#,
      #"{"type":"Polygon","coordinates":[\#(ring),\#(hole)]}"#,
      #"{"type":"MultiPolygon","coordinates":[[\#(ring),\#(hole)],[\#(ring)]]}"#,
      #"{"type":"GeometryCollection","geometries":[{"type":"Polygon","coordinates":[\#(ring)]}]}"#,
    ])
  }

  @Test func `Documents with a geo point become features`() async throws {
    let lines = [
      #"{"__name__":"a","at":{"$geoPoint":[37.5,127.0]},"n":1}"#, #"{"__name__":"b","n":2}"#,
    ]
    let result = try await exported(
      try write("p.jsonl", lines.joined(separator: "\n")), [], as: ["--format", "geojson"])
    let point = #"{"coordinates":[127.0,37.5],"type":"Point"}"#
    #expect(
      try sorted(result, "features") == [
        #"{"geometry":null,"id":"b","properties":{"n":2},"type":"Feature"}"#,
        #"{"geometry":\#(point),"id":"a","properties":{"n":1},"type":"Feature"}"#,
      ])
    _ = try await scratch.ondol(
      "import", shop, "-", "--into", "two",
      input: #"{"__name__":"x","a":{"$geoPoint":[1,2]},"b":{"$geoPoint":[3,4]}}"#)
    let several = try await scratch.ondol("export", shop, "two", "-o", "-", "--format", "geojson")
    #expect(several.status == 1)
    #expect(several.messages.contains("several geometries, a, b"), "\(several.messages)")
    let said = try await scratch.ondol(
      "export", shop, "two", "-o", "-", "--format", "geojson", "--geometry", "b", "--no-ids")
    #expect(said.output.contains(#""geometry":{"coordinates":[4.0,3.0],"type":"Point"}"#))
    #expect(try await scratch.ondol("ls", shop, "two", "--format", "geojson").status == 2)
  }

  // MARK: - Files that many machines have

  private static let codes = "/usr/share/iso-codes/json/iso_"
  private static let characters = "/usr/share/unicode/UnicodeData.txt"
  private static let zones = "/usr/share/zoneinfo/zone1970.tab"

  private static func isThere(_ path: String) -> Bool {
    FileManager.default.isReadableFile(atPath: path)
  }

  @Test(
    .enabled(if: isThere(codes + "3166-1.json")),
    arguments: ["15924", "3166-1", "3166-2", "3166-3", "4217", "639-2", "639-3", "639-5"])
  func `The lists of iso-codes come back`(name: String) async throws {
    let file = Self.codes + name + ".json"
    try #require(Self.isThere(file))
    let text = try String(contentsOfFile: file, encoding: .utf8)
    let back = try await exported(
      file, ["--at", name], as: ["--format", "json", "--no-ids", "--at", name])
    #expect(try sorted(back, name) == sorted(text, name))
    let doubt = try await scratch.ondol("import", shop, file, "--into", "t")
    #expect(doubt.messages.contains("--at \(name)"), "\(doubt.messages)")
  }

  @Test(.enabled(if: isThere(characters)))
  func `The table of Unicode's characters comes back`() async throws {
    let names = (0..<15).map { "f\($0)" }.joined(separator: ",")
    let back = try await exported(
      Self.characters, ["--columns", names, "--id-field", "f0"],
      as: [
        "--format", "csv", "--no-ids", "--no-header", "--columns", names, "--delimiter", ";",
      ])
    let form = CSV.Form(delimiter: UInt8(ascii: ";"))
    let text = try String(contentsOfFile: Self.characters, encoding: .utf8)
    #expect(try records(back, form) == records(text, form))
  }

  @Test(.enabled(if: isThere(zones)))
  func `The table of time zones comes back`() async throws {
    let names = "codes,place,zone,comments"
    let back = try await exported(
      Self.zones, ["--columns", names, "--comment", "#", "--short-rows"],
      as: [
        "--format", "csv", "--no-ids", "--no-header", "--columns", names, "--delimiter", "tab",
      ])
    let form = CSV.Form(delimiter: 0x09, comment: [UInt8(ascii: "#")])
    let text = try String(contentsOfFile: Self.zones, encoding: .utf8)
    // A row may end before the comments.
    let expected = try records(text, form).map { $0.count == 3 ? $0 + [""] : $0 }
    #expect(try records(back, form) == expected)
  }
}
