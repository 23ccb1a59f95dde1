// Requests and responses of the REST interface, without a server: what came over HTTP, and what is
// to be sent.

#if Server
  /// A request as it came.
  struct TreeHTTPRequest: Sendable {
    var method: String
    /// The path with its percent-encoding.
    var path: String
    /// Names and values, decoded, in their order.
    var query: [(name: String, value: String)] = []
    /// By names in lower case.
    var headers: [String: String] = [:]
    var body: [UInt8] = []
    /// The last value of the header `x-forwarded-for`, which a proxy has added.
    var forwarded: String?

    /// Reads the target of a request line: a path and a query.
    init(method: String, target: String, headers: [String: String] = [:], body: [UInt8] = []) {
      self.method = method
      self.headers = headers
      self.body = body
      let octets = target.utf8
      guard let mark = octets.firstIndex(of: UInt8(ascii: "?")) else {
        path = target
        return
      }
      path = String(target[..<mark])
      for item in octets[octets.index(after: mark)...].split(separator: UInt8(ascii: "&")) {
        let parts = item.split(
          separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = Self.decoded(parts[0], isQuery: true) else { continue }
        let value = parts.count > 1 ? Self.decoded(parts[1], isQuery: true) : ""
        if let value { query.append((name, value)) }
      }
    }

    /// The value of the first item with a name.
    func value(_ name: String) -> String? { query.first { $0.name == name }?.value }

    /// What says who asks: a parameter, or the token of the header `authorization`.
    var credential: String? {
      let bearer = headers["authorization"].flatMap { text in
        text.lowercased().hasPrefix("bearer ") ? String(text.dropFirst(7)) : nil
      }
      return value("auth") ?? value("access_token") ?? bearer
    }

    /// Decodes percent-encoding; nil when the result is not UTF-8, or when it is incomplete.
    ///
    /// - Parameter isQuery: whether a plus sign is a space.
    static func decoded(_ text: Substring.UTF8View, isQuery: Bool = false) -> String? {
      var bytes: [UInt8] = []
      bytes.reserveCapacity(text.count)
      var index = text.startIndex
      while index < text.endIndex {
        let octet = text[index]
        index = text.index(after: index)
        switch octet {
        case UInt8(ascii: "%"):
          guard let end = text.index(index, offsetBy: 2, limitedBy: text.endIndex) else {
            return nil
          }
          let digits = String(Substring(text[index..<end]))
          guard digits.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
            let value = UInt8(digits, radix: 16)
          else { return nil }
          bytes.append(value)
          index = end
        case UInt8(ascii: "+") where isQuery: bytes.append(UInt8(ascii: " "))
        default: bytes.append(octet)
        }
      }
      return String(validating: bytes, as: UTF8.self)
    }
  }

  /// What is to be sent.
  struct TreeHTTPResponse: Sendable {
    var status = 200
    var headers: [(name: String, value: String)] = []
    var body = ""
    /// Why the request was refused; nil for one that was not.
    var refusal: TreeRefusal?

    /// A response with JSON.
    init(_ json: String, status: Int = 200) {
      self.status = status
      headers = [
        ("Content-Type", "application/json; charset=utf-8"), ("Cache-Control", "no-cache"),
      ]
      body = json
    }

    /// An error in Firebase's form.
    init(_ fault: TreeRefusal) {
      self.init("{\"error\":\(TreeText.json(fault.message))}", status: fault.httpStatus)
      refusal = fault
    }
  }
#endif
