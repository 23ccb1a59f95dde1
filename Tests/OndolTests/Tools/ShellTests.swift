// The shell: lines over a pipe, and a person's keys on a terminal.

import Foundation
import Ondol
import Testing

@Suite struct `The shell of the ondol program` {
  let scratch: ScratchDirectory
  let shop: String

  init() async throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
    let database = try await Database.open(at: shop)
    for n in 0..<5 { try await database.document("items/i\(n)").setData(["n": n, "name": "x y"]) }
    try await database.close()
  }

  @Test func `Lines are commands without the database's name`() async throws {
    let script = """
      # what is there
      ls items --ids
      query items 'n >= 3 and name = "x y"' --select n
      .mode csv
      .limit 1
      query items "n < 3"
      .limit off
      count items
      .mode auto
      tree ls
      """
    let result = try await scratch.ondol(shop, input: script)
    #expect(result.status == 0, "\(result.messages)")
    #expect(
      result.lines == [
        "i0", "i1", "i2", "i3", "i4", #"{"__name__":"i3","n":3}"#, #"{"__name__":"i4","n":4}"#,
        "__name__,n,name", "i0,0,x y", "count", "5",
      ])
  }

  @Test func `Its own commands read, write files and hold a picture`() async throws {
    let (inner, out) = (scratch.path("inner"), scratch.path("out"))
    try "count items\n.quit\ncount none\n".write(toFile: inner, atomically: true, encoding: .utf8)
    let script = """
      .snapshot on
      .output \(out)
      get items/i1 --field n
      .output off
      .explain on
      .timer on
      query items
      .read \(inner)
      count items
      """
    let result = try await scratch.ondol(shop, input: script)
    #expect(result.status == 0, "\(result.messages)")
    #expect(try String(contentsOfFile: out, encoding: .utf8) == #"{"n":1}"# + "\n")
    #expect(result.lines.count == 2)
    #expect(result.lines.first?.contains("scan of the collection") == true)
    #expect(result.lines.last == "5")
    #expect(result.messages.contains(" ms"))
  }

  @Test func `A failed line is reported, and the rest runs`() async throws {
    let result = try await scratch.ondol(
      shop, input: "get items/none\n.mode nonsense\nget 'items\ncount items\n")
    #expect(result.status == 2)
    #expect(result.lines == ["5"])
    #expect(result.messages.contains("items/none"))
    #expect(result.messages.contains("not closed"))
  }

  /// Errors once mentioned a database that nobody had typed, and the program's own name.
  @Test func `Help and errors are in the form of lines typed here`() async throws {
    let help = try await scratch.ondol(shop, input: "help ls\nblob put --help\nhelp compact\n")
    #expect(help.status == 0, "\(help.messages)")
    #expect(help.output.contains("USAGE: ls [<options>] [<collection>]"))
    #expect(help.output.contains("USAGE: blob put "))
    #expect(!help.output.contains("<place>"))
    #expect(!help.output.contains("ARGUMENTS:\n\n"))
    let wrong = try await scratch.ondol(shop, input: "nonsense a\nquery\nls items --nope\n")
    #expect(wrong.status == 2)
    #expect(wrong.messages.contains("there is no command \"nonsense\""))
    #expect(wrong.messages.contains("Usage: query [<options>] <collection> [<condition>]"))
    #expect(wrong.messages.contains("See 'help ls' for more information."))
    for hidden in ["<place>", "Usage: ondol", "shop.ondol"] {
      #expect(!wrong.messages.contains(hidden), "\(wrong.messages)")
    }
  }

  @Test func `It writes only when it may`() async throws {
    let refused = try await scratch.ondol(shop, input: "compact\n")
    #expect(refused.status == 7)
    let done = try await scratch.ondol(shop, "--write", input: "compact\n")
    #expect(done.status == 0, "\(done.messages)")
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script")))
  func `On a terminal keys edit the line, and names are completed`() async throws {
    // Types "cout" and corrects it, completes the collection, and takes the line from the history.
    let keys =
      "cout\u{1B}[D\u{1B}[Du\u{7F}\u{1B}[Cun\u{1B}[3~\u{1B}[F\u{17}count it\t\r"
      + "\u{1B}[A\r.quit\r"
    let result = try await scratch.typing(keys, into: [shop])
    #expect(result.output.contains("ondol> "))
    #expect(result.output.contains("count items"))
    let answers = result.output.split(whereSeparator: \.isNewline).filter { $0 == "5" }
    #expect(answers.count == 2, "\(result.output)")
    let history = try String(contentsOfFile: scratch.path("history"), encoding: .utf8)
    #expect(history == "count items \n.quit\n")
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script")))
  func `Fields are completed within quotes, and options after a dash`() async throws {
    // "query items 'nam" becomes 'name ', "--sel" becomes "--select ".
    let keys = "query items 'nam\t= \"x y\" and n>3' --sel\tn\r.quit\r"
    let result = try await scratch.typing(keys, into: [shop])
    let answers = result.output.split(whereSeparator: \.isNewline)
    #expect(
      answers.contains { $0.contains(#"'name = "x y" and n>3' --select n"#) }, "\(result.output)")
    #expect(result.output.contains("i4"))
  }
}
