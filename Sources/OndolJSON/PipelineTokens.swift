// The words of a pipeline in text form: names, numbers, texts and signs, each with its position.

/// A word of a pipeline.
enum PipelineToken: Equatable {
  /// A name, or a path of names in the form of field paths.
  case name(String)
  case integer(Int)
  case double(Double)
  case text(String)
  case sign(String)
}

/// What is wrong with a pipeline's text, and where.
package struct PipelineTextError: Error {
  package let message: String
  /// Characters before it.
  package let position: Int
}

/// Splits a pipeline's text.
struct PipelineScanner {
  private let scalars: [Unicode.Scalar]
  private var position = 0

  /// Signs of two characters before those of one.
  private static let signs = [
    "==", "!=", "<=", ">=", "|", "(", ")", "[", "]", ",", "=", "<", ">", "+", "-", "*", "/", "%",
  ]

  init(_ text: String) {
    scalars = Array(text.unicodeScalars)
  }

  /// All words with their positions.
  mutating func tokens() throws(PipelineTextError) -> [(token: PipelineToken, position: Int)] {
    var tokens: [(token: PipelineToken, position: Int)] = []
    while true {
      while let next = peek, next.properties.isWhitespace { position += 1 }
      guard let next = peek else { return tokens }
      let start = position
      tokens.append((try token(next), start))
    }
  }

  private var peek: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

  private mutating func token(_ first: Unicode.Scalar) throws(PipelineTextError) -> PipelineToken {
    if first == "\"" || first == "'" { return .text(try text(first)) }
    if ("0"..."9").contains(first) { return try number() }
    if first == "`" || Self.isOfName(first) { return .name(try name()) }
    for sign in Self.signs {
      let end = position + sign.unicodeScalars.count
      guard end <= scalars.count, scalars[position..<end].elementsEqual(sign.unicodeScalars) else {
        continue
      }
      position = end
      return .sign(sign)
    }
    throw error("\"\(first)\" is nothing that a pipeline has")
  }

  private static func isOfName(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
      || "_$".unicodeScalars
        .contains(scalar)
  }

  /// A path: names with dots or slashes between, in backquotes where they have other characters.
  private mutating func name() throws(PipelineTextError) -> String {
    var name = String.UnicodeScalarView()
    while let next = peek {
      if next == "`" {
        repeat {
          guard let inner = peek else { throw error("a ` has no end") }
          name.append(inner)
          position += 1
          if inner == "\\", let literal = peek {
            name.append(literal)
            position += 1
          }
        } while peek != "`"
        name.append("`")
        position += 1
      } else if Self.isOfName(next) || isInnerOfName(next) {
        name.append(next)
        position += 1
      } else {
        break
      }
    }
    return String(name)
  }

  /// Whether a dot or a slash stands between two names.
  private func isInnerOfName(_ scalar: Unicode.Scalar) -> Bool {
    guard scalar == "." || scalar == "/", position > 0, position + 1 < scalars.count else {
      return false
    }
    let (before, after) = (scalars[position - 1], scalars[position + 1])
    return (Self.isOfName(before) || before == "`") && (Self.isOfName(after) || after == "`")
  }

  private mutating func number() throws(PipelineTextError) -> PipelineToken {
    let start = position
    while let next = peek,
      ("0"..."9").contains(next) || ".eE".unicodeScalars.contains(next)
        || "+-".unicodeScalars.contains(next) && "eE".unicodeScalars.contains(scalars[position - 1])
    {
      position += 1
    }
    let text = String(String.UnicodeScalarView(scalars[start..<position]))
    if let integer = Int(text) { return .integer(integer) }
    guard let double = Double(text) else { throw error("\"\(text)\" is no number") }
    return .double(double)
  }

  private mutating func text(_ quote: Unicode.Scalar) throws(PipelineTextError) -> String {
    var text = String.UnicodeScalarView()
    position += 1
    while let next = peek {
      position += 1
      if next == quote { return String(text) }
      guard next == "\\" else {
        text.append(next)
        continue
      }
      guard let escaped = peek else { break }
      position += 1
      switch escaped {
      case "n": text.append("\n")
      case "t": text.append("\t")
      default: text.append(escaped)
      }
    }
    throw error("a text has no \(quote) at its end")
  }

  private func error(_ message: String) -> PipelineTextError {
    PipelineTextError(message: message, position: position)
  }
}
