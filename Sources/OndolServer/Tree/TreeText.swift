// Nodes as JSON. Our own writer, because the protocol has its own arrays: an object becomes an
// array when its keys are small integers and more than half of them are there, and a number that is
// whole has no fraction. Keys are written as they are, also two that are canonically equivalent.

#if Server
  import Ondol

  /// Writes JSON.
  struct TreeText {
    enum Form: Sendable {
      /// Values alone.
      case plain
      /// With `.priority`, and `.value` for leaves that have one.
      case exported
    }

    private(set) var bytes: [UInt8] = []
    private let form: Form

    private init(_ form: Form) {
      self.form = form
    }

    /// A node as JSON; null when it does not exist.
    ///
    /// - Complexity: O(nodes).
    static func json(_ data: TreeData, _ form: Form = .exported) -> String {
      var text = TreeText(form)
      text.write(data)
      return String(decoding: text.bytes, as: UTF8.self)
    }

    /// A node for which only the keys of the children are of interest: each is true.
    static func shallow(_ data: TreeData) -> String {
      guard data.leaf == nil, data.exists else { return json(data, .plain) }
      var text = TreeText(.plain)
      text.append("{")
      var isFirst = true
      data.forEachChild { key, _ in
        if !isFirst { text.append(",") }
        isFirst = false
        text.write(key)
        text.append(":true")
      }
      text.append("}")
      return String(decoding: text.bytes, as: UTF8.self)
    }

    /// A node as JSON for people, with two spaces for each level.
    static func pretty(_ data: TreeData, _ form: Form) -> String {
      var text: [UInt8] = []
      var depth = 0
      var isInQuotes = false
      var previous: UInt8 = 0
      func breakLine() { text += [0x0A] + [UInt8](repeating: 0x20, count: 2 * depth) }
      for octet in json(data, form).utf8 {
        if isInQuotes {
          text.append(octet)
          // A second backslash escapes nothing.
          let isEscaped = previous == UInt8(ascii: "\\")
          if octet == UInt8(ascii: "\""), !isEscaped { isInQuotes = false }
          previous = isEscaped ? 0 : octet
          continue
        }
        switch octet {
        case UInt8(ascii: "\""):
          (isInQuotes, previous) = (true, 0)
          text.append(octet)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
          depth += 1
          text.append(octet)
          breakLine()
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
          depth -= 1
          breakLine()
          text.append(octet)
        case UInt8(ascii: ","):
          text.append(octet)
          breakLine()
        case UInt8(ascii: ":"): text += [octet, 0x20]
        default: text.append(octet)
        }
      }
      return String(decoding: text, as: UTF8.self)
    }

    /// A text in quotes.
    static func json(_ text: String) -> String {
      var writer = TreeText(.plain)
      writer.write(text)
      return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// A value as JSON, which has what JSON has.
    static func json(_ value: Value) -> String {
      var text = TreeText(.plain)
      text.write(value)
      return String(decoding: text.bytes, as: UTF8.self)
    }

    // MARK: - Nodes

    private mutating func write(_ data: TreeData) {
      let priority = form == .exported ? data.priority : nil
      guard data.exists else { return append("null") }
      if let leaf = data.leaf {
        guard let priority else { return write(leaf) }
        append("{\".value\":")
        write(leaf)
        append(",\".priority\":")
        write(priority)
        return append("}")
      }
      if priority == nil, let count = Self.elementCount(data) { return writeArray(data, count) }
      append("{")
      var isFirst = true
      if let priority {
        append("\".priority\":")
        write(priority)
        isFirst = false
      }
      data.forEachChild { key, child in
        if !isFirst { append(",") }
        isFirst = false
        write(key)
        append(":")
        write(child)
      }
      append("}")
    }

    private mutating func writeArray(_ data: TreeData, _ count: Int) {
      append("[")
      var next = 0
      data.forEachChild { key, child in
        let index = Int(key) ?? next
        while next < index {
          append("null,")
          next += 1
        }
        write(child)
        next += 1
        if next < count { append(",") }
      }
      append("]")
    }

    /// The number of elements when the children are those of an array: all keys are plain indexes,
    /// in order, and more than half of them are there.
    private static func elementCount(_ data: TreeData) -> Int? {
      var last = -1
      do throws(NoArray) {
        try data.forEachChild { (key, _) throws(NoArray) in
          guard key.utf8.count <= 9, let index = Int(key), index >= 0, String(index) == key else {
            throw NoArray()
          }
          last = max(last, index)
        }
      } catch {
        return nil
      }
      return last < 2 * data.childCount ? last + 1 : nil
    }

    private struct NoArray: Error {}

    // MARK: - Scalars

    private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

    private mutating func write(_ value: Value) {
      switch value {
      case .boolean(let truth): append(truth ? "true" : "false")
      case .integer(let number): append(String(number))
      case .double(let number): write(number)
      case .string(let text): write(text)
      case .array(let elements):
        append("[")
        for (index, element) in elements.enumerated() {
          if index > 0 { append(",") }
          write(element)
        }
        append("]")
      case .map(let fields):
        append("{")
        for (index, field) in fields.sorted(by: { $0.key < $1.key }).enumerated() {
          if index > 0 { append(",") }
          write(field.key)
          append(":")
          write(field.value)
        }
        append("}")
      default: append("null")
      }
    }

    private mutating func write(_ number: Double) {
      guard number.isFinite else { return append("null") }
      let text = String(number)
      append(text.hasSuffix(".0") ? String(text.dropLast(2)) : text)
    }

    private mutating func write(_ text: String) {
      bytes.append(UInt8(ascii: "\""))
      defer { bytes.append(UInt8(ascii: "\"")) }
      // Nearly every text.
      if !text.utf8.contains(where: Self.needsEscape) { return append(text) }
      for octet in text.utf8 {
        switch octet {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), octet]
        case 0x0A: append("\\n")
        case 0x0D: append("\\r")
        case 0x09: append("\\t")
        case 0..<0x20, 0x7F:
          let digits = String(octet, radix: 16)
          append("\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits)
        default: bytes.append(octet)
        }
      }
    }

    private static func needsEscape(_ octet: UInt8) -> Bool {
      octet < 0x20 || octet == UInt8(ascii: "\"") || octet == UInt8(ascii: "\\") || octet == 0x7F
    }
  }
#endif
