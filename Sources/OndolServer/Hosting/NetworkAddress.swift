// The network addresses of callers, as limits count them. One person's line has a whole /64 of
// IPv6, 2^64 addresses to choose from, so these count as one caller. An IPv4 address that is
// written as one of IPv6 is the same address.

#if Server
  /// An IPv4 address, or the network of an IPv6 address.
  package struct NetworkAddress: Sendable, Hashable, CustomStringConvertible {
    private static let version4: UInt64 = 0xFFFF << 32

    /// The first half of an IPv6 address: the network.
    private let network: UInt64
    /// The second half of IPv4's addresses and of this machine's; 0 for all others.
    private let host: UInt64

    /// Reads an address without a port, such as `203.0.113.7`, `2001:db8::1` or `fe80::1%eth0`.
    ///
    /// - Returns: nil for any other text.
    /// - Complexity: O(1); a text of more than 64 bytes is none.
    package init?(_ text: some StringProtocol) {
      guard text.utf8.count <= 64 else { return nil }
      let plain = String(text).prefix { $0 != "%" }
      if plain.contains(":") {
        guard let groups = Self.groups(of: plain) else { return nil }
        let halves = (Self.joined(groups[..<4]), Self.joined(groups[4...]))
        network = halves.0
        let isWhole = network == 0 && (halves.1 >> 32 == 0xFFFF || halves.1 == 1)
        host = isWhole ? halves.1 : 0
      } else {
        guard let number = Self.number(of: plain) else { return nil }
        (network, host) = (0, Self.version4 | UInt64(number))
      }
    }

    /// Whether it is this machine.
    package var isLoopback: Bool {
      network == 0 && (host == 1 || host >> 24 == Self.version4 >> 24 | 127)
    }

    /// The address, or the network with the length of its prefix: `2001:db8:0:1::/64`.
    package var description: String {
      if network == 0, host >> 32 == 0xFFFF {
        return [24, 16, 8, 0].map { String(host >> $0 & 0xFF) }.joined(separator: ".")
      }
      if isLoopback { return "::1" }
      let groups = [48, 32, 16, 0].map { String(network >> $0 & 0xFFFF, radix: 16) }
      return groups.joined(separator: ":") + "::/64"
    }

    private static func joined(_ groups: ArraySlice<UInt16>) -> UInt64 {
      groups.reduce(0) { $0 << 16 | UInt64($1) }
    }

    /// The eight groups of an IPv6 address.
    private static func groups(of text: Substring) -> [UInt16]? {
      guard let gap = text.firstRange(of: "::") else {
        let groups = list(text)
        return groups?.count == 8 ? groups : nil
      }
      guard let first = list(text[..<gap.lowerBound], isEnd: false),
        let last = list(text[gap.upperBound...]),
        first.count + last.count < 8
      else { return nil }
      return first + Array(repeating: 0, count: 8 - first.count - last.count) + last
    }

    /// Groups between colons, of which the last may be an IPv4 address at the end of a text.
    private static func list(_ text: Substring, isEnd: Bool = true) -> [UInt16]? {
      guard !text.isEmpty else { return [] }
      var groups: [UInt16] = []
      let parts = text.split(separator: ":", omittingEmptySubsequences: false)
      for (index, part) in parts.enumerated() {
        if isEnd, index == parts.count - 1, let number = number(of: part) {
          groups += [UInt16(number >> 16), UInt16(number & 0xFFFF)]
        } else {
          guard (1...4).contains(part.utf8.count), part.allSatisfy(\.isHexDigit),
            let group = UInt16(part, radix: 16)
          else { return nil }
          groups.append(group)
        }
      }
      return groups
    }

    /// The number of an IPv4 address.
    private static func number(of text: Substring) -> UInt32? {
      let parts = text.split(separator: ".", omittingEmptySubsequences: false)
      guard parts.count == 4 else { return nil }
      var number: UInt32 = 0
      for part in parts {
        guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy({ (48...57).contains($0) }),
          let octet = UInt8(part)
        else { return nil }
        number = number << 8 | UInt32(octet)
      }
      return number
    }
  }
#endif
