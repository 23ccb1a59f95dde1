// The files in Web as a browser receives them: all of them, and smaller than their sources.

import Testing

@testable import OndolConsole

@Suite struct `The console's assets` {
  @Test func `The page is there, with its styles and modules`() throws {
    let page = try #require(Assets.files["index.html"])
    #expect(page.hasPrefix("<!DOCTYPE html>\n"))
    #expect(page.hasSuffix("</html>\n"))
    #expect(Assets.files.keys.count { $0.hasSuffix(".css") } == 4)
    #expect(Assets.files.keys.count { $0.hasSuffix(".js") } > 20)
  }

  /// The limit applies to what a browser downloads.
  @Test func `A browser downloads at most 150 kB`() {
    let files = Assets.files.filter { !ConsoleHandler.otherPages.contains($0.key) }
    let bytes = files.values.reduce(0) { $0 + $1.utf8.count }
    #expect(bytes > 100_000)
    #expect(bytes <= 150_000)
  }

  @Test func `The page of a server has at most 20 kB of its own`() {
    let bytes = ConsoleHandler.serverPages.reduce(0) { $0 + (Assets.files[$1]?.utf8.count ?? 0) }
    #expect(bytes > 5_000)
    #expect(bytes <= 20_000)
  }

  @Test func `The page of reports has at most 10 kB of its own`() {
    let bytes = ConsoleHandler.reportPages.reduce(0) { $0 + (Assets.files[$1]?.utf8.count ?? 0) }
    #expect(bytes > 3_000)
    #expect(bytes <= 10_000)
  }

  @Test func `Indentation, empty lines and comments on lines of their own stay at home`() {
    let text = """
      // One.
      const a = "// two"; // three

        /* four
           five */
        if (a) { b(); }
        /* six */
        // 일곱
        c("여덟  ");

      """
    let shipped = """
      const a = "// two"; // three
      if (a) { b(); }
      c("여덟  ");

      """
    #expect(Assets.shipped(text, isStyle: false) == shipped)
    #expect(Assets.shipped("", isStyle: true) == "")
    #expect(Assets.shipped("a", isStyle: false) == "a\n")
  }

  @Test func `Styles lose the blanks that mean nothing, and none within quotes`() {
    let text = """
      /* One. */
      a > b, c { color: red; margin: 0 1px; }
      d::before { content: ", ; {"; }
      """
    let shipped = """
      a > b,c{color:red;margin:0 1px}
      d::before { content: ", ; {"; }

      """
    #expect(Assets.shipped(text, isStyle: true) == shipped)
  }
}
