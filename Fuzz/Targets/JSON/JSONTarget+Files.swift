// Files of any bytes: their form is found, or refused with a place inside them, and their values
// and records are the same in pieces of any length.

import OndolEngine
import OndolJSON

extension JSONTarget {
  static func readFile(_ input: inout FuzzInput) {
    var hints = FormHints()
    hints.comment = input.flag() ? "#" : ""
    hints.at = input.flag() ? ["a"] : []
    hints.format = input.flag() ? .csv : nil
    let step = 1 + input.below(8)
    let bytes = input.rest()
    for isWhole in [true, false] {
      do throws(FormDoubt) {
        let form = try FormFinder.form(of: bytes, isWhole: isWhole, hints)
        if form.format.isTable { readRecords(bytes, form.table) }
      } catch {
        let lines = bytes.count { $0 == 0x0A || $0 == 0x0D } + 1
        let (line, column) = (error.line ?? 1, error.column ?? 1)
        demand(
          (1...lines).contains(line) && (1...bytes.count + 1).contains(column),
          "\(error.reason) in line \(line), column \(column)")
      }
    }
    for layout in [JSONSplitter.Layout.sequence, .array, .member(["a"])] {
      let comment = Array(hints.comment.utf8)
      let whole = values(bytes, layout, comment, by: max(1, bytes.count))
      let parts = values(bytes, layout, comment, by: step)
      demand(whole == parts, "\(bytes) has \(whole), and by \(step) \(parts)")
    }
  }

  /// Returns the places of the values, and at the end the place of the mistake.
  private static func values(
    _ bytes: [UInt8], _ layout: JSONSplitter.Layout, _ comment: [UInt8], by step: Int
  ) -> [Range<Int>] {
    var splitter = JSONSplitter(layout, comment: comment)
    var buffer: [UInt8] = []
    var (removed, next) = (0, 0)
    var found: [Range<Int>] = []
    while true {
      let isAtEnd = next == bytes.count
      do throws(JSONError) {
        while let range = try splitter.next(in: buffer, isAtEnd: isAtEnd) {
          found.append(range.lowerBound + removed..<range.upperBound + removed)
        }
      } catch {
        let place = error.column - 1 + removed
        demand((0...bytes.count).contains(place), "\(error.reason) at \(place)")
        return found + [place..<place]
      }
      if isAtEnd { return found }
      let used = splitter.start ?? splitter.position
      buffer.removeSubrange(..<used)
      splitter.move(by: used)
      removed += used
      let end = min(next + step, bytes.count)
      buffer += bytes[next..<end]
      next = end
    }
  }

  private static func readRecords(_ bytes: [UInt8], _ form: CSV.Form) {
    var start = 0
    while let end = CSV.recordEnd(bytes, from: start, form) {
      demand(end > start && end <= bytes.count, "a record from \(start) to \(end)")
      _ = try? CSV.cells(Array(bytes[start..<end]).bytes, form)
      start = end
    }
  }
}
