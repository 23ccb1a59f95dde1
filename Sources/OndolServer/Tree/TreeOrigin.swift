// Who may reach a port that only this machine should: a page of any site in this machine's browser
// reaches it too, over WebSocket, which has no other protection, and, by a name that leads here,
// over HTTP. So requests of pages of other hosts are refused, and requests for other names.

#if Server
  /// Where a request comes from, and by which name it came here.
  enum TreeOrigin {
    /// Whether a request is of this machine: it names an address and no host but `localhost`, and
    /// if it is of a page, the page is of this machine.
    static func isLocal(_ headers: [String: String]) -> Bool {
      if let host = headers["host"], !isAddress(name(in: host[...])) { return false }
      guard let origin = headers["origin"] else { return true }
      guard let scheme = origin.firstRange(of: "://") else { return false }
      return isLoopback(name(in: origin[scheme.upperBound...]))
    }

    /// A host without its port.
    private static func name(in host: Substring) -> Substring {
      if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return host[...end] }
      return host.prefix { $0 != ":" }
    }

    private static func isLocalName(_ name: Substring) -> Bool {
      name == "localhost" || name.hasSuffix(".localhost")
    }

    private static func isAddress(_ name: Substring) -> Bool {
      isLocalName(name) || name.hasPrefix("[") || isFourNumbers(name)
    }

    private static func isLoopback(_ name: Substring) -> Bool {
      isLocalName(name) || name == "[::1]" || isFourNumbers(name) && name.hasPrefix("127.")
    }

    private static func isFourNumbers(_ name: Substring) -> Bool {
      let parts = name.split(separator: ".", omittingEmptySubsequences: false)
      return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil && !$0.hasPrefix("+") }
    }
  }
#endif
