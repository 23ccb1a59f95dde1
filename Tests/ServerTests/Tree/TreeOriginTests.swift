// Requests of other sites' pages, and for names that only lead to this machine.

#if Server
  import Testing

  @testable import OndolServer

  @Suite struct `Origins of requests` {
    @Test(arguments: [
      [:], ["host": "127.0.0.1:9000"], ["host": "localhost:9000"], ["host": "[::1]:9000"],
      ["host": "10.0.2.2:9000"], ["host": "localhost", "origin": "http://localhost:3000"],
      ["origin": "http://127.0.0.1:5000"], ["origin": "https://[::1]"],
      ["origin": "http://app.localhost"],
    ])
    func `Programs and pages of this machine may ask`(headers: [String: String]) {
      #expect(TreeOrigin.isLocal(headers))
    }

    @Test(arguments: [
      ["host": "example.com:9000"], ["host": "127.0.0.1.example.com"], ["host": ""],
      ["host": "localhost.example.com"], ["origin": "http://example.com"], ["origin": "null"],
      ["host": "127.0.0.1:9000", "origin": "https://example.com"], ["origin": "http://10.0.0.7"],
      ["origin": "http://127.0.0.1.example.com"], ["origin": "http://127.0.0.1@example.com"],
      ["origin": "http://evillocalhost"], ["host": "127.0.0.+1"], ["host": "127.0.0.256"],
    ])
    func `Pages of other sites and requests for other names are refused`(
      headers: [String: String]
    ) {
      #expect(!TreeOrigin.isLocal(headers))
    }
  }
#endif
