// The cipher compared with Wycheproof's vectors for AES-GCM, if these are beside the project: those
// with the lengths that are used here.

import Foundation
import OndolTestKit
import Testing

@testable import Ondol
@testable import OndolEngine

private let vectors = URL(filePath: #filePath).deletingLastPathComponent()
  .appending(path: "../../../../shared/conformance/crypto/aes_gcm_test.json").standardized
private let isPresent = FileManager.default.fileExists(atPath: vectors.path)

private struct VectorFile: Decodable {
  struct Group: Decodable {
    var ivSize: Int
    var keySize: Int
    var tests: [Vector]
  }

  struct Vector: Decodable {
    var tcId: Int
    var key, iv, aad, msg, ct, tag, result: String
  }

  var testGroups: [Group]
}

private func bytes(_ hex: String) -> [UInt8] {
  var bytes: [UInt8] = []
  var rest = Substring(hex)
  while !rest.isEmpty {
    bytes.append(UInt8(rest.prefix(2), radix: 16) ?? 0)
    rest = rest.dropFirst(2)
  }
  return bytes
}

@Suite struct GaloisCipherTests {
  @Test(.enabled(if: isPresent)) func `It agrees with Wycheproof`() throws {
    let file = try JSONDecoder().decode(VectorFile.self, from: Data(contentsOf: vectors))
    var (valid, invalid) = (0, 0)
    for group in file.testGroups where group.ivSize == 96 && group.keySize == 256 {
      for vector in group.tests {
        let cipher = GaloisCipher(keyBytes: bytes(vector.key))
        let nonce = SealNonce(reading: bytes(vector.iv))
        #expect(nonce.bytes == bytes(vector.iv))
        let (message, context) = (bytes(vector.msg), bytes(vector.aad))
        let sealed = bytes(vector.ct) + bytes(vector.tag)
        var opened: [UInt8] = [9]
        let isOpened = cipher.open(
          sealed.bytes, nonce: nonce, context: context, appendingTo: &opened)
        #expect(isOpened == (vector.result == "valid"), "vector \(vector.tcId)")
        #expect(opened == [9] + (isOpened ? message : []), "vector \(vector.tcId)")
        guard isOpened else {
          invalid += 1
          continue
        }
        valid += 1
        var made: [UInt8] = [7, 7] + message
        cipher.seal(&made, from: 2, nonce: nonce, context: context)
        #expect(made == [7, 7] + sealed, "vector \(vector.tcId)")
      }
    }
    #expect(valid > 30)
    #expect(invalid > 20)
  }

  @Test func `Sealed bytes open, and nothing else does`() {
    var random = SeededRandom(seed: 4)
    for length in [0, 1, 15, 16, 17, 8_192, 100_000] {
      let cipher = GaloisCipher(keyBytes: random.bytes(32))
      let message = random.bytes(length)
      let nonce = SealNonce(place: random.next(), extra: 5)
      var sealed = message
      cipher.seal(&sealed, from: 0, nonce: nonce, context: [1])
      #expect(sealed.count == length + SealFormat.tagLength)
      var opened: [UInt8] = []
      func opens(_ sealed: [UInt8], _ nonce: SealNonce, _ context: [UInt8]) -> Bool {
        cipher.open(sealed.bytes, nonce: nonce, context: context, appendingTo: &opened)
      }
      #expect(opens(sealed, nonce, [1]))
      #expect(opened == message)
      #expect(!opens(sealed, nonce, [2]))
      #expect(!opens(sealed, SealNonce(place: nonce.place, extra: 6), [1]))
      sealed[random.below(sealed.count)] ^= 1 << UInt8(random.below(8))
      #expect(!opens(sealed, nonce, [1]))
      #expect(opened == message)
    }
  }
}

extension SealNonce {
  fileprivate init(reading bytes: [UInt8]) {
    let place = bytes.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    let extra = bytes.dropFirst(8).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    self.init(place: place, extra: extra)
  }
}
