// Databases that open with a passphrase. The derived key is RFC 7914's, another passphrase is
// refused, and the numbers in a superblock cannot make the derivation run for hours.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Passphrases` {
  /// Fast enough for many.
  private static let scrypt = Scrypt(logarithm: 4, blockSize: 8, parallelism: 1)

  private static func passphrase(_ text: String) -> Database.Encryption {
    .passphrase(text, by: scrypt)
  }

  // MARK: - scrypt

  /// Section 12 of RFC 7914, except for the vector with a gigabyte.
  @Test(arguments: [
    (
      "", "", Scrypt(logarithm: 4, blockSize: 1, parallelism: 1),
      "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
        + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
    ),
    (
      "password", "NaCl", Scrypt(logarithm: 10, blockSize: 8, parallelism: 16),
      "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
        + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
    ),
    (
      "pleaseletmein", "SodiumChloride", Scrypt(logarithm: 14, blockSize: 8, parallelism: 1),
      "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
        + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
    ),
  ])
  func `agree with the published vectors`(
    _ passphrase: String, _ salt: String, _ scrypt: Scrypt, _ expected: String
  ) throws {
    let bytes = try #require(
      scrypt.bytes(64, from: Array(passphrase.utf8), salt: Array(salt.utf8)))
    #expect(bytes.map { String(format: "%02x", $0) }.joined() == expected)
  }

  @Test(arguments: [
    Scrypt(logarithm: 0, blockSize: 8, parallelism: 1),
    Scrypt(logarithm: 15, blockSize: 0, parallelism: 1),
    Scrypt(logarithm: 15, blockSize: 8, parallelism: 0),
    Scrypt(logarithm: 19, blockSize: 8, parallelism: 1),
    Scrypt(logarithm: 15, blockSize: 8, parallelism: 9),
    Scrypt(logarithm: 63, blockSize: 1, parallelism: 1),
    Scrypt(logarithm: 255, blockSize: 255, parallelism: 255),
  ])
  func `with unreasonable parameters are not run`(_ scrypt: Scrypt) {
    #expect(scrypt.bytes(32, from: [1], salt: [2]) == nil)
  }

  @Test func `of a new database have the standard cost`() {
    #expect(Scrypt.standard.isPossible)
    #expect(Database.Encryption.passphrase("a") == .passphrase("a", by: .standard))
  }

  // MARK: - Databases

  @Test func `open a database, and others do not`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open(Self.passphrase("ein Bett im Kornfeld"))
    try await database.document("c/a").setData(["text": "hello"])
    try await database.close()
    #expect(await place.code(Self.passphrase("ein Bett im Kornfeld")) == nil)
    #expect(await place.code(Self.passphrase("ein Bett im Kornfeld"), access: .readOnly) == nil)
    for other in ["ein Bett im Kornfeld ", "Ein Bett im Kornfeld", "x"] {
      #expect(await place.code(Self.passphrase(other)) == .permissionDenied, "\(other)")
    }
    #expect(await place.code(EncryptedPlace.key) == .permissionDenied)
    #expect(await place.code(nil) == .permissionDenied)
    #expect(await place.code(Self.passphrase("")) == .invalidArgument)
    // A database's own parameters decide the cost, whatever the later default.
    let later = Database.Encryption.passphrase(
      "ein Bett im Kornfeld", by: Scrypt(logarithm: 5, blockSize: 1, parallelism: 1))
    #expect(await place.code(later) == nil)
  }

  @Test func `are the same in each spelling`() async throws {
    let place = EncryptedPlace()
    let text = "온돌 방 é"
    try await place.open(Self.passphrase(text)).close()
    let other = text.decomposedStringWithCanonicalMapping
    #expect(Array(other.utf8) != Array(text.utf8))
    #expect(await place.code(Self.passphrase(other)) == nil)
  }

  @Test func `and keys can open one database`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.setEncryptionKeys([
      EncryptedPlace.key, Self.passphrase("one"), Self.passphrase("two"),
    ])
    try await database.close()
    for way in [EncryptedPlace.key, Self.passphrase("one"), Self.passphrase("two")] {
      #expect(await place.code(way) == nil)
    }
    #expect(await place.code(Self.passphrase("three")) == .permissionDenied)
    let again = try await place.open(Self.passphrase("two"))
    try await again.setEncryptionKeys([Self.passphrase("four")])
    try await again.close()
    for way in [EncryptedPlace.key, Self.passphrase("one"), Self.passphrase("two")] {
      #expect(await place.code(way) == .permissionDenied)
    }
    #expect(await place.code(Self.passphrase("four")) == nil)
  }

  /// Anyone who can write to the superblock could make an open take hours, or all memory.
  @Test func `do not run parameters planted in the superblock`() throws {
    let identity = [UInt8](repeating: 3, count: 16)
    let vault = DatabaseVault(Self.passphrase("a"))
    var (_, kept) = try vault.makeKey(for: identity)
    #expect(try DatabaseVault(Self.passphrase("a")).openKey(kept, for: identity) != nil)
    for (logarithm, blockSize, parallelism) in [(60, 8, 1), (20, 255, 1), (4, 255, 255), (0, 0, 0)]
    {
      kept.replaceSubrange(9..<12, with: [UInt8(logarithm), UInt8(blockSize), UInt8(parallelism)])
      #expect(try DatabaseVault(Self.passphrase("a")).openKey(kept, for: identity) == nil)
    }
  }

  @Test func `show themselves nowhere`() async throws {
    let passphrase = Self.passphrase("Kornfeld")
    var text = "\(passphrase) \(String(reflecting: passphrase))"
    dump(passphrase, to: &text)
    #expect(!text.contains("Kornfeld") && !text.contains("75"))
    let place = EncryptedPlace()
    try await place.open(passphrase).close()
    for (name, bytes) in try place.files() {
      #expect(!String(decoding: bytes, as: Unicode.ASCII.self).contains("Kornfeld"), "\(name)")
    }
  }
}
