// Finds the separator of a table's cells from its first records. The character must occur in the
// first record. If several do, exactly one of them must split every record into as many cells as
// the first record has.

import OndolEngine

/// The first records of a table.
struct TableSample {
  /// The possible separators.
  static let delimiters: [UInt8] = Array(",;\t|".utf8)
  private static let maximumRecords = 200

  private let bytes: [UInt8]
  private let isWhole: Bool
  private let lineBreak: UInt8
  private let comment: [UInt8]

  init(_ bytes: [UInt8], isWhole: Bool, _ lineBreak: UInt8, _ comment: [UInt8]) {
    self.bytes = bytes
    self.isWhole = isWhole
    self.lineBreak = lineBreak
    self.comment = comment
  }

  /// The complete records, split by a delimiter; nil for a record that it cannot split.
  private func records(_ delimiter: UInt8) -> [[CSV.Cell]?] {
    let form = CSV.Form(delimiter: delimiter, lineBreak: lineBreak, comment: comment)
    var records: [[CSV.Cell]?] = []
    var position = 0
    while position < bytes.count, records.count < Self.maximumRecords {
      let next = CSV.recordEnd(bytes, from: position, form)
      guard next != nil || isWhole else { break }
      let record = bytes[position..<(next ?? bytes.count)]
      position = record.endIndex
      let isComment = !comment.isEmpty && record.starts(with: comment)
      guard !isComment, record.contains(where: { $0 != 0x0A && $0 != 0x0D }) else { continue }
      records.append(try? CSV.cells(Array(record).bytes, form))
    }
    return records
  }

  /// - Parameter isTable: whether the user said that it is a table.
  func delimiter(isTable: Bool) throws(FormDoubt) -> UInt8 {
    let found = Self.delimiters.map { delimiter in
      let records = records(delimiter)
      let width = records.first.flatMap { $0?.count } ?? 0
      return (delimiter: delimiter, width: width, isEven: records.allSatisfy { $0?.count == width })
    }
    .filter { $0.width > 1 }
    let even = found.filter(\.isEven)
    if even.count == 1, let only = even.first { return only.delimiter }
    if isTable {
      if found.isEmpty { return UInt8(ascii: ",") }
      if found.count == 1, let only = found.first { return only.delimiter }
    }
    if found.isEmpty {
      throw FormDoubt(
        "it does not begin as JSON does, and the first line has no comma, semicolon, tab or bar "
          + "that would make it a table; say --as jsonl, json, csv or tsv")
    }
    let seen = found.map { "\($0.width) with \(FileForm.name($0.delimiter))" }
    throw FormDoubt(
      "the first line has \(seen.joined(separator: ", ")) cells, and "
        + (even.isEmpty ? "other lines have others" : "so have the others")
        + "; say --as csv or tsv with --delimiter ',' or ';' or tab or '|'")
  }

  /// The number of cells in the first record.
  func width(_ delimiter: UInt8) -> Int {
    records(delimiter).first.flatMap { $0?.count } ?? 0
  }

  /// Refuses a first record that does not look like column names.
  func refuseRow(_ delimiter: UInt8) throws(FormDoubt) {
    guard let first = records(delimiter).first.flatMap({ $0?.map(\.text) }) else { return }
    let seen =
      if first.allSatisfy({ Double($0) != nil }) {
        "has numbers only"
      } else if first.contains("") {
        "has an empty cell in it"
      } else {
        ""
      }
    guard !seen.isEmpty else { return }
    throw FormDoubt(
      "the first line \(seen): --columns a,b,c or --no-header when it has no names of columns, "
        + "--as csv or tsv when they are the names")
  }
}
