// The form of a file, from its beginning: each form is found, and ambiguous ones are refused.

import OndolJSON
import Testing

@Suite struct `The form of a file` {
  private func form(
    _ text: String, _ ending: String = "", isWhole: Bool = true,
    _ change: (inout FormHints) -> Void = { _ in }
  ) throws -> FileForm {
    var hints = FormHints()
    hints.ending = ending
    change(&hints)
    return try FormFinder.form(of: Array(text.utf8), isWhole: isWhole, hints)
  }

  /// Returns why it is in doubt.
  private func doubt(
    _ text: String, _ ending: String = "", isWhole: Bool = true,
    _ change: (inout FormHints) -> Void = { _ in }
  ) -> String {
    do {
      return "no doubt: \(try form(text, ending, isWhole: isWhole, change).description)"
    } catch let error as FormDoubt {
      return error.reason
    } catch {
      return "\(error)"
    }
  }

  @Test(arguments: [
    ("{\"a\":1}\n{\"a\":2}\n", "JSON Lines"),
    ("{\"a\":1}", "JSON Lines"),
    ("\u{FEFF}{\"a\":1}\r\n{\"a\":2}", "JSON Lines"),
    ("{\"a\":1}\r{\"a\":2}\r", "JSON Lines"),
    ("{\"a\":1}\nno\n{\"a\":2}\n", "JSON Lines"),
    ("{\"a\":1}\n{\"a\":\"cut\n{\"a\":2}\n", "JSON Lines"),
    ("{\"a\":1}\n{\"a\":2,", "JSON Lines"),
    ("{\"a\":2,", "JSON Lines"),
    ("", "JSON Lines"),
    ("{\n\"a\":1}\n{\"a\":2}\n", "JSON objects one after the other"),
    ("{\"a\":1}\n{\n\"a\":\n2}\n", "JSON objects one after the other"),
    ("{\"a\":1} {\"a\":2}\n", "JSON objects one after the other"),
    ("[{\"a\":1},\n{\"a\":2}]", "a JSON array"),
    ("\u{FEFF} [\n{\"a\":1}\n]", "a JSON array"),
    ("[]", "a JSON array"),
    ("a,b\n1,2\n", "CSV with ',' between cells"),
    ("a;b\n\"1,5\";2\n\"2,5\";\n", "CSV with ';' between cells"),
    ("a;b, or c;d\n1;2;3\n", "CSV with ';' between cells"),
    ("a|b\r\n1|2\r\n", "CSV with '|' between cells"),
    ("a\tb\n1\t2\n", "TSV"),
    ("\"a,x\";\"b\"\n\"1\n,2\";3\n", "CSV with ';' between cells"),
    ("a,b\r1,2\r", "CSV with ',' between cells"),
  ])
  func `is found from the beginning`(text: String, description: String) throws {
    let form = try form(text)
    #expect(form.description == description, "\(text)")
    #expect(form.startBytes == (text.utf8.starts(with: FileForm.byteOrderMark) ? 3 : 0))
    let isOld = text.utf8.contains(0x0D) && !text.utf8.contains(0x0A)
    #expect(form.table.lineBreak == (isOld ? 0x0D : 0x0A), "\(text)")
  }

