// Messages and the frames that carry them. A long message is sent as the number of its frames and
// then the frames; a frame "0" only keeps the connection alive. What comes is hostile: the number
// of frames and the bytes of a message are limited before anything is kept.

#if Server
  /// Assembles messages from frames.
  struct TreeFrames {
    /// The longest frame that is sent, in bytes of UTF-8. A client's frames have as many UTF-16
    /// units.
    static let frameLength = 16_384
    /// The longest text that can be the number of frames.
    private static let longestCount = 6

    private let messageLimit: Int
    /// The frames that are missing, and those that have come, while a message is incomplete.
    private var missing = 0
    private var parts: [UInt8] = []

    /// - Parameter messageLimit: the longest message, in bytes of UTF-8.
    init(messageLimit: Int) {
      self.messageLimit = messageLimit
    }

    /// Takes a frame; returns a message when it is complete.
    ///
    /// - Throws: `.tooBig` when a message is too long or has too many frames. The connection cannot
    ///   continue then.
    mutating func take(_ frame: String) throws(TreeRefusal) -> [UInt8]? {
      guard parts.count + frame.utf8.count <= messageLimit else {
        throw TreeRefusal(.tooBig, "a message may have \(messageLimit) bytes")
      }
      if missing == 0 {
        guard let count = Self.count(frame) else { return Array(frame.utf8) }
        guard count <= messageLimit / 256 else {
          throw TreeRefusal(.tooBig, "a message may have \(messageLimit / 256) frames")
        }
        missing = count
        return nil
      }
      parts += Array(frame.utf8)
      missing -= 1
      guard missing == 0 else { return nil }
      defer { parts = [] }
      return parts
    }

    /// The number of frames that a frame announces; nil when it is a message.
    private static func count(_ frame: String) -> Int? {
      let octets = frame.utf8
      guard (1...longestCount).contains(octets.count),
        octets.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
      else { return nil }
      return Int(frame)
    }

    /// The frames of a message.
    static func frames(of message: String) -> [String] {
      let octets = message.utf8
      guard octets.count > frameLength else { return [message] }
      var frames: [String] = []
      var start = octets.startIndex
      while start < octets.endIndex {
        var end =
          octets.index(start, offsetBy: frameLength, limitedBy: octets.endIndex)
          ?? octets.endIndex
        // A frame is a text, so it ends between two characters.
        while end < octets.endIndex, octets[end] & 0xC0 == 0x80 { end = octets.index(before: end) }
        frames.append(String(Substring(octets[start..<end])))
        start = end
      }
      return [String(frames.count)] + frames
    }
  }
#endif
