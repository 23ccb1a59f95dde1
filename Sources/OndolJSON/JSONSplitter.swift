// Finds the beginnings and ends of the values in a long JSON text without parsing them: the
// documents of a file that is larger than memory. They are in an array, in an array within an
// object, or one after another. The splitter counts brackets and skips strings. So the value's
// reader finds damage inside it, and the splitter still finds the values after it. Damage between
// values ends the text, because nothing can tell what follows.
//
// The splitter works in a buffer that its user fills and shortens at the front, and keeps its place
// in that buffer.

import Ondol
import OndolEngine

/// Finds values one after another.
package struct JSONSplitter: Sendable {
  /// The place of the values.
  package enum Layout: Sendable, Equatable {
    /// One after another, with white space between them.
    case sequence
    /// In one array.
    case array
    /// In the array under these names of nested objects.
    case member([String])
  }

  /// A name beside those on the way to the array, and the beginning of its value in the buffer.
  package struct Neighbour: Sendable {
    package let name: String
    package let value: Int
  }

  /// What may follow.
  private enum State {
    case opening
    /// A value of a sequence, or the end.
    case value
    case firstElement, element, afterElement
    case firstName, name, colon, memberValue, afterMember
    case end
  }

  /// Returns the members of the object that `bytes` are or begin with, as far as they go.
  package static func members(of bytes: [UInt8], lineBreak: UInt8) -> [Neighbour] {
    var splitter = JSONSplitter(.member([""]), lineBreak: lineBreak)
    splitter.isSeeking = false
    // The reader of the value finds any mistake in it.
    _ = try? splitter.next(in: bytes, isAtEnd: false)
    return splitter.neighbours
  }

  /// How far the current token is read.
  private enum Token {
    case container(depth: Int, isInString: Bool)
    case string
    case word
  }

  /// At most this many names are kept.
  private static let keptNeighbours = 32

  private let keys: [String]
  private let lineBreak: UInt8
  private let comment: [UInt8]
  private var state: State
  private var token: Token?
  private var isBehindBackslash = false
  private var isInComment = false
  private var isAtLineStart = true
  private var isFound: Bool
  /// Whether there is an array to find.
  private var isSeeking = true
  /// Objects on the way to the array that are open.
  private var level = 0
  /// Whether the value of a name on the way follows.
  private var isOnTheWay = false
  /// The beginning of the value or name that is being read.
  package private(set) var start: Int?
  /// The part of the buffer that has been examined.
  package private(set) var position = 0
  package private(set) var neighbours: [Neighbour] = []

  /// - Parameters:
  ///   - goesOn: whether the text begins after one of the values.
  ///   - comment: the beginning of a comment line between values; empty if there are none.
  package init(
    _ layout: Layout, lineBreak: UInt8 = 0x0A, comment: [UInt8] = [], goesOn: Bool = false
  ) {
    self.lineBreak = lineBreak
    self.comment = comment
    isAtLineStart = !goesOn
    isFound = goesOn
    switch layout {
    case .sequence:
      keys = []
      state = .value
    case .array:
      keys = []
      state = goesOn ? .afterElement : .opening
    case .member(let names):
      keys = names
      state = goesOn ? .afterElement : .opening
      level = goesOn ? names.count : 0
    }
  }

  /// Whether a wanted value has begun.
  package var isInValue: Bool { start != nil }

  /// Accounts for bytes that the buffer has lost at its front.
  package mutating func move(by distance: Int) {
    position -= distance
    start = start.map { $0 - distance }
  }

  /// Returns the next value that is complete in `bytes`, whose beginning is unchanged; nil if it
  /// needs more bytes, and after the last value.
  ///
  /// - Throws: the mistake between the values. Its column counts from the beginning of `bytes`.
  package mutating func next(
    in bytes: [UInt8], isAtEnd: Bool
  ) throws(JSONError) -> Range<Int>? {
    while true {
      if token != nil {
        guard try finishToken(bytes, isAtEnd) else { return nil }
        if let range = try endToken(bytes) { return range }
        continue
      }
      guard skipSpace(bytes, isAtEnd) else {
        if isAtEnd { try end() }
        return nil
      }
      isAtLineStart = false
      try take(bytes[position])
    }
  }

  private func error(_ reason: String) -> JSONError {
    JSONError(reason: reason, column: position + 1)
  }

  /// Skips white space and comments. Returns false if nothing else has arrived yet.
  private mutating func skipSpace(_ bytes: [UInt8], _ isAtEnd: Bool) -> Bool {
    while position < bytes.count {
      let byte = bytes[position]
      if isInComment {
        isInComment = byte != lineBreak
      } else if byte != 0x20, byte != 0x09, byte != 0x0A, byte != 0x0D {
        guard isAtLineStart, !comment.isEmpty else { return true }
        let rest = bytes[position...].prefix(comment.count)
        if rest.count < comment.count, !isAtEnd, comment.starts(with: rest) { return false }
        guard rest.elementsEqual(comment) else { return true }
        isInComment = true
      }
      isAtLineStart = byte == lineBreak
      position += 1
    }
    return false
  }
}

// MARK: - Structure

