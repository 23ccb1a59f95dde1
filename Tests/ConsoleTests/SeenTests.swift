// The console's pages make the same characters visible in names and values as the tool: the list
// exists twice, in two languages, and must be one list.

import OndolJSON
import Testing

@testable import OndolConsole

@Suite struct `Text in the console's pages` {
  /// The ranges of the expression in `dom.js` that finds invisible characters.
  private func ranges() throws -> [ClosedRange<UInt32>] {
    let page = try #require(Assets.files["dom.js"])
    let start = try #require(page.firstRange(of: "const HIDDEN = "))
    let end = try #require(page[start.upperBound...].firstRange(of: "\"gu\""))
    let parts = page[start.upperBound..<end.lowerBound].split(separator: "`")
    // The parts between backquotes: every other one.
    let text = parts.indices.filter { !$0.isMultiple(of: 2) }.map { parts[$0] }.joined()
    let expression = #/\\(?:x(?<x>..)|u\{(?<long>[^}]*)\}|u(?<u>....)|(?<zero>0))(?<dash>-)?/#
    var ranges: [ClosedRange<UInt32>] = []
    var first: UInt32?
    for match in text.matches(of: expression) {
      let digits = match.x ?? match.long ?? match.u ?? match.zero ?? ""
      let number = try #require(UInt32(digits, radix: 16))
      if match.dash != nil {
        first = number
      } else {
        ranges.append((first ?? number)...number)
        first = nil
      }
    }
    return ranges
  }

  @Test func `The same characters are in sight as in the tool`() throws {
    let numbers = { (ranges: [ClosedRange<UInt32>]) in ranges.flatMap(Array.init) }
    let shown = numbers(try ranges())
    #expect(shown.count > 3_000)
    #expect(shown == numbers(VisibleText.hidden))
  }

  /// The other ways to put a text into a page would bypass the function.
  @Test func `All texts of a database go through one function`() {
    for (name, page) in Assets.files where name.hasSuffix(".js") && name != "dom.js" {
      #expect(!page.contains("createTextNode") && !page.contains("innerText"), "\(name)")
      for line in page.split(separator: "\n") where line.contains(".textContent = ") {
        // Numbers, times and the page's own words.
        let own = ["parts.role.", "parts.live.", "parts.version.", "this.status.", "this.count."]
        let isOwn = own.contains { line.contains($0) } || line.contains("this.time.")
        #expect(isOwn, "\(name): \(line)")
      }
      for line in page.split(separator: "\n") where line.contains(".title = ") {
        #expect(
          line.contains("seen(") || line.contains("local(time)"), "\(name): \(line)")
      }
    }
  }
}
