// A mistake in a rules file, with its place. The server reads a file once, when it starts, and
// refuses a wrong one whole, because a misunderstood rule must not open what it should close.

#if Server
  /// A place in a rules file, counted from 1. Columns are characters of the line.
  struct RulePlace: Sendable, Hashable, CustomStringConvertible {
    let line: Int
    let column: Int

    var description: String { "\(line):\(column)" }
  }

  /// Why the server refuses a rules file.
  struct RuleError: Error, Sendable, Hashable, CustomStringConvertible {
    let place: RulePlace
    let message: String

    var description: String { "\(place): \(message)" }
  }

  /// A range of bytes in a rules file. An `Int32` is enough, because files have a limit.
  struct RuleSpan: Sendable, Hashable {
    var start: Int32
    var end: Int32
  }

  /// The limits of a rules file. The server refuses a file beyond them.
  enum RuleLimits {
    /// Firebase's limit for the source.
    static let sourceBytes = 256 * 1024
    /// The deepest nesting of brackets, calls and blocks: parsing and evaluating recurse.
    static let nesting = 100
    /// The same through all functions that call each other, because checking them recurses as well.
    static let checkedNesting = 500
    /// The largest number of segments of a path, including those of the matches around it.
    static let segments = 200
    /// The deepest nesting of calls.
    static let callDepth = 20
    /// The largest number of `let`s in a function.
    static let lets = 10
    /// The largest number of parameters of a function.
    static let parameters = 7
    /// The largest number of functions in a file.
    static let functions = 1_000
  }

  /// The text of a rules file, which converts offsets to places.
  struct RuleSource: Sendable {
    let bytes: [UInt8]

    init(_ text: String) { bytes = Array(text.utf8) }

    /// - Complexity: O(`offset`).
    func place(at offset: Int) -> RulePlace {
      var line = 1
      var column = 1
      for byte in bytes.prefix(offset) {
        if byte == UInt8(ascii: "\n") {
          line += 1
          column = 1
        } else if byte & 0xC0 != 0x80 {
          column += 1
        }
      }
      return RulePlace(line: line, column: column)
    }

    func place(of span: RuleSpan) -> RulePlace { place(at: Int(span.start)) }

    /// Returns the text of a span.
    func text(of span: RuleSpan) -> String {
      let start = min(max(0, Int(span.start)), bytes.count)
      let end = min(max(start, Int(span.end)), bytes.count)
      return String(decoding: bytes[start..<end], as: UTF8.self)
    }
  }
#endif