  @Test(arguments: [
    // Each line is a whole document in one form, and a part of one in the other.
    ("{\"a\":1}\n{\"a\":[\n{\"b\":1}\n{\"c\":1}\n", "", "--as jsonl"),
    ("{\"a\":1,\n{\"b\":2}\n", "", "--as jsonl"),
    ("{\"a\":1},\n{\"b\":2},\n", "", "comma between objects"),
    ("{\"rows\":[{\"a\":1}]}", "", "--at rows"),
    ("{\n\"n\":1,\n\"rows\": [\n{\"a\":1}]}", "", "--at rows"),
    ("{\"a\":1}\n{\"b\":2}\n", "csv", "--as json"),
    ("a,b\n1,2\n", "json", "--as"),
    ("a,b\n1,2\n", "jsonl", "--as"),
    ("no\n{\"a\":1}\n", "", "--as jsonl"),
    ("no\n", "", "--as"),
    ("a,b;c\n1,2;3\n", "", "--delimiter"),
    ("a,b\n1,2,3\n", "", "--delimiter"),
    ("1,2\n3,4\n", "", "--no-header"),
    ("0041;LATIN;;Lu\n0042;LATIN;;Lu\n", "", "--columns"),
    ("a,\n1,2\n", "csv", "--as csv"),
    ("[1,2]", "", "must be objects"),
    ("[[1],[2]]", "", "must be objects"),
    ("[{\"a\":1}\n{\"b\":2}]", "", "',' or ']'"),
    ("[{\"a\":1}]\n[{\"b\":2}]", "", "something follows"),
    ("a\u{0}b\u{0}", "", "UTF-8"),
    ("PK\u{3}\u{4}abc", "", "ZIP"),
  ])
  func `is refused if it is in doubt`(text: String, ending: String, reason: String) {
    let doubt = doubt(text, ending)
    #expect(doubt.contains(reason), "\(text): \(doubt)")
  }

  @Test func `is refused for compressed files, and for two bytes a character`() {
    let starts: [[UInt8]] = [[0x1F, 0x8B, 8], [0x28, 0xB5, 0x2F, 0xFD], [0xFF, 0xFE, 0x7B, 0]]
    for bytes in starts {
      #expect(throws: FormDoubt.self) {
        try FormFinder.form(of: bytes, isWhole: true, FormHints())
      }
    }
  }

  @Test func `is the one in an option`() throws {
    let one = "{\"rows\":[{\"a\":1}]}"
    #expect(try form(one) { $0.format = .json }.layout == .sequence)
    #expect(try form(one) { $0.format = .jsonl }.format == .jsonl)
    #expect(try form(one) { $0.at = ["rows"] }.layout == .member(["rows"]))
    #expect(try form(one, "jsonl").format == .jsonl)
    // A line longer than the examined part.
    let part = "{\"rows\":[{\"a\":1},"
    #expect(try form(part, "jsonl", isWhole: false).format == .jsonl)
    #expect(doubt(part, isWhole: false).contains("--at rows"))
    // A document has its own name; an object around an array does not.
    #expect(try form("{\"__name__\":\"a\",\"rows\":[{\"a\":1}]}").format == .jsonl)
    #expect(try form("{\"id\":7,\"rows\":[{\"a\":1}]}") { $0.idField = "id" }.format == .jsonl)
    #expect(try form("1,\n3,4\n") { $0.format = .csv }.hasHeader)
    #expect(try form("1,2\n3,4\n") { $0.hasColumns = true }.hasHeader == false)
    #expect(try form("1,2\n") { $0.hasHeader = false }.columns == ["column1", "column2"])
    #expect(try form("a,b;c\n1,2;3\n") { $0.delimiter = 0x3B }.table.delimiter == 0x3B)
    #expect(try form("a b\n1\n", "csv").table.delimiter == UInt8(ascii: ","))
    #expect(try form("# x,y\na;b\n1;2\n") { $0.comment = "#" }.table.delimiter == 0x3B)
    #expect(doubt("a,b\n", "csv") { $0.at = ["rows"] }.contains("--at"))
    #expect(doubt(one) { $0.at = ["other"] }.contains("other"))
  }

  /// The window ends anywhere in the file, and the cut is not damage.
  @Test func `does not depend on where the window ends`() throws {
    let texts = [
      "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", "[{\"a\":1},\n{\"a\":[1,{}]},\n{\"a\":3}]",
      "{\n\"a\": 1\n}\n{\n\"a\": [2]\n}\n", "a;b;c\n1;2,5;3\n\"4;\n\";5;6\n7;8;9\n",
    ]
    for text in texts {
      let whole = try form(text).description
      // At least two lines of it.
      for end in text.utf8.count / 2..<text.utf8.count {
        let part = String(decoding: Array(text.utf8)[..<end], as: UTF8.self)
        #expect(try form(part, isWhole: false).description == whole, "\(part)")
      }
    }
  }
}
