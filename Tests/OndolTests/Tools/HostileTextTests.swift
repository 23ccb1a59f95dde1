// Other people's text on a terminal, from every command: names, values, paths, reasons. None of it
// may do anything there, or look like something else.

import Foundation
import Ondol
import OndolJSON
import Testing

@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script")))
struct `Hostile text in the ondol program` {
  let scratch: ScratchDirectory
  let sample: HostileSample

  init() async throws {
    scratch = try ScratchDirectory()
    sample = try await HostileSample(scratch)
  }

  /// The names of all commands with an action, from the program's own table.
  private func commands() async throws -> Set<String> {
    let dump = try await scratch.ondol("--experimental-dump-help")
    let tool = try JSONSerialization.jsonObject(with: Data(dump.output.utf8)) as? [String: Any]
    func names(_ command: [String: Any], _ path: [String]) -> [String] {
      let below = command["subcommands"] as? [[String: Any]] ?? []
      if below.isEmpty { return [path.joined(separator: " ")] }
      return below.flatMap { names($0, path + [$0["commandName"] as? String ?? ""]) }
    }
    let root = try #require(tool?["command"] as? [String: Any])
    return Set(names(root, [])).filter { $0.split(separator: " ").last != "help" }
  }

  /// The characters of an output that a terminal would not show unchanged, as numbers.
  private func hidden(in output: String, allowing allowed: Set<Unicode.Scalar> = []) -> [String] {
    output.unicodeScalars
      .filter { VisibleText.isHidden($0.value) && $0 != "\n" && !allowed.contains($0) }
      .map { String($0.value, radix: 16) }
  }

  @Test func `No command lets it through to a terminal`() async throws {
    let runs = sample.runs
    #expect(try await commands() == Set(runs.keys), "each command has its runs")
    for (name, runs) in runs.sorted(by: { $0.key < $1.key }) where name != "shell" {
      for run in runs {
        try sample.restore()
        let words = name.split(separator: " ").map(String.init) + run.words
        let result = try await scratch.typing(
          run.endsAfter == nil ? "" : "\u{3}", into: words, when: run.endsAfter ?? "",
          environment: ["NO_COLOR": "1", "EDITOR": "cat", "VISUAL": "cat"])
        let tabs: Set<Unicode.Scalar> = words.contains("raw") ? ["\t"] : []
        // A terminal's line breaks and progress lines contain it, and no name does.
        let output = String(result.output.unicodeScalars.filter { $0 != "\r" })
        let found = hidden(in: output, allowing: tabs)
        let told = Comment(rawValue: "\(words): \(VisibleText.lines(output))")
        #expect(found.isEmpty, told)
        #expect(result.status == run.status, told)
        // A name begins no line, and so cannot pose as the program's own message.
        #expect(name == "blob cat" || !output.contains("\nondol: ok"), told)
      }
    }
  }

  @Test func `The shell shows completions visibly, and keeps their bytes`() async throws {
    try sample.restore()
    // Completes a collection; then offers the fields of one, several of which begin alike.
    let keys = "count c\t\rquery c\t \t\t\u{15}.read \u{9B}\u{202E}none\r.quit\r"
    let result = try await scratch.typing(
      keys, into: [sample.place], environment: ["NO_COLOR": "1"])
    // The editor's own control sequences.
    let own = #/\r\u{1B}\[K|\u{1B}\[[0-9]+D/#
    let shown = String(
      result.output.replacing(own, with: "").unicodeScalars.filter { $0 != "\r" })
    #expect(hidden(in: shown).isEmpty, "\(VisibleText.lines(result.output))")
    #expect(shown.contains(#"count c\u{202e}\u{1b}]0;x"#), "\(VisibleText.lines(result.output))")
    #expect(shown.contains(#".read \u{9b}\u{202e}none"#), "\(VisibleText.lines(result.output))")
  }

  @Test func `A pipe gets stored bytes, and JSON that is safe to display`() async throws {
    try sample.restore()
    let collection = "c\(HostileSample.orders)"
    let csv = try await scratch.ondol("ls", sample.place, collection, "--format", "csv")
    #expect(csv.output.contains("\"d\(HostileSample.orders)\""), "\(csv.output)")
    let bytes = try await scratch.ondol("blob", "cat", sample.place, "o\(HostileSample.marks).txt")
    #expect(bytes.output == "bytes \(HostileSample.orders)")
    let table = try await scratch.ondol("ls", sample.place, collection, "--format", "table")
    #expect(hidden(in: table.output).isEmpty)
    #expect(table.output.contains(#"d\u{202e}\u{1b}]0;x\u{7}"#), "\(table.output)")
    let wrong = try await scratch.ondol("get", sample.place, "\(collection)/none")
    #expect(hidden(in: wrong.messages).isEmpty)
    for command in ["ls", "get", "export", "dump"] {
      let words =
        switch command {
        case "ls": [collection]
        case "get": ["\(collection)/d\(HostileSample.orders)"]
        case "export": [collection, "-o", "-"]
        default: ["-o", "-"]
        }
      let result = try await scratch.ondol([command, sample.place] + words)
      #expect(result.status == 0, "\(result.messages)")
      #expect(hidden(in: result.output).isEmpty, "\(command)")
      #expect(result.output.contains(#"\u202e\u001b]0;x\u0007"#), "\(result.output)")
    }
  }

  @Test func `A content on a terminal is text, its characters whole`() async throws {
    try sample.restore()
    // Longer than the pieces in which it is read, and not a text at its end.
    let file = scratch.path("long")
    let bytes = Data(String(repeating: "한 ", count: 1 << 19).utf8) + [0xED, 0x95, 0x9B, 0xFF, 0x9B]
    try bytes.write(to: URL(filePath: file))
    let put = try await scratch.ondol("blob", "put", sample.place, file, "--path", "long")
    try #require(put.status == 0, "\(put.messages)")
    let shown = try await scratch.typing("", into: ["blob", "cat", sample.place, "long"])
    #expect(shown.status == 0)
    let scalars = shown.output.unicodeScalars
    #expect(scalars.count { $0 == "한" } == 1 << 19)
    #expect(scalars.count { $0 == "\u{FFFD}" } == 2)
    #expect(hidden(in: shown.output).isEmpty)
    let archive = try await scratch.typing("", into: ["backup", sample.place, "-"])
    #expect(archive.status == 2, "\(archive.output)")
  }
}
