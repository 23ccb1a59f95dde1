// The parameters of the REST interface: how an answer is written, how long it may take, and which
// children it has.

#if Server
  import Ondol
  import OndolJSON

  /// The parameters of a request.
  struct TreeParameters: Sendable {
    enum Print: Sendable {
      case compact
      case pretty
      case silent
    }

    var terms = TreeQueryTerms()
    var hasQuery = false
    var isShallow = false
    var print = Print.compact
    var form = TreeText.Form.plain
    /// How long a read may take.
    var timeout: Duration?
    /// Whether the answer names the data's tag.
    var wantsTag = false
    /// The tag that the data must have for a write, and must not have for a read.
    var ifMatch: String?
    var ifNoneMatch: String?

    init(_ request: TreeHTTPRequest) throws(TreeRefusal) {
      isShallow = request.value("shallow") == "true"
      switch request.value("print") {
      case nil: break
      case "pretty"?: print = .pretty
      case "silent"?: print = .silent
      case let other?: throw Self.fault("print must be 'pretty' or 'silent', not '\(other)'")
      }
      switch request.value("format") {
      case nil, "strict"?: break
      case "export"?: form = .exported
      case let other?: throw Self.fault("format must be 'export', not '\(other)'")
      }
      timeout = try request.value("timeout").map { (text) throws(TreeRefusal) in
        try Self.duration(text)
      }
      ifMatch = request.headers["if-match"].map(Self.tag)
      ifNoneMatch = request.headers["if-none-match"].map(Self.tag)
      wantsTag =
        request.headers["x-firebase-etag"]?.lowercased() == "true" || ifMatch != nil
        || ifNoneMatch != nil
      try readQuery(request)
    }

    /// A tag without the quotes that HTTP has around it.
    private static func tag(_ text: String) -> String {
      text.count >= 2 && text.hasPrefix("\"") && text.hasSuffix("\"")
        ? String(text.dropFirst().dropLast()) : text
    }

    static func fault(_ message: String) -> TreeRefusal { TreeRefusal(.invalid, message) }

    /// Up to fifteen minutes, as `3ms`, `3s` or `3min`.
    private static func duration(_ text: String) throws(TreeRefusal) -> Duration {
      for (unit, length) in [
        ("ms", Duration.milliseconds(1)), ("min", .seconds(60)), ("s", .seconds(1)),
      ]
      where text.hasSuffix(unit) {
        guard let count = Int(text.dropLast(unit.count)), (1...900_000).contains(count),
          length * count <= .seconds(900)
        else { break }
        return length * count
      }
      throw fault("timeout must be a number of 'ms', 's' or 'min', up to 15 minutes")
    }

    // MARK: - Queries

    private mutating func readQuery(_ request: TreeHTTPRequest) throws(TreeRefusal) {
      if let text = request.value("orderBy") {
        guard let path = try Self.json(text, "orderBy").string else {
          throw Self.fault("orderBy must be a valid JSON encoded path")
        }
        terms.order = try Self.order(path)
        hasQuery = true
      }
      try readBounds(request)
      for (name, isFromEnd) in [("limitToFirst", false), ("limitToLast", true)] {
        guard let text = request.value(name) else { continue }
        guard let count = Int(text), count > 0 else {
          throw Self.fault("\(name) must be a positive integer")
        }
        guard terms.limit == nil else {
          throw Self.fault("limitToFirst and limitToLast can't be used together")
        }
        terms.limit = (count, isFromEnd)
        hasQuery = true
      }
      if hasQuery, request.value("orderBy") == nil {
        throw Self.fault("orderBy must be defined when other query parameters are defined")
      }
      if hasQuery, isShallow || wantsTag {
        throw Self.fault(
          "Mixing '\(isShallow ? "shallow" : "ETag")' and querying parameters is not supported")
      }
      if print == .silent, isShallow { throw Self.fault("shallow can't be printed silently") }
    }

    private static func order(_ path: String) throws(TreeRefusal) -> TreeQueryTerms.Ordering {
      switch path {
      case "$key": return .key
      case "$value": return .value
      case "$priority": return .priority
      default:
        let place = try TreePlace(path)
        guard !place.keys.isEmpty else { throw fault("orderBy must be a valid JSON encoded path") }
        return .child(place.text)
      }
    }

    private mutating func readBounds(_ request: TreeHTTPRequest) throws(TreeRefusal) {
      let starts = [("startAt", true), ("startAfter", false)]
      let ends = [("endAt", true), ("endBefore", false)]
      for (name, isIncluded) in starts {
        guard let bound = try Self.bound(request, name, isIncluded) else { continue }
        guard terms.start == nil else { throw Self.fault("a query has one start") }
        terms.start = bound
      }
      for (name, isIncluded) in ends {
        guard let bound = try Self.bound(request, name, isIncluded) else { continue }
        guard terms.end == nil else { throw Self.fault("a query has one end") }
        terms.end = bound
      }
      if let bound = try Self.bound(request, "equalTo", true) {
        guard terms.start == nil, terms.end == nil else {
          throw Self.fault("equalTo can't be used with a start or an end")
        }
        (terms.start, terms.end, terms.isEqual) = (bound, bound, true)
      }
      hasQuery = hasQuery || terms.start != nil || terms.end != nil
    }

    /// A value, or a value and a key with a comma between.
    private static func bound(
      _ request: TreeHTTPRequest, _ name: String, _ isIncluded: Bool
    ) throws(TreeRefusal) -> TreeQueryTerms.Bound? {
      guard let text = request.value(name) else { return nil }
      let parts = try json("[\(text)]", name).array ?? []
      guard (1...2).contains(parts.count), parts.count == 1 || parts[1].string != nil else {
        throw fault("\(name) must be a valid JSON encoded value")
      }
      return TreeQueryTerms.Bound(
        value: parts[0], key: parts.count > 1 ? parts[1].string : nil, isIncluded: isIncluded)
    }

    private static func json(_ text: String, _ name: String) throws(TreeRefusal) -> Value {
      do throws(JSONError) {
        return try JSONReader.read(Array(text.utf8), .plain, numbers: .double)
      } catch {
        throw fault("\(name) must be a valid JSON encoded \(name == "orderBy" ? "path" : "value")")
      }
    }
  }
#endif
