// Detects a file's form from its first bytes. It refuses rather than guesses, because a line in one
// format may be a whole document in another, and the user would never notice a wrong import. So it
// examines some hundred lines instead of only the first character, and reports what it saw.

import OndolEngine

/// Examines the beginning of a file.
package struct FormFinder {
  /// The number of bytes that are enough.
  package static let windowBytes = 1 << 18

  private let hints: FormHints
  let bytes: [UInt8]
  /// Whether `bytes` are the whole file.
  let isWhole: Bool
  let lineBreak: UInt8
  private var comment: [UInt8] { Array(hints.comment.utf8) }

  /// Returns the form of the file that begins with `bytes`.
  ///
  /// - Complexity: O(*n*) in the number of bytes.
  package static func form(
    of bytes: [UInt8], isWhole: Bool, _ hints: FormHints
  ) throws(FormDoubt) -> FileForm {
    try refuseForeign(bytes)
    let mark = FileForm.byteOrderMark
    guard bytes.starts(with: mark) else { return try FormFinder(bytes, isWhole, hints).find() }
    var form = try FormFinder(Array(bytes.dropFirst(mark.count)), isWhole, hints).find()
    form.startBytes = mark.count
    return form
  }

  private init(_ bytes: [UInt8], _ isWhole: Bool, _ hints: FormHints) {
    self.bytes = bytes
    self.isWhole = isWhole
    self.hints = hints
    lineBreak = !bytes.contains(0x0A) && bytes.contains(0x0D) ? 0x0D : 0x0A
  }

  /// Refuses anything that is not text in UTF-8.
  private static func refuseForeign(_ bytes: [UInt8]) throws(FormDoubt) {
    if bytes.starts(with: [0x1F, 0x8B]) {
      throw FormDoubt("it is compressed: gunzip -c FILE | ondol import DIR - …")
    }
    if bytes.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) {
      throw FormDoubt("it is compressed: zstdcat FILE | ondol import DIR - …")
    }
    if bytes.starts(with: [0x50, 0x4B, 0x03, 0x04]) {
      throw FormDoubt("it is a ZIP archive, as spreadsheets are: save the table as CSV")
    }
    let isWide = bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF])
    if isWide || bytes.prefix(64).contains(0) {
      throw FormDoubt("it is not UTF-8; convert UTF-16 with iconv -f UTF-16 -t UTF-8")
    }
  }

  private func find() throws(FormDoubt) -> FileForm {
    var form: FileForm
    switch hints.format ?? saidByOptions {
    case .jsonl?: form = FileForm(.jsonl)
    case .json?: form = try json(first: firstByte)
    case .csv?: form = try table(.csv)
    case .tsv?: form = try table(.tsv)
    case nil: form = try guess()
    }
    form.isSaid = hints.format != nil
    form.table.lineBreak = lineBreak
    form.table.comment = comment
    if form.format != .json, !hints.at.isEmpty {
      throw FormDoubt("--at is for JSON, and this is \(form.description)")
    }
    return form
  }

  /// The format, from options that only one format has.
  private var saidByOptions: FileFormat? {
    if !hints.at.isEmpty { return .json }
    if hints.delimiter == 0x09 { return .tsv }
    let isTable = hints.delimiter != nil || hints.hasColumns || !hints.hasHeader
    return isTable ? (hints.ending == "tsv" || hints.ending == "tab" ? .tsv : .csv) : nil
  }

  // MARK: - Lines

  /// The complete lines, without blank ones and comments.
  var lines: [Range<Int>] {
    var lines: [Range<Int>] = []
    var position = 0
    while position < bytes.count {
      let next = bytes[position...].firstIndex(of: lineBreak)
      guard next != nil || isWhole else { return lines }
      let end = next ?? bytes.count
      let line = bytes[position..<end]
      let isComment = !comment.isEmpty && line.starts(with: comment)
      if !isComment, line.contains(where: { !Self.isSpace($0) }) { lines.append(position..<end) }
      position = end + 1
    }
    return lines
  }

  static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  /// The first byte that is neither white space nor part of a comment.
  private var firstByte: UInt8? {
    let first = lines.first?.lowerBound ?? 0
    return bytes[first...].first { !Self.isSpace($0) }
  }

  func doubt(_ reason: String, at offset: Int) -> FormDoubt {
    FormDoubt(reason, in: bytes, at: offset, lineBreak: lineBreak)
  }

  // MARK: - Guessing

  private func guess() throws(FormDoubt) -> FileForm {
    let isLines = hints.ending == "jsonl" || hints.ending == "ndjson"
    guard let first = firstByte else { return FileForm(.jsonl) }
    let isJSON = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    guard isJSON else {
      if isLines, lines.contains(where: { begins($0, with: "{") }) { return FileForm(.jsonl) }
      if isLines || hints.ending == "json" {
        throw doubt("by its name it is JSON, but it begins otherwise; say --as", at: 0)
      }
      return try guessTable()
    }
    if ["csv", "tsv", "tab"].contains(hints.ending) {
      throw doubt(
        "by its name it is a table, but it begins as JSON does; say --as json, jsonl, csv or tsv",
        at: 0)
    }
    if first == UInt8(ascii: "[") { return try json(first: first) }
    return try guessObjects(isLines)
  }

  private func begins(_ line: Range<Int>, with character: Unicode.Scalar) -> Bool {
    bytes[line].first { !Self.isSpace($0) } == UInt8(ascii: character)
  }

  /// Decides the form of a text that begins with an object.
  private func guessObjects(_ isLines: Bool) throws(FormDoubt) -> FileForm {
    var splitter = splitter(.sequence)
    let first: Range<Int>?
    do throws(JSONError) {
      first = try splitter.next(in: bytes, isAtEnd: isWhole)
    } catch {
      // A single truncated line is a bad line.
      if lines.count == 1 { return FileForm(.jsonl) }
      throw doubt("\(error.reason); --as jsonl takes each line for itself", at: error.column - 1)
    }
    guard let first else {
      if isLines, !bytes.contains(lineBreak) { return FileForm(.jsonl) }
      try refuseHolder(upTo: bytes.count)
      return FileForm(.json)
    }
    let isInLine = !bytes[first].contains(lineBreak)
    let rest = bytes[first.upperBound...].prefix { $0 != lineBreak }
    guard isInLine, rest.allSatisfy(Self.isSpace) else {
      if isAlone(first) { try refuseHolder(upTo: first.upperBound) }
      try check(.sequence)
      return FileForm(.json)
    }
    if isAlone(first), !isLines { try refuseHolder(upTo: first.upperBound) }
    guard let unfinished = lines.first(where: isUnfinished) else { return FileForm(.jsonl) }
    // These are either objects across several lines, or a truncated line.
    guard isObjectOverLines(from: unfinished.lowerBound) else {
      throw doubt(
        "the object that begins here goes on in the next line, or the line is cut off; "
          + "--as jsonl takes each line for itself, --as json reads over lines",
        at: unfinished.lowerBound)
    }
    try check(.sequence)
    return FileForm(.json)
  }

  private func isAlone(_ first: Range<Int>) -> Bool {
    isWhole && bytes[first.upperBound...].allSatisfy(Self.isSpace)
  }

  private func isUnfinished(_ line: Range<Int>) -> Bool {
    Self.goesOn(bytes[line]) && line.upperBound < (lines.last?.lowerBound ?? 0)
  }

  /// Whether a line leaves brackets open, and no string is cut off at its end.
  package static func goesOn(_ line: some Sequence<UInt8>) -> Bool {
    var depth = 0
    var isInString = false
    var isBehindBackslash = false
    for byte in line {
      if isBehindBackslash {
        isBehindBackslash = false
      } else if isInString {
        isInString = byte != UInt8(ascii: "\"")
        isBehindBackslash = byte == UInt8(ascii: "\\")
      } else if byte == UInt8(ascii: "\"") {
        isInString = true
      } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
        depth += 1
      } else if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") {
        depth -= 1
      }
    }
    return depth > 0 && !isInString
  }

  private func isObjectOverLines(from start: Int) -> Bool {
    var splitter = splitter(.sequence)
    let rest = Array(bytes[start...])
    guard let range = try? splitter.next(in: rest, isAtEnd: isWhole) else { return false }
    return (try? JSONReader.readDocument(Array(rest[range]))) != nil
  }

  // MARK: - JSON

  private func splitter(_ layout: JSONSplitter.Layout) -> JSONSplitter {
    JSONSplitter(layout, lineBreak: lineBreak, comment: comment)
  }

  /// Decides the form of JSON that is not line by line.
  private func json(first: UInt8?) throws(FormDoubt) -> FileForm {
    var form = FileForm(.json)
    if !hints.at.isEmpty {
      guard first == UInt8(ascii: "{") else {
        throw FormDoubt("--at names an array in an object, and this does not begin with an object")
      }
      form.layout = .member(hints.at)
    } else if first == UInt8(ascii: "[") {
      form.layout = .array
    }
    try check(form.layout)
    return form
  }

  /// Refuses mistakes between the values of the window, and text without an object.
  private func check(_ layout: JSONSplitter.Layout) throws(FormDoubt) {
    var splitter = splitter(layout)
    var isFirst = true
    do throws(JSONError) {
      while let value = try splitter.next(in: bytes, isAtEnd: isWhole) {
        if isFirst, bytes[value.lowerBound] != UInt8(ascii: "{") {
          throw JSONError(
            reason: "documents must be objects, and the first value is not one",
            column: value.lowerBound + 1)
        }
        isFirst = false
      }
    } catch {
      throw doubt(error.reason + hint(layout), at: error.column - 1)
    }
  }

  private func hint(_ layout: JSONSplitter.Layout) -> String {
    layout == .sequence ? "; --as jsonl takes each line for itself" : ""
  }

  /// Refuses one object that contains an array of objects, because the object or the array's
  /// elements may be the documents.
  private func refuseHolder(upTo end: Int) throws(FormDoubt) {
    guard hints.format == nil else { return }
    let text = Array(bytes[..<end])
    let names = JSONSplitter.members(of: text, lineBreak: lineBreak)
    guard !names.contains(where: { $0.name == JSONWriter.documentIDName }),
      !names.contains(where: { $0.name == hints.idField }),
      let array = names.first(where: { Self.beginsObjects(text[min($0.value, text.count)...]) })
    else { return }
    throw doubt(
      "the file is an object with the array \"\(array.name)\" in it: --at \(array.name) imports "
        + "the objects in the array, --as json the one object",
      at: array.value)
  }

  /// Whether a colon, a bracket and a brace come next.
  private static func beginsObjects(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.lazy.filter { !isSpace($0) }.prefix(3).elementsEqual(":[{".utf8)
  }

  // MARK: - Tables

  private func guessTable() throws(FormDoubt) -> FileForm {
    if let line = lines.first(where: { begins($0, with: "{") || begins($0, with: "[") }) {
      throw doubt(
        "this line begins as JSON does, and the first one does not; say --as jsonl, csv or tsv",
        at: line.lowerBound)
    }
    switch hints.ending {
    case "csv": return try table(.csv)
    case "tsv", "tab": return try table(.tsv)
    default: return try table(nil)
    }
  }

  /// - Parameter said: nil if only the content suggests that it is a table.
  private func table(_ said: FileFormat?) throws(FormDoubt) -> FileForm {
    var form = FileForm(said ?? .csv)
    form.hasHeader = hints.hasHeader && !hints.hasColumns
    let sample = TableSample(bytes, isWhole: isWhole, lineBreak, comment)
    if let delimiter = hints.delimiter {
      form.table.delimiter = delimiter
    } else if said == .tsv {
      form.table.delimiter = 0x09
    } else {
      form.table.delimiter = try sample.delimiter(isTable: said != nil)
    }
    if form.table.delimiter == 0x09 { form.format = .tsv }
    if hints.format == nil, form.hasHeader {
      try sample.refuseRow(form.table.delimiter)
    }
    if !form.hasHeader, !hints.hasColumns {
      form.columns = (0..<sample.width(form.table.delimiter)).map { "column\($0 + 1)" }
    }
    return form
  }
}
