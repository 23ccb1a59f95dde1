// Scripts of keys: values and their bytes, and bytes and their values. Values are Extended JSON.
//
//   write        each value's key; the descending one must be the ascending one's complement
//   order        whether each value's key comes after the previous one's, or is the same
//   read         bytes in hexadecimal, and the component at their beginning

import OndolEngine
import OndolJSON
import OndolTestKit
import Testing

@testable import Ondol

private enum KeyScript {
  static func run(_ step: GoldenScript.Step) throws -> String {
    switch step.name {
    case "write": return try step.lines.map(written).joined(separator: "\n")
    case "order":
      var last: [UInt8]?
      return try step.lines.map { line in
        let key = try key(of: line)
        defer { last = key }
        let sign = last.map { order($0, key) < 0 ? "< " : $0 == key ? "= " : "> " } ?? "  "
        return sign + line
      }.joined(separator: "\n")
    case "read": return step.lines.map { "\($0): \(read(bytes(of: $0)))" }.joined(separator: "\n")
    default: throw step.unknown
    }
  }

  private static func key(of text: String, descending: Bool = false) throws -> [UInt8] {
    var writer = KeyWriter()
    writer.append(try JSONReader.read(Array(text.utf8)), descending: descending)
    return writer.bytes
  }

  private static func written(_ text: String) throws -> String {
    let ascending = try key(of: text)
    let descending = try key(of: text, descending: true)
    let hint = descending == ascending.map { ~$0 } ? "" : ", descending \(digits(descending))"
    return "\(text): \(digits(ascending))\(hint)"
  }

  private static func read(_ bytes: [UInt8]) -> String {
    var reader = KeyReader(bytes.bytes)
    do {
      switch try reader.component() {
      case .cut: return "cut"
      case .value(let value): return JSONWriter.line(value, .canonical)
      }
    } catch {
      return "refused at \(error.offset)"
    }
  }

  private static func digits(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
  }

  private static func bytes(of text: String) -> [UInt8] {
    text.split(separator: " ").compactMap { UInt8($0, radix: 16) }
  }
}

@Suite struct KeyScriptTests {
  @Test(arguments: try GoldenScript.all(in: "keys"))
  func `Keys are those of the script`(script: GoldenScript) async throws {
    try await script.check { try KeyScript.run($0) }
  }
}
