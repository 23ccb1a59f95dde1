// Decides which requests are let in. The check of `Host` keeps out a page of another site whose own
// name resolves to this machine. The check of the origin adds to that. The token keeps out everyone
// else, including other users of the machine. There are no cookies, so another site cannot use a
// visitor's.

import Crypto
import Ondol
import OndolEngine

/// Admits requests or refuses them.
struct ConsoleGuard: Sendable {
  /// The number of wrong tokens in a minute after which the guard refuses further wrong ones
  /// without saying that they are wrong. Guesses never keep out a client with the right token.
  static let failuresInMinute = 100

  private struct State: Sendable {
    var port = 0
    var minute: Int64 = 0
    var failures = 0
  }

  private let state = Guarded(State())
  private let digest: [UInt8]
  private let now: @Sendable () -> Int64

  /// - Parameter now: the seconds of any clock.
  init(token: String, now: @escaping @Sendable () -> Int64) {
    digest = Array(SHA256.hash(data: Array(token.utf8)))
    self.now = now
  }

  func serve(on port: Int) { state.withLock { $0.port = port } }

  /// Refuses requests that do not come from this machine's own page.
  func checkPlace(_ request: ConsoleRequest, isPage: Bool) throws {
    let port = state.withLock { $0.port }
    let hosts = request.values(of: "host")
    guard hosts.count == 1, let host = hosts.first,
      ["127.0.0.1:\(port)", "localhost:\(port)", "[::1]:\(port)"].contains(host)
    else { throw ConsoleFailure(421, "invalidArgument", "the console does not serve this host") }
    let origins = request.values(of: "origin")
    guard origins.isEmpty || origins == ["http://\(host)"] else {
      throw ConsoleFailure(403, "permissionDenied", "another site's page may not ask this")
    }
    let sites = request.values(of: "sec-fetch-site")
    guard isPage || sites.allSatisfy({ $0 == "same-origin" || $0 == "none" }) else {
      throw ConsoleFailure(403, "permissionDenied", "another site's page may not ask this")
    }
  }

  /// Refuses requests without the token.
  func checkToken(_ request: ConsoleRequest) throws {
    let given = request.value(of: "authorization") ?? ""
    let token = given.hasPrefix("Bearer ") ? given.dropFirst(7) : ""
    // The comparison reads digests of equal length to their ends, so its duration reveals nothing.
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
