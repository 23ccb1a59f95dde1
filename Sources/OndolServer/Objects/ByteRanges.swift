// The headers that name some of the bytes of a content: Range, for a part of an answer, and
// Content-Range, for the place of an upload's bytes. Numbers come from strangers: no sign, no more
// digits than a length has.

#if Server
  /// Which bytes a client wants.
  enum WantedBytes: Hashable {
    case all
    case some(Range<Int>)
    /// There are no such bytes.
    case none

    /// - Parameters:
    ///   - header: the value of `Range`. Several ranges, other units and what cannot be read count
    ///     as all bytes, as RFC 9110 allows.
    ///   - length: how many bytes there are, 0 or more.
    init(_ header: String?, of length: Int) {
      self = .all
      guard let header, header.lowercased().hasPrefix("bytes=") else { return }
      let parts = header.dropFirst("bytes=".count)
        .split(separator: "-", omittingEmptySubsequences: false)
      guard parts.count == 2 else { return }
      switch (parts[0].isEmpty, byteCount(parts[0]), parts[1].isEmpty, byteCount(parts[1])) {
      case (true, _, false, let last?):
        self = last == 0 || length == 0 ? .none : .some(max(0, length - last)..<length)
      case (false, let first?, true, _):
        self = first < length ? .some(first..<length) : .none
      case (false, let first?, false, let last?):
        guard first <= last else { return }
        self = first < length ? .some(first..<min(length, last + 1)) : .none
      default: return
      }
    }
  }

  /// The place of an upload's bytes: the header `Content-Range`.
  struct UploadRange: Hashable {
    /// Nil for a question how many have arrived.
    let bytes: Range<Int>?
    /// How many there are in all; nil when the client does not know yet.
    let total: Int?

    /// Nil for what is not such a header.
    init?(_ header: String) {
      guard header.lowercased().hasPrefix("bytes ") else { return nil }
      let parts = header.dropFirst("bytes ".count)
        .split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2 else { return nil }
      total = byteCount(parts[1])
      guard total != nil || parts[1] == "*" else { return nil }
      if parts[0] == "*" {
        bytes = nil
        return
      }
      let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
      guard ends.count == 2, let first = byteCount(ends[0]), let last = byteCount(ends[1]),
        first <= last, last < total ?? .max
      else { return nil }
      bytes = first..<(last + 1)
    }
  }

  /// A number of bytes: up to 18 digits and nothing else.
  func byteCount(_ text: some StringProtocol) -> Int? {
    guard !text.isEmpty, text.utf8.count <= 18,
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int(text)
  }
#endif
