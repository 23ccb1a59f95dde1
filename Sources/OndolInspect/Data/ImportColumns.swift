// The names of a table's columns: from its first record, from the command line, or generated. A
// problem with them affects every row, so it is reported once, before the first document.

import OndolEngine
import OndolJSON
import OndolTerminal

extension PieceReader {
  /// The names of the columns of a table that has been started; empty if the table is.
  ///
  /// - Parameter said: the names from the command line.
  mutating func columns(_ said: [String]) throws(CommandFailure) -> [String] {
    guard said.isEmpty else { return said }
    guard form.hasHeader else { return form.columns }
    while let piece = try next(records: 1) {
      let comment = form.table.comment
      let isComment = !comment.isEmpty && piece.bytes.starts(with: comment)
      guard !isComment, piece.bytes.contains(where: { $0 != 0x0A && $0 != 0x0D }) else { continue }
      do throws(CSVError) {
        return try CSV.cells(piece.bytes.bytes, form.table).map(\.text)
      } catch {
        throw CommandFailure(
          .failed,
          "\(name): line \(piece.start.lines + 1): column \(error.offset + 1): \(error.reason), in "
            + "the names of the columns")
      }
    }
    return []
  }
}

extension ImportParser {
  /// Rejects names with which no row could become a document.
  func checkHeader(in file: String) throws(CommandFailure) {
    let place = file == "-" ? "standard input" : file
    var seen: Set<String> = []
    for (index, name) in header.enumerated() {
      // Cells without a column name are rejected if they are not empty.
      guard name.isEmpty || seen.insert(name).inserted else {
        throw CommandFailure(
          .failed,
          "\(place): line 1: two columns have the same name, \(name); --columns names the columns "
            + "of a file without its first line")
      }
      guard Self.isReserved(name), name != JSONWriter.documentIDName, !leftOut.contains(name) else {
        continue
      }
      throw CommandFailure(
        .failed,
        "\(place): line 1: column \(index + 1) is called \(name), and no field can be; "
          + "--leave-out \(name) imports the others")
    }
    if let idField, !header.contains(idField) {
      throw CommandFailure(
        .failed,
        "\(place): line 1: there is no column \(idField) for the ids, but "
          + header.joined(separator: ", "))
    }
  }
}
