// Bytes on their way to a client, which may be a browser. An object may be a page with a program in
// it, and the server did not write that page. So no answer is active content: the browser is told
// not to guess types, to give the page no origin and no program, and to save what could be
// one.

#if Server
  import Ondol

  enum ObjectDownload {
    /// The answer with the bytes that a call wants.
    static func answer(
      _ object: StorageMetadata, _ content: OpenedContent, for call: HTTPCall
    ) throws(StorageFailure) -> HTTPAnswer {
      try object.check(tagsIn: call.headers)
      var header = call.headers["range"]
      if let wanted = call.headers["if-range"], wanted != "\"\(object.tag)\"" { header = nil }
      var answer = HTTPAnswer(type: object.contentType ?? StorageMetadata.usualType)
      answer.headers += headers(of: object)
      let range: Range<Int>
      switch WantedBytes(header, of: object.size) {
      case .all: range = 0..<object.size
      case .some(let some):
        range = some
        answer.status = 206
        answer.headers.append(
          ("content-range", "bytes \(some.lowerBound)-\(some.upperBound - 1)/\(object.size)"))
      case .none:
        var answer = StorageFailure(416, "There are no such bytes.").answer
        answer.headers.append(("content-range", "bytes */\(object.size)"))
        return answer
      }
      answer.stream = (range.count, content.bytes(in: range))
      return answer
    }

    private static func headers(
      of object: StorageMetadata
    ) -> [(name: String, value: String)] {
      var headers: [(name: String, value: String)] = [
        ("etag", "\"\(object.tag)\""), ("accept-ranges", "bytes"),
        ("cache-control", object.cacheControl ?? "private, max-age=0"),
        ("x-goog-generation", "\(object.generation)"),
        ("x-goog-metageneration", "\(object.metageneration)"),
        ("x-goog-stored-content-length", "\(object.size)"),
        ("x-goog-stored-content-encoding", object.contentEncoding ?? "identity"),
        ("x-goog-storage-class", "STANDARD"),
        ("content-security-policy", policy),
      ]
      if let crc32c = object.crc32cText, let md5 = object.md5Text {
        headers.append(("x-goog-hash", "crc32c=\(crc32c),md5=\(md5)"))
      }
      if let time = object.updated { headers.append(("last-modified", time.headerText)) }
      if let encoding = object.contentEncoding, encoding != "identity" {
        headers.append(("content-encoding", encoding))
      }
      if let language = object.contentLanguage { headers.append(("content-language", language)) }
      if let disposition = disposition(of: object) {
        headers.append(("content-disposition", disposition))
      }
      return headers
    }

    /// A page gets no origin and runs nothing; pictures, sounds and films show.
    private static let policy =
      "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"

    /// Types that a browser runs or that can have a program in them, beside those that end with
    /// "xml".
    private static let activeTypes = [
      "text/html", "text/css", "application/pdf", "application/x-shockwave-flash",
      "multipart/related", "message/rfc822",
    ]

    /// How a browser is to show the object.
    static func disposition(of object: StorageMetadata) -> String? {
      let stored = object.contentDisposition
      guard isActive(object.contentType ?? StorageMetadata.usualType) else { return stored }
      let isSaved = stored?.lowercased().drop { $0 == " " }.hasPrefix("attachment") == true
      return isSaved ? stored : "attachment"
    }

    static func isActive(_ type: String) -> Bool {
      let name = type.prefix { $0 != ";" && $0 != "," }.filter { !$0.isWhitespace }.lowercased()
      // What is no type, browsers may guess at.
      guard name.contains("/") else { return true }
      return activeTypes.contains(name) || name.hasSuffix("xml") || name.hasSuffix("script")
        || name.contains("svg") || name.contains("html")
    }
  }

  extension Timestamp {
    /// As HTTP's headers have it: `Fri, 01 May 2026 09:30:00 GMT`.
    var headerText: String {
      let (days, second) = seconds.dividedDown(by: 86_400)
      let date = CivilDay(days)
      let weekday = (days % 7 + 11) % 7
      let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
      let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
      ]
      func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
      let clock = "\(two(second / 3_600)):\(two(second / 60 % 60)):\(two(second % 60))"
      return "\(names[Int(weekday)]), \(two(date.day)) \(months[Int(date.month) - 1])"
        + " \(date.year) \(clock) GMT"
    }
  }
#endif
