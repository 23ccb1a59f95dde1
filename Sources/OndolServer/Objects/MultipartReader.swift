// Bodies of several parts, piece by piece: an object's metadata and its bytes in one request, or
// the calls of a batch. A part's bytes are passed on as they come, so a part may be of any length;
// its headers may not.

#if Server
  /// Reads the parts of a body.
  struct MultipartReader: Sendable {
    /// What a piece of the body had.
    enum Event: Sendable, Hashable {
      /// A part begins: its headers by their names in lower case, and where in the body.
      case part([String: String], offset: Int)
      case bytes([UInt8])
    }

    private enum Place {
      /// Before the first part.
      case preamble
      /// After a delimiter, where a line break or "--" follows.
      case delimiter
      case headers
      case bytes
      case end
    }

    /// The most bytes of a part's headers, and before the first part.
    static let mostHeaderBytes = 16 << 10

    private let delimiter: [UInt8]
    private var place = Place.preamble
    /// What cannot be decided before more comes.
    private var rest: [UInt8]
    /// Bytes of the body before `rest`, less those that are not in it.
    private var offset = -2

    /// Nil when the type names no boundary.
    ///
    /// - Parameter type: the value of `Content-Type`.
    init?(contentType type: String) {
      guard type.lowercased().hasPrefix("multipart/") else { return nil }
      var boundary: Substring?
      for parameter in type.split(separator: ";").dropFirst() {
        let parameter = parameter.drop { $0 == " " }
        guard parameter.lowercased().hasPrefix("boundary=") else { continue }
        boundary = parameter.dropFirst("boundary=".count)
      }
      guard var boundary else { return nil }
      while boundary.last == " " { boundary.removeLast() }
      if boundary.count > 1, let quote = boundary.first, quote == boundary.last,
        quote == "\"" || quote == "'"
      {
        boundary = boundary.dropFirst().dropLast()
      }
      guard (1...200).contains(boundary.utf8.count) else { return nil }
      delimiter = Array("\r\n--".utf8) + boundary.utf8
      // The first delimiter may be at the very beginning.
      rest = Array("\r\n".utf8)
    }

    /// Bytes of the last delimiter.
    var endLength: Int { delimiter.count + 2 }

    /// Whether the last delimiter has come.
    var isComplete: Bool { place == .end }

    /// Takes a piece of the body.
    ///
    /// - Throws: for what is no such body.
    /// - Complexity: O(bytes).
    mutating func take(_ piece: [UInt8]) throws(StorageFailure) -> [Event] {
      var events: [Event] = []
      rest += piece
      var start = 0
      while try step(&start, &events) {}
      rest.removeFirst(start)
      offset += start
      return events
    }

    /// Goes on in `rest` from `start`; returns whether it got further.
    private mutating func step(
      _ start: inout Int, _ events: inout [Event]
    ) throws(StorageFailure) -> Bool {
      switch place {
      case .preamble:
        guard let found = find(delimiter, from: start) else {
          guard rest.count - start <= Self.mostHeaderBytes else { throw Self.broken }
          return false
        }
        start = found + delimiter.count
        place = .delimiter
      case .delimiter:
        // Spaces may follow a delimiter.
        while start < rest.count, rest[start] == 0x20 || rest[start] == 0x09 { start += 1 }
        guard rest.count - start >= 2 else { return false }
        let next = rest[start..<(start + 2)]
        start += 2
        if next.elementsEqual("--".utf8) {
          place = .end
        } else if next.elementsEqual("\r\n".utf8) {
          // So that a part without headers ends them like all others.
          start -= 2
          place = .headers
        } else {
          throw Self.broken
        }
      case .headers:
        guard let found = find(Array("\r\n\r\n".utf8), from: start) else {
          guard rest.count - start <= Self.mostHeaderBytes else { throw Self.broken }
          return false
        }
        guard found - start <= Self.mostHeaderBytes else { throw Self.broken }
        let headers = try Self.headers(rest[start..<found])
        start = found + 4
        events.append(.part(headers, offset: offset + start))
        place = .bytes
      case .bytes:
        let end = find(delimiter, from: start)
        // A delimiter may have begun at the end.
        let known = end ?? max(start, rest.count - delimiter.count + 1)
        if known > start { events.append(.bytes(Array(rest[start..<known]))) }
        start = known
        guard end != nil else { return false }
        start += delimiter.count
        place = .delimiter
      case .end:
        start = rest.count
        return false
      }
      return true
    }

    private func find(_ wanted: [UInt8], from start: Int) -> Int? {
      var next = start
      let last = rest.count - wanted.count
      while next <= last {
        guard let found = rest[next...last].firstIndex(of: wanted[0]) else { return nil }
        if rest[found..<(found + wanted.count)].elementsEqual(wanted) { return found }
        next = found + 1
      }
      return nil
    }

    private static func headers(
      _ bytes: ArraySlice<UInt8>
    ) throws(StorageFailure) -> [String: String] {
      guard let text = String(validating: bytes, as: UTF8.self) else { throw broken }
      var headers: [String: String] = [:]
      for line in text.split(separator: "\r\n") {
        guard let colon = line.firstIndex(of: ":") else { throw broken }
        let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        headers[line[..<colon].lowercased()] = String(value)
      }
      return headers
    }

    static let broken = StorageFailure.invalid("The body is not of the parts that it should have.")
  }
#endif
