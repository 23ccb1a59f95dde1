// The ends of values in a JSON text of any layout, found in a buffer that is filled and emptied at
// any place.

import Ondol
import OndolEngine
import OndolJSON
import OndolTestKit
import Testing

@Suite struct `The splitter of JSON` {
  /// The values in `text`, read through a buffer that gets a number of bytes at a time and loses
  /// the returned ones.
  private func values(
    _ text: String, _ layout: JSONSplitter.Layout, by step: Int, comment: String = "",
    behind: Int? = nil
  ) throws -> [String] {
    let bytes = Array(text.utf8)
    var splitter = JSONSplitter(
      layout, comment: Array(comment.utf8), goesOn: behind != nil)
    var buffer: [UInt8] = []
    var next = behind ?? 0
    var found: [String] = []
    while true {
      let isAtEnd = next == bytes.count
      while let range = try splitter.next(in: buffer, isAtEnd: isAtEnd) {
        found.append(String(decoding: buffer[range], as: UTF8.self))
      }
      if isAtEnd { return found }
      let used = splitter.start ?? splitter.position
      buffer.removeSubrange(..<used)
      splitter.move(by: used)
      let end = min(next + step, bytes.count)
      buffer += bytes[next..<end]
      next = end
    }
  }

  private static let objects = [
    #"{}"#, #"{"a":1}"#, #"{"a":"]}\"{"}"#, #"{"a":[{"b":[1,2]},{}]}"#, #"{"a":"\\"}"#,
    "{\n  \"a\": {\n    \"b\": null\n  }\n}", #"{"é":"😀 [{"}"#,
  ]

  @Test(arguments: 1...9)
  func `finds the same values in pieces of any length`(step: Int) throws {
    let objects = Self.objects
    for separator in [",", ", ", ",\n", "\r\n,\t"] {
      let array = "[" + objects.joined(separator: separator) + "]"
      #expect(try values(array, .array, by: step) == objects, "\(array)")
      let held = #"{"type":"x","n":[{"d":1},2],"d":{"n":0,"rows":\#(array),"z":"]"},"e":[]} "#
      #expect(try values(held, .member(["d", "rows"]), by: step) == objects, "\(held)")
    }
    for separator in ["\n", " ", "\r\n\r\n", ""] {
      let text = objects.joined(separator: separator)
      #expect(try values(text, .sequence, by: step) == objects, "\(text)")
    }
    #expect(try values("[]", .array, by: step) == [])
    #expect(try values("[ 1, \"a,b\", null,[2,[3]] ]", .array, by: step).count == 4)
  }

