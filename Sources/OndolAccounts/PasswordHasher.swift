// Scrypt runs on a few threads of its own, because a run takes a core for tenths of a second and
// tens of megabytes. Swift's pool has as many threads as cores, and two sign-ins would stop an app.
// A full queue refuses further calls, so a flood of sign-ins uses a bounded amount of memory.

internal import Crypto
internal import Foundation
internal import OndolEngine

/// Hashes passwords, a few at a time.
final class PasswordHasher: Sendable {
  private struct Load {
    var waiting: Int
    var next = 0
  }

  private let derivation: KeyDerivation
  private let random: @Sendable () -> UInt64
  private let workers: [any Worker]
  private let mostWaiting: Int
  private let load = Guarded(Load(waiting: 0))

  init(
    _ derivation: KeyDerivation, threads: any ThreadSource, count: Int, mostWaiting: Int,
    random: @escaping @Sendable () -> UInt64
  ) {
    self.derivation = derivation
    self.random = random
    self.mostWaiting = mostWaiting
    // Own threads: hashing keeps a processor busy and is not the database's work.
    workers = (0..<max(1, count)).map {
      threads.makeWorker(named: "ondol-scrypt-\($0)", for: .own)
    }
  }

  /// Hashes a password with a new salt.
  func hash(
    _ password: [UInt8], _ hashing: PasswordHashing
  ) async throws(AuthError) -> StoredPassword {
    let salt = Data(Randomness.bytes(StoredPassword.saltLength, random))
    let key = try await run(password, salt, hashing)
    let code = HMAC<SHA256>.authenticationCode(for: StoredPassword.label, using: key)
    return StoredPassword(hashing: hashing, salt: salt, key: Data(code))
  }

  /// Checks a password. The comparison takes the same time wherever the keys differ.
  func matches(_ password: [UInt8], _ stored: StoredPassword) async throws(AuthError) -> Bool {
    let derived = try await run(password, stored.salt, stored.hashing)
    let key = try stored.form.map { form throws(AuthError) in try form.key(of: derived) } ?? derived
    // Compares all bytes.
    return HMAC<SHA256>.isValidAuthenticationCode(
      stored.key, authenticating: StoredPassword.label, using: key)
  }

  private func run(
    _ password: [UInt8], _ salt: Data, _ hashing: PasswordHashing
  ) async throws(AuthError) -> SymmetricKey {
    guard let worker = takeTurn() else {
      throw AuthError(
        .tooManyRequests, "too many people sign in at once; try again in a moment",
        retryAfter: .seconds(1))
    }
    defer { load.withLock { $0.waiting -= 1 } }
    return try await worker.perform { [derivation] () throws(AuthError) in
      try derivation.derive(password, salt, hashing)
    }
  }

  /// The next worker; nil when too many calls wait.
  private func takeTurn() -> (any Worker)? {
    let (workers, mostWaiting) = (workers, mostWaiting)
    return load.withLock { load in
      guard load.waiting < mostWaiting else { return nil }
      load.waiting += 1
      load.next = (load.next + 1) % workers.count
      return workers[load.next]
    }
  }
}

/// Random bytes.
enum Randomness {
  static func bytes(_ count: Int, _ random: () -> UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      var rest = random()
      for _ in 0..<min(8, count - bytes.count) {
        bytes.append(UInt8(truncatingIfNeeded: rest))
        rest >>= 8
      }
    }
    return bytes
  }
}
