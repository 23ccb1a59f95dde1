// Addresses of callers: what counts as one, and what is none.

#if Server
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct NetworkAddressTests {
    @Test func `An address is counted whole, and an address of IPv6 with its network`() throws {
      let cases = [
        ("203.0.113.7", "203.0.113.7"), ("0.0.0.0", "0.0.0.0"),
        ("255.255.255.255", "255.255.255.255"), ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::FFFF:cb00:7107", "203.0.113.7"), ("2001:db8:0:1::5", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"),
        ("2001:0DB8:0000:0001::", "2001:db8:0:1::/64"), ("fe80::1%eth0", "fe80:0:0:0::/64"),
        ("::1", "::1"), ("::", "0:0:0:0::/64"), ("1:2:3:4:5:6:7:8", "1:2:3:4::/64"),
        ("64:ff9b::203.0.113.7", "64:ff9b:0:0::/64"),
      ]
      for (text, expected) in cases {
        let address = try #require(NetworkAddress(text), "\(text)")
        #expect("\(address)" == expected, "\(text)")
      }
      #expect(NetworkAddress("2001:db8::1") == NetworkAddress("2001:db8::2"))
      #expect(NetworkAddress("2001:db8:0:1::1") != NetworkAddress("2001:db8:0:2::1"))
      #expect(NetworkAddress("203.0.113.7") != NetworkAddress("203.0.113.8"))
      #expect(NetworkAddress("::1") != NetworkAddress("::2"))
    }

    @Test func `Only this machine is this machine`() {
      for text in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        #expect(NetworkAddress(text)?.isLoopback == true, "\(text)")
      }
      for text in ["128.0.0.1", "126.255.255.255", "::2", "::", "::7f00:1", "0.0.0.1", "7f::1"] {
        #expect(NetworkAddress(text)?.isLoopback == false, "\(text)")
      }
    }

    @Test func `What is no address is none`() {
      let wrong = [
        "", " ", "localhost", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", "1.2.3.+4", "1.2.3.4 ",
        "1.2.3.0004", "1..2.3", "a.b.c.d", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "12345::",
        "1:2:3:4:5:6:7:8:9", "::1:2:3:4:5:6:7:8", "g::1", "1.2.3.4::", "::1.2.3", "[::1]",
        "203.0.113.7:80", "１.２.３.４", "unix:/tmp/x", "::+1", "::-1",
        String(repeating: "0", count: 65), String(repeating: ":", count: 64),
      ]
      for text in wrong { #expect(NetworkAddress(text) == nil, "\(text)") }
    }

    @Test(arguments: Seeds.first(20))
    func `Any text has an answer`(seed: UInt64) {
      var random = SeededRandom(seed: seed)
      let letters = Array("0123456789abcdefF:.%[] +-é")
      for _ in 0..<2_000 {
        let count = random.below(45)
        let text = String((0..<count).map { _ in letters[random.below(letters.count)] })
        if let address = NetworkAddress(text) {
          // What is counted is an address again, or a network with its prefix.
          #expect(NetworkAddress("\(address)".split(separator: "/")[0]) == address, "\(text)")
        }
      }
    }
  }
#endif
