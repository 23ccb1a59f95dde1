// The page's files, as a browser receives them. They come from Web, which the C compiler embeds.
// This code removes, once in the life of a process, what only makes them pleasant to edit.

import COndolFiles

/// The page's files by their names.
enum Assets {
  static let files: [String: String] = {
    var files: [String: String] = [:]
    var index = 0
    // Name and text end in a zero byte and live as long as the program: see COndolFiles.h.
    while let file = unsafe ondol_console_page(index)?.pointee {
      let name = unsafe String(cString: file.name)
      let text = unsafe String(cString: file.text)
      files[name] = shipped(text, isStyle: name.hasSuffix(".css"))
      index += 1
    }
    return files
  }()

  /// Returns a file without indentation, empty lines and comments on lines of their own, and a
  /// style sheet also without insignificant blanks: a sixth less to send. It works on bytes,
  /// because searching for whole characters takes ten times as long.
  static func shipped(_ text: String, isStyle: Bool) -> String {
    var shipped: [UInt8] = []
    var isComment = false
    for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
      let bare = trimmed(line)
      isComment = isComment || bare.starts(with: "/*".utf8)
      if !bare.isEmpty, !isComment, !bare.starts(with: "//".utf8) {
        let isPlain = isStyle && !bare.contains(UInt8(ascii: "\""))
        shipped += isPlain ? withoutBlanks(bare) : Array(bare)
        shipped.append(UInt8(ascii: "\n"))
      }
      isComment = isComment && !Substring(bare).contains("*/")
    }
    return String(decoding: shipped, as: UTF8.self)
  }

  private static func trimmed(_ line: Substring.UTF8View) -> Substring.UTF8View {
    let start = line.drop { $0 == blank }
    return start.lastIndex { $0 != blank }.map { start[...$0] } ?? start
  }

  /// Removes the blanks that mean nothing to a browser, in style sheets and outside quotes.
  private static func withoutBlanks(_ line: Substring.UTF8View) -> [UInt8] {
    var short: [UInt8] = []
    for byte in line {
      switch byte {
      case blank:
        if let last = short.last, ":{;,".utf8.contains(last) { continue }
      case UInt8(ascii: "{"), UInt8(ascii: "}"):
        if short.last == blank { short.removeLast() }
        if byte == UInt8(ascii: "}"), short.last == UInt8(ascii: ";") { short.removeLast() }
      default: break
      }
      short.append(byte)
    }
    return short
  }

  private static let blank = UInt8(ascii: " ")
}
