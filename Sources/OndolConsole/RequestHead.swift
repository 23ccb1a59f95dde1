// The head of a request, in exactly the form of RFC 9112. Browsers write that form. Anything that
// can be read in two ways can hide one request in another.

/// The beginning of a request.
struct RequestHead: Sendable {
  /// Its largest size in bytes.
  static let longest = 128 << 10
  private static let mostFields = 100

  /// The length of the body after the head.
  enum Body: Sendable, Equatable {
    case bytes(Int)
    case chunks
  }

  var method = ""
  var target = ""
  var headers: [(name: String, value: String)] = []
  var body = Body.bytes(0)
  /// Whether no other request may follow this one.
  var isLast = false
  /// Whether it is HTTP/1.0, which has no chunks.
  var isOld = false
  /// Whether the client sends the body only when the server asks for it.
  var isWaiting = false

  /// Reads a head.
  ///
  /// - Parameter bytes: all its lines with their line ends, without the empty line.
  init(_ bytes: some Sequence<UInt8>) throws {
    var lines: [[UInt8]] = []
    var line: [UInt8] = []
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") else {
        line.append(byte)
        continue
      }
      guard line.popLast() == UInt8(ascii: "\r"), lines.count <= Self.mostFields else {
        throw Self.wrong("its lines are too many, or do not end in CR LF")
      }
      lines.append(line)
      line = []
    }
    guard line.isEmpty, let first = lines.first else { throw Self.wrong("it has no end") }
    try readRequestLine(first)
    for line in lines.dropFirst() { try readField(line) }
    try readFraming()
  }

  private static func wrong(_ reason: String) -> ConsoleFailure {
    .wrong("this is not a valid request: \(reason)")
  }

  private mutating func readRequestLine(_ line: [UInt8]) throws {
    let parts = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard parts.count == 3, Self.isToken(parts[0]), !parts[1].isEmpty,
      parts[1].allSatisfy({ (0x21...0x7e).contains($0) })
    else { throw Self.wrong("its first line is not METHOD TARGET HTTP/1.1") }
    method = String(decoding: parts[0], as: UTF8.self)
    target = String(decoding: parts[1], as: UTF8.self)
    switch String(decoding: parts[2], as: UTF8.self) {
    case "HTTP/1.1": break
    case "HTTP/1.0":
      isOld = true
      isLast = true
    default: throw Self.wrong("only HTTP/1.1 is supported")
    }
  }

  private mutating func readField(_ line: [UInt8]) throws {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), Self.isToken(line[..<colon]) else {
      throw Self.wrong("a line is not NAME: VALUE")
    }
    func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    var value = line[(colon + 1)...].drop(while: isSpace)
    while let last = value.last, isSpace(last) { value.removeLast() }
    guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == UInt8(ascii: "\t") }) else {
      throw Self.wrong("a value has control characters")
    }
    headers.append(
      (String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self)))
  }

  private mutating func readFraming() throws {
    func values(_ name: String) -> [String] {
      headers.filter { $0.name.lowercased() == name }.map { $0.value.lowercased() }
    }
    let lengths = values("content-length")
    let codings = values("transfer-encoding")
    guard lengths.count + codings.count <= 1 else {
      throw Self.wrong("its length is given twice")
    }
    if let text = lengths.first {
      guard let length = Self.digits(text.utf8, radix: 10) else {
        throw Self.wrong("its length is not a number")
      }
      body = .bytes(length)
    }
    if let coding = codings.first {
      guard coding == "chunked", !isOld else { throw Self.wrong("its coding is not chunked") }
      body = .chunks
    }
    let options = values("connection").flatMap { $0.split(separator: ",") }
    if options.contains(where: { $0.filter { !$0.isWhitespace } == "close" }) { isLast = true }
    isWaiting = values("expect") == ["100-continue"] && !isOld
  }

  /// A number of only digits; nil for anything else, and for a number that is too large.
  static func digits(_ text: some Collection<UInt8>, radix: Int) -> Int? {
    guard !text.isEmpty, text.count <= 18 else { return nil }
    var number = 0
    for byte in text {
      let digit: Int
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = Int(byte - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = Int(byte - UInt8(ascii: "a")) + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = Int(byte - UInt8(ascii: "A")) + 10
      default: return nil
      }
      guard digit < radix else { return nil }
      let (product, isTooLarge) = number.multipliedReportingOverflow(by: radix)
      let (sum, isOver) = product.addingReportingOverflow(digit)
      guard !isTooLarge, !isOver else { return nil }
      number = sum
    }
    return number
  }

  private static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
    !bytes.isEmpty
      && bytes.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"):
          true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }
}
