// What is wrong with a rules file, and where. A file is read once, when the server starts, and a
// wrong one is refused whole: a rule that is not understood must not open what it was to close.

#if Server
  /// A place in a rules file, counted from 1. Columns are characters of the line.
  struct RulePlace: Sendable, Hashable, CustomStringConvertible {
    let line: Int
    let column: Int

    var description: String { "\(line):\(column)" }
  }

  /// Why a rules file is refused.
  struct RuleError: Error, Sendable, Hashable, CustomStringConvertible {
    let place: RulePlace
    let message: String

    var description: String { "\(place): \(message)" }
  }

  /// Bytes of a rules file that belong together. An `Int32` is enough, as files have a limit.
  struct RuleSpan: Sendable, Hashable {
    var start: Int32
    var end: Int32
  }

  /// What a rules file may have at most. A file beyond it is refused.
  enum RuleLimits {
    /// Firebase's limit of a source.
    static let sourceBytes = 256 * 1024
    /// Brackets, calls and blocks within each other: parsing and evaluating recurse.
    static let nesting = 100
    /// The same through all the functions that call each other: their checking recurses, too.
    static let checkedNesting = 500
    /// Segments of a path, with those of the matches around it.
    static let segments = 200
    /// Calls of functions within each other.
    static let callDepth = 20
    /// `let`s of a function.
    static let lets = 10
    /// Parameters of a function.
    static let parameters = 7
    /// Functions of a file.
    static let functions = 1_000
  }

  /// The text of a rules file, which turns offsets into places.
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

    /// What is written there.
    func text(of span: RuleSpan) -> String {
      let start = min(max(0, Int(span.start)), bytes.count)
      let end = min(max(start, Int(span.end)), bytes.count)
      return String(decoding: bytes[start..<end], as: UTF8.self)
    }
  }
#endif
