// Incoming bytes of a connection: a head in one form only, bodies by their length or in chunks,
// however the bytes are cut. Nothing in a body is ever a request.

import Ondol
import OndolEngine
import Testing

@testable import OndolConsole

/// A connection that delivers the bytes in pieces.
private func incoming(_ bytes: [UInt8], cut pieces: [Int] = []) -> Incoming {
  let rest = Guarded((bytes: bytes[...], pieces: pieces[...]))
  return Incoming(Patience()) {
  } read: {
    rest.withLock { rest in
      let piece = rest.bytes.prefix(rest.pieces.popFirst() ?? rest.bytes.count)
      rest.bytes = rest.bytes.dropFirst(piece.count)
      return Array(piece)
    }
  }
}

private func body(_ incoming: Incoming) async throws -> [UInt8] {
  var bytes: [UInt8] = []
  while let piece = try await incoming.piece() { bytes += piece }
  return bytes
}

@Suite struct `Requests as they come` {
  @Test(arguments: [
    "GET / HTTP/1.1\nHost: a\r\n", "GET / HTTP/1.1\r\nHost: a\n", "GET /  HTTP/1.1\r\n",
    "GET / HTTP/2.0\r\n", "GET /\r\n", " GET / HTTP/1.1\r\n", "G(T / HTTP/1.1\r\n", "\r\n",
    "GET / HTTP/1.1 \r\n", "GET /\u{7f} HTTP/1.1\r\n", "GET /é HTTP/1.1\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n", "GET / HTTP/1.1\r\n Host: a\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n", "GET / HTTP/1.1\r\nHost\r\n",
    "GET / HTTP/1.1\r\n: a\r\n", "GET / HTTP/1.1\r\nA: b\rc\r\n", "GET / HTTP/1.1\r\nA: \0\r\n",
    "GET / HTTP/1.1\r\nContent-Length: +1\r\n", "GET / HTTP/1.1\r\nContent-Length: \r\n",
    "GET / HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 1\r\ntransfer-encoding: chunked\r\n",
    "GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n",
    "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n",
  ])
  func `A head that can be read in two ways is none`(text: String) async throws {
    #expect(throws: ConsoleFailure.self) { try RequestHead(Array(text.utf8)) }
    let connection = incoming(Array("\(text)\r\n".utf8))
    await #expect(throws: ConsoleFailure.self) { try await connection.head() }
  }

  @Test func `Repeated fields are reported twice`() throws {
    let head = try RequestHead(
      Array("GET /a?b HTTP/1.1\r\nHost: a\r\nhOST:\tb \r\nX:\r\nConnection: x, Close\r\n".utf8))
    #expect(head.method == "GET")
    #expect(head.target == "/a?b")
    #expect(head.headers.map(\.name) == ["Host", "hOST", "X", "Connection"])
    #expect(head.headers.map(\.value) == ["a", "b", "", "x, Close"])
    #expect(head.isLast)
    #expect(head.body == .bytes(0))
  }

  @Test func `Heads have an end of their own and a limit`() async throws {
    let long = "GET / HTTP/1.1\r\nX: \(String(repeating: "x", count: RequestHead.longest))"
    let connection = incoming(Array(long.utf8))
    let failure = await #expect(throws: ConsoleFailure.self) { try await connection.head() }
    #expect(failure?.status == 431)
    let many = (0..<101).map { "X-\($0): y\r\n" }.joined()
    #expect(throws: ConsoleFailure.self) {
      try RequestHead(Array("GET / HTTP/1.1\r\n\(many)".utf8))
    }
    let half = incoming(Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8))
    #expect(try await half.head() == nil)
  }

  @Test(arguments: [
    "-1\r\n", "x\r\n", "\r\n", "+5\r\nhello\r\n", " 5\r\nhello\r\n", "0x5\r\nhello\r\n",
    "5\nhello\r\n", "5\r\nhelloX\r\n", "FFFFFFFFFFFFFFFF\r\n", "5\r\nhel", "5\r\nhello\r\n0\r\nX",
    "\(String(repeating: "0", count: 5_000))\r\n",
  ])
  func `A chunk that is none ends the connection`(text: String) async throws {
    let connection = incoming(
      Array("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\(text)".utf8))
    #expect(try await connection.head()?.body == .chunks)
    await #expect(throws: ConsoleFailure.self) { _ = try await body(connection) }
    #expect(await connection.skip(atMost: 1 << 20) == false)
  }

  /// Requests one after another, in pieces of any size, compared with the sent ones; and cut off
  /// anywhere, when nothing arrives that was not sent.
  @Test(arguments: 0..<60)
  func `Consecutive requests arrive as sent`(seed: Int) async throws {
    var random = Noise(state: UInt64(seed) &* 7_919 &+ 1)
    var sent: [(target: String, body: [UInt8])] = []
    var bytes: [UInt8] = []
    for number in 0..<Int.random(in: 1...6, using: &random) {
      let length = [0, 1, 50, 5_000].randomElement(using: &random) ?? 0
      // Bodies full of possible requests.
      let text = Array("\r\n\r\nDELETE /\(number) HTTP/1.1\r\n\r\n0\r\n\r\n".utf8)
      let body = (0..<length).map { text[$0 % text.count] }
      sent.append(("/\(number)", body))
      bytes += "PUT /\(number) HTTP/1.1\r\n".utf8
      if Bool.random(using: &random) {
        bytes += "Content-Length: \(length)\r\n\r\n".utf8
        bytes += body
        continue
      }
      bytes += "Transfer-Encoding: chunked\r\n\r\n".utf8
      var rest = body[...]
      while !rest.isEmpty {
        let chunk = rest.prefix(Int.random(in: 1...2_000, using: &random))
        rest = rest.dropFirst(chunk.count)
        bytes += "\(String(chunk.count, radix: 16))\r\n".utf8 + chunk + "\r\n".utf8
      }
      bytes += "0\r\nTrailer: x\r\n\r\n".utf8
    }
    let end = seed % 2 == 0 ? bytes.count : Int.random(in: 0..<bytes.count, using: &random)
    let pieces = (0..<bytes.count).map { _ in
      Int.random(in: 1...([1, 7, 4_096].randomElement(using: &random) ?? 1), using: &random)
    }
    let connection = incoming(Array(bytes[..<end]), cut: pieces)
    var place = 0
    while let head = try await connection.head() {
      try #require(place < sent.count, "seed \(seed)")
      #expect(head.target == sent[place].target, "seed \(seed)")
      if Bool.random(using: &random) {
        guard await connection.skip(atMost: 1 << 20) else { break }
      } else {
        guard let found = try? await body(connection) else { break }
        #expect(found == sent[place].body, "seed \(seed)")
      }
      place += 1
    }
    #expect(place == sent.count || end < bytes.count, "seed \(seed)")
  }
}

/// Reproducible random numbers.
struct Noise: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state ^ (state >> 29)
  }
}
