// An encrypted database whose own key hides nothing: data that is sealed with it is readable in the
// files, as it is for anyone with that key. Data that is sealed with the keys of collections is
// really sealed. So a search of the files finds what the database's key alone reveals.

import OndolEngine
import OndolTestKit

@testable import Ondol

/// Makes glass keys for databases, and real keys for collections.
final class GlassVault: Vault {
  private let vault = DatabaseVault(.key(TestedEncryption.key))
  private let made = Guarded<[(secret: [UInt8], key: any MasterKey)]>([])
  /// Whether keys of collections hide what they seal. If not, a search for it must find it.
  private let isHiding: Bool

  init(isHiding: Bool = true) {
    self.isHiding = isHiding
  }

  /// The bytes of all keys made for collections: for each the sealing one, and the naming one.
  var secrets: [[UInt8]] { made.withLock { $0.map(\.secret) } }

  func makeKey(
    for identity: [UInt8]
  ) throws(EngineError) -> (key: any MasterKey, kept: [UInt8]) {
    let (key, kept) = try vault.makeKey(for: identity)
    return (GlassKey(key, self), kept)
  }

  func openKey(
    _ kept: [UInt8], for identity: [UInt8]
  ) throws(EngineError) -> (any MasterKey)? {
    try vault.openKey(kept, for: identity).map { GlassKey($0, self) }
  }

  fileprivate func makeOther(than key: any MasterKey) -> any MasterKey {
    let other = key.makeOther()
    made.withLock { $0.append((other.secret, other)) }
    return isHiding ? other : GlassKey(other, self)
  }

  fileprivate func key(of secret: [UInt8]) -> (any MasterKey)? {
    let known = made.withLock { made in made.first { $0.secret == secret }?.key }
    return known.map { isHiding ? $0 : GlassKey($0, self) }
  }
}

/// A key that wraps other keys, and what is sealed with it, unchanged.
private final class GlassKey: MasterKey {
  private let real: any MasterKey
  private let vault: GlassVault

  init(_ real: any MasterKey, _ vault: GlassVault) {
    self.real = real
    self.vault = vault
  }

  var secret: [UInt8] { real.secret }

  func cipher(for context: [UInt8]) -> any FileCipher { GlassCipher() }

  func proof(of bytes: [UInt8]) -> [UInt8] { real.proof(of: bytes) }

  func wrap(_ other: any MasterKey, for identity: [UInt8]) -> [UInt8] {
    [UInt8](repeating: 0, count: SealNonce.length) + other.secret
      + [UInt8](repeating: 0, count: SealFormat.tagLength)
  }

  func unwrap(_ wrapped: [UInt8], for identity: [UInt8]) -> (any MasterKey)? {
    guard wrapped.count == SealFormat.wrappedLength else { return nil }
    return vault.key(
      of: Array(wrapped.dropFirst(SealNonce.length).dropLast(SealFormat.tagLength)))
  }

  func makeOther() -> any MasterKey { vault.makeOther(than: real) }
}

private final class GlassCipher: FileCipher {
  func seal(_ bytes: inout [UInt8], from start: Int, nonce: SealNonce, context: [UInt8]) {
    bytes.append(contentsOf: repeatElement(0, count: SealFormat.tagLength))
  }

  func open(
    _ sealed: RawSpan, nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool {
    let bytes = sealed.array
    guard bytes.count >= SealFormat.tagLength,
      bytes.suffix(SealFormat.tagLength).allSatisfy({ $0 == 0 })
    else { return false }
    output.append(contentsOf: bytes.dropLast(SealFormat.tagLength))
    return true
  }
}