  @Test(arguments: 1...9)
  func `skips comments between values and nowhere else`(step: Int) throws {
    let text = "#! one {\n{\"a\":\n\"#! no\"}\n#! two\n{\"b\":2} #!\n"
    #expect(
      try values(text, .sequence, by: step, comment: "#!")
        == ["{\"a\":\n\"#! no\"}", "{\"b\":2}", "#!"])
    #expect(try values("[1,\n#!,\n2]", .array, by: step, comment: "#!") == ["1", "2"])
  }

  @Test func `continues after any value`() throws {
    let objects = Self.objects
    let array = "[" + objects.joined(separator: ",\n") + "]"
    var end = 1
    for (index, object) in objects.enumerated() {
      end += object.utf8.count
      #expect(try values(array, .array, by: 3, behind: end) == Array(objects[(index + 1)...]))
      let offset = #"{"rows":"#.utf8.count
      #expect(
        try values(#"{"rows":\#(array)}"#, .member(["rows"]), by: 3, behind: end + offset)
          == Array(objects[(index + 1)...]))
      end += 2
    }
  }

  @Test(arguments: [
    ("[1,2", JSONSplitter.Layout.array, 5, "']' is missing"),
    ("[1 2]", .array, 4, "',' or ']'"),
    ("[1,]", .array, 4, "a value is missing"),
    ("[,1]", .array, 2, "a value is missing"),
    ("[1] 2", .array, 5, "something follows"),
    ("[1]]", .array, 4, "something follows"),
    ("{}", .array, 1, "'[' is missing"),
    (#"[{"a":1,{"b":2}"#, .array, 2, "never closed"),
    (#"[{"a":1,{"b":2}]"#, .array, 17, "']' is missing"),
    (#"["a"#, .array, 2, "never closed"),
    ("{}, {}", .sequence, 3, "comma"),
    ("{} }", .sequence, 4, "a value is missing"),
    (#"{"a":[1]}"#, .member(["b"]), 9, "no \"b\""),
    (#"{"a":[1],"a":[2]}"#, .member(["a"]), 13, "twice"),
    (#"{"a":{"b":[]}}"#, .member(["a"]), 6, "an array"),
    (#"{"a":[1]"#, .member(["a"]), 9, "'}' is missing"),
    (#"{"a" [1]}"#, .member(["a"]), 6, "':'"),
    (#"{a:[1]}"#, .member(["a"]), 2, "name in quotes"),
    ("", .array, 1, "nothing"),
  ])
  func `reports the place of a mistake between values`(
    text: String, layout: JSONSplitter.Layout, column: Int, reason: String
  ) throws {
    var splitter = JSONSplitter(layout)
    do throws(JSONError) {
      while try splitter.next(in: Array(text.utf8), isAtEnd: true) != nil {}
      Issue.record("\(text) was taken")
    } catch {
      #expect(error.column == column, "\(text): \(error.reason)")
      #expect(error.reason.contains(reason), "\(text): \(error.reason)")
    }
  }

  /// The reader of a value finds a mistake in it, and the next values are found.
  @Test func `A value that is damaged inside does not take in others`() throws {
    let text = "[{\"a\":tru},{\"a\" 1},\n{\"a\":\"no end\n},{\"b\":[1}},{\"c\":2}]"
    #expect(
      try values(text, .array, by: 2)
        == [#"{"a":tru}"#, #"{"a" 1}"#, "{\"a\":\"no end\n}", #"{"b":[1}}"#, #"{"c":2}"#])
  }

  /// Brackets, quotes and comments in any order.
  @Test func `gives the same values or refuses at the same place, however any text is cut`() {
    let seed = UInt64.random(in: 0...(.max))
    var random = SeededRandom(seed: seed)
    let pieces = [
      "{", "}", "[", "]", "\"", ",", ":", "\"a\"", "\"a\":[", "\\", "1", "\n", "#", " ",
    ]
    for round in 0..<3_000 {
      let text = (0..<random.below(24)).map { _ in pieces[random.below(pieces.count)] }.joined()
      for layout in [JSONSplitter.Layout.sequence, .array, .member(["a"])] {
        let whole = Result { try values(text, layout, by: 1_000, comment: "#") }
        let parts = Result { try values(text, layout, by: 1 + round % 4, comment: "#") }
        switch (whole, parts) {
        case (.success(let whole), .success(let parts)): #expect(whole == parts, "\(text), \(seed)")
        case (.failure, .failure): continue
        default: Issue.record("\(text) in pieces is another, seed \(seed)")
        }
      }
      _ = doubt(text, isWhole: round.isMultiple(of: 2))
    }
  }

  private func doubt(_ text: String, isWhole: Bool) -> FormDoubt? {
    do throws(FormDoubt) {
      _ = try FormFinder.form(of: Array(text.utf8), isWhole: isWhole, FormHints())
      return nil
    } catch {
      return error
    }
  }

  @Test func `names the neighbours of the array`() throws {
    var splitter = JSONSplitter(.member(["rows"]))
    let text = Array(#"{"type":"x","rows":[{}],"more":{"rows":1},"é":2}"#.utf8)
    while try splitter.next(in: text, isAtEnd: true) != nil {}
    #expect(splitter.neighbours.map(\.name) == ["type", "more", "é"])
    #expect(
      JSONSplitter.members(of: Array(#"{"a":[{"b":1}],"c":"#.utf8), lineBreak: 0x0A).map(\.name)
        == ["a", "c"])
  }
}
