// Encryption under observation: keys like an app's, and a witness of every sealing. A repeated
// nonce with the same key, in any life of the database, would reveal what was sealed with it.

internal import Ondol
package import OndolEngine

/// Opens and creates keys, and records every nonce that is used with them.
package final class SealOracle: Vault {
  private struct State: Sendable {
    /// Files by their names among all files.
    var files: [[UInt8]: Int] = [:]
    var used: Set<Sealing> = []
    var repeated: String?
    /// The number of created keys.
    var made = 0
  }

  private struct Sealing: Hashable, Sendable {
    var file: Int
    var nonce: SealNonce
  }

  private let vaults: [DatabaseVault]
  private let state = Guarded(State())

  /// - Parameter keys: the bytes of the app's keys. Each key of a created database is wrapped by
  ///   the next of them, and all open what they can.
  package init(keys: [[UInt8]] = [TestedEncryption.key]) {
    vaults = keys.map { DatabaseVault(.key($0)) }
  }

  /// The number of sealed units.
  package var count: Int { state.withLock { $0.used.count } }

  /// A nonce that was used twice with one key, if there was one.
  package var repeated: String? { state.withLock { $0.repeated } }

  package func makeKey(
    for identity: [UInt8]
  ) throws(EngineError) -> (key: any MasterKey, kept: [UInt8]) {
    let number = state.withLock { state in
      state.made += 1
      return state.made
    }
    let (key, kept) = try vaults[number % vaults.count].makeKey(for: identity)
    return (WatchedKey(key, by: self), kept)
  }

  package func openKey(
    _ kept: [UInt8], for identity: [UInt8]
  ) throws(EngineError) -> (any MasterKey)? {
    for vault in vaults {
      if let key = try vault.openKey(kept, for: identity) { return WatchedKey(key, by: self) }
    }
    return nil
  }

  fileprivate func note(_ file: [UInt8], _ nonce: SealNonce) {
    state.withLock { state in
      let number = state.files[file] ?? state.files.count
      state.files[file] = number
      let isNew = state.used.insert(Sealing(file: number, nonce: nonce)).inserted
      if !isNew, state.repeated == nil { state.repeated = "\(nonce) in \(file)" }
    }
  }
}

private final class WatchedKey: MasterKey {
  private let base: any MasterKey
  private let oracle: SealOracle
  /// Distinguishes it from other keys: otherwise indistinguishable lives have different keys.
  private let mark: [UInt8]

  init(_ base: any MasterKey, by oracle: SealOracle) {
    self.base = base
    self.oracle = oracle
    mark = base.proof(of: [])
  }

  func cipher(for context: [UInt8]) -> any FileCipher {
    WatchedCipher(base.cipher(for: context), mark + context, oracle)
  }

  var secret: [UInt8] { base.secret }

  func proof(of bytes: [UInt8]) -> [UInt8] { base.proof(of: bytes) }

  func wrap(_ other: any MasterKey, for identity: [UInt8]) -> [UInt8] {
    base.wrap(other, for: identity)
  }

  func unwrap(_ wrapped: [UInt8], for identity: [UInt8]) -> (any MasterKey)? {
    base.unwrap(wrapped, for: identity).map { WatchedKey($0, by: oracle) }
  }

  func makeOther() -> any MasterKey { WatchedKey(base.makeOther(), by: oracle) }
}

private final class WatchedCipher: FileCipher {
  private let base: any FileCipher
  private let file: [UInt8]
  private let oracle: SealOracle

  init(_ base: any FileCipher, _ file: [UInt8], _ oracle: SealOracle) {
    self.base = base
    self.file = file
    self.oracle = oracle
  }

  func seal(_ bytes: inout [UInt8], from start: Int, nonce: SealNonce, context: [UInt8]) {
    oracle.note(file, nonce)
    base.seal(&bytes, from: start, nonce: nonce, context: context)
  }

  func open(
    _ sealed: RawSpan, nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool {
    base.open(sealed, nonce: nonce, context: context, appendingTo: &output)
  }
}