extension JSONSplitter {
  /// Takes a byte between values, or begins a value.
  private mutating func take(_ byte: UInt8) throws(JSONError) {
    switch (state, byte) {
    case (.opening, UInt8(ascii: "{")) where !keys.isEmpty: state = .firstName
    case (.opening, UInt8(ascii: "[")) where keys.isEmpty: state = .firstElement
    case (.opening, _):
      throw error(keys.isEmpty ? "'[' is missing" : "an object was to begin here")
    case (.firstElement, UInt8(ascii: "]")), (.afterElement, UInt8(ascii: "]")):
      state = keys.isEmpty ? .end : .afterMember
      if !keys.isEmpty { level = keys.count - 1 }
    case (.afterElement, UInt8(ascii: ",")): state = .element
    case (.afterElement, _): throw error("',' or ']' is missing")
    case (.firstName, UInt8(ascii: "}")), (.afterMember, UInt8(ascii: "}")):
      guard isFound || level > 0 else { throw missing() }
      if level == 0 { state = .end } else { level -= 1; state = .afterMember }
    case (.afterMember, UInt8(ascii: ",")): state = .name
    case (.afterMember, _): throw error("',' or '}' is missing")
    case (.firstName, UInt8(ascii: "\"")), (.name, UInt8(ascii: "\"")): begin(byte)
    case (.firstName, _), (.name, _): throw error("a name in quotes is missing")
    case (.colon, UInt8(ascii: ":")): state = .memberValue
    case (.colon, _): throw error("':' is missing after a name")
    case (.memberValue, _) where isOnTheWay:
      let isLast = level == keys.count - 1
      guard byte == UInt8(ascii: isLast ? "[" : "{") else {
        let name = keys[level]
        throw error("\"\(name)\" was to be \(isLast ? "an array" : "an object")")
      }
      level += 1
      state = isLast ? .firstElement : .firstName
      if isLast { isFound = true }
    case (.value, UInt8(ascii: ",")):
      throw error("a comma between objects that are in no array")
    case (.end, _): throw error("something follows the end")
    case (_, UInt8(ascii: "}")), (_, UInt8(ascii: "]")), (_, UInt8(ascii: ",")),
      (_, UInt8(ascii: ":")):
      throw error("a value is missing")
    default:
      begin(byte)
      return
    }
    if token == nil { position += 1 }
  }

  private func missing() -> JSONError {
    error("there is no \"\(keys.joined(separator: "\".\""))\" in the object")
  }

  private mutating func begin(_ byte: UInt8) {
    // Values beside the array are skipped and need no buffer.
    if state != .memberValue { start = position }
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["): token = .container(depth: 0, isInString: false)
    case UInt8(ascii: "\""): token = .string
    default: token = .word
    }
    isBehindBackslash = false
    if case .string? = token { position += 1 }
  }

  /// The end of the text.
  private func end() throws(JSONError) {
    switch state {
    case .value, .end: return
    case .opening: throw error("nothing is in it")
    case .firstElement, .element, .afterElement: throw error("the array's ']' is missing")
    default: throw error("the object's '}' is missing")
    }
  }
}

// MARK: - Values

extension JSONSplitter {
  /// Goes to the end of the current token. Returns false if it continues after `bytes`.
  private mutating func finishToken(_ bytes: [UInt8], _ isAtEnd: Bool) throws(JSONError) -> Bool {
    let isWhole: Bool
    switch token {
    case .container(let depth, let isInString): isWhole = finishContainer(bytes, depth, isInString)
    case .string: isWhole = skipString(bytes)
    case .word, nil:
      while position < bytes.count, !Self.endsWord(bytes[position]) { position += 1 }
      isWhole = position < bytes.count || isAtEnd
    }
    if !isWhole, isAtEnd {
      position = start ?? position
      throw error("what begins here is never closed")
    }
    return isWhole
  }

  /// Returns the token that has ended, if it is a wanted value.
  private mutating func endToken(_ bytes: [UInt8]) throws(JSONError) -> Range<Int>? {
    token = nil
    let range = (start ?? position)..<position
    start = nil
    switch state {
    case .value: return range
    case .firstElement, .element:
      state = .afterElement
      return range
    case .memberValue: state = .afterMember
    default:
      try takeName(bytes, range)
      state = .colon
    }
    return nil
  }

  private mutating func takeName(_ bytes: [UInt8], _ range: Range<Int>) throws(JSONError) {
    guard let name = try? JSONReader.read(Array(bytes[range]), .plain).string else {
      throw error("the name before this is no text")
    }
    isOnTheWay = isSeeking && level < keys.count && keys[level] == name
    if isOnTheWay, isFound { throw error("\"\(name)\" stands twice") }
    if !isOnTheWay, neighbours.count < Self.keptNeighbours {
      neighbours.append(Neighbour(name: name, value: position))
    }
  }

  private mutating func finishContainer(
    _ bytes: [UInt8], _ begun: Int, _ wasInString: Bool
  ) -> Bool {
    var depth = begun
    var isInString = wasInString
    while position < bytes.count {
      if isInString {
        guard skipString(bytes) else { break }
        isInString = false
        continue
      }
      let byte = bytes[position]
      position += 1
      switch byte {
      case UInt8(ascii: "\""): isInString = true
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 0 { return true }
      default: break
      }
    }
    token = .container(depth: depth, isInString: isInString)
    return false
  }

  /// Goes past the quote that closes a string, or past a line break, which no string can contain:
  /// in that case a quote is missing, and the string takes in no further line.
  private mutating func skipString(_ bytes: [UInt8]) -> Bool {
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      if isBehindBackslash {
        isBehindBackslash = false
      } else if byte == UInt8(ascii: "\"") || byte == lineBreak {
        return true
      } else {
        isBehindBackslash = byte == UInt8(ascii: "\\")
      }
    }
    return false
  }

  private static func endsWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: ","), UInt8(ascii: "]"), UInt8(ascii: "}"), 0x20, 0x09, 0x0A, 0x0D: true
    default: false
    }
  }
}
