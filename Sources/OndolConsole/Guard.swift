// Who is let in. The name in `Host` is what keeps a page of another site out that has its own name
// lead to this machine; origins are checked besides; and the token keeps out everybody else, other
// users of the machine among them. There are no cookies, so no other site can borrow a visitor's.

import Crypto
import Ondol
import OndolEngine

/// Lets requests in or refuses them.
struct ConsoleGuard: Sendable {
  /// Wrong tokens in a minute, after which others are not even told that they are wrong. Whoever
  /// has the right one is never kept out by those who guess.
  static let failuresInMinute = 100

  private struct State: Sendable {
    var port = 0
    var minute: Int64 = 0
    var failures = 0
  }

  private let state = Guarded(State())
  private let digest: [UInt8]
  private let now: @Sendable () -> Int64

  /// - Parameter now: seconds of any clock.
  init(token: String, now: @escaping @Sendable () -> Int64) {
    digest = Array(SHA256.hash(data: Array(token.utf8)))
    self.now = now
  }

  func serve(on port: Int) { state.withLock { $0.port = port } }

  /// Refuses whoever is not on this machine's own page.
  func checkPlace(_ request: ConsoleRequest, isPage: Bool) throws {
    let port = state.withLock { $0.port }
    let hosts = request.values(of: "host")
    guard hosts.count == 1, let host = hosts.first,
      ["127.0.0.1:\(port)", "localhost:\(port)", "[::1]:\(port)"].contains(host)
    else { throw ConsoleFailure(421, "invalidArgument", "this host is not served here") }
    let origins = request.values(of: "origin")
    guard origins.isEmpty || origins == ["http://\(host)"] else {
      throw ConsoleFailure(403, "permissionDenied", "another site's page may not ask this")
    }
    let sites = request.values(of: "sec-fetch-site")
    guard isPage || sites.allSatisfy({ $0 == "same-origin" || $0 == "none" }) else {
      throw ConsoleFailure(403, "permissionDenied", "another site's page may not ask this")
    }
  }

  /// Refuses whoever has not the token.
  func checkToken(_ request: ConsoleRequest) throws {
    let given = request.value(of: "authorization") ?? ""
    let token = given.hasPrefix("Bearer ") ? given.dropFirst(7) : ""
    // Digests of equal length, looked at to their ends: how long it takes tells nothing.
    let other = Array(SHA256.hash(data: Array(token.utf8)))
    let difference = zip(digest, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) }
    if difference == 0 { return }
    let now = now()
    let failures = state.withLock { state in
      if state.minute != now / 60 {
        state.minute = now / 60
        state.failures = 0
      }
      state.failures += 1
      return state.failures
    }
    guard failures > Self.failuresInMinute else {
      throw ConsoleFailure(401, "unauthenticated", "the token is missing or wrong")
    }
    var failure = ConsoleFailure(429, "resourceExhausted", "too many wrong tokens")
    failure.retryAfter = Int(60 - now % 60)
    throw failure
  }
}
