// What strangers try with tokens: keys that are swapped or brought along, tokens that were right
// once, and the memory of tokens that were checked.

#if Server
  import Crypto
  import Foundation
  import OndolAccounts
  import OndolEngine
  import OndolJSON
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct TokenAttackTests {
    private func refusal(_ stage: AuthStage, _ token: String) async -> TokenProblem? {
      await problem { _ = try await stage.identity.verify(token, as: .id) }
    }

    private func parts(_ token: String) -> [String] { token.split(separator: ".").map(String.init) }

    private func encoded(_ value: Value) -> String {
      Base64URL.encode(JSONWriter.line(value, .plain).utf8)
    }

    @Test func `A key of the database cannot sign under the name of another`() async throws {
      let stage = try await AuthStage()
      let token = try await stage.signUp().text("idToken")
      let first = try await stage.identity.keys.signing()
      try await TokenKeys.rotate(in: stage.database)
      await stage.clock.advance(by: .seconds(61))
      let second = try await stage.identity.keys.signing()
      try #require(first.id != second.id)
      let claims = parts(token)[1]
      for (name, key) in [(first.id, second), (second.id, first)] {
        let signed = encoded(["alg": "ES256", "kid": .string(name)]) + "." + claims
        let signature = try key.secret.signature(for: Data(signed.utf8)).rawRepresentation
        #expect(
          await refusal(stage, "\(signed).\(Base64URL.encode(signature))") == .wrongSignature)
      }
    }

    @Test func `A key that comes with the token checks nothing`() async throws {
      let stage = try await AuthStage()
      let token = try await stage.signUp().text("idToken")
      let key = try await stage.identity.keys.signing()
      let (mine, claims) = (P256.Signing.PrivateKey(), parts(token)[1])
      let point = mine.publicKey.rawRepresentation
      let jwk: Value = [
        "kty": "EC", "crv": "P-256", "x": .string(Base64URL.encode(point.prefix(32))),
        "y": .string(Base64URL.encode(point.suffix(32))),
      ]
      let headers: [Value] = [
        ["alg": "ES256", "kid": .string(key.id), "jwk": jwk],
        ["alg": "ES256", "jwk": jwk], ["alg": "ES256", "kid": "mine", "jwk": jwk],
        ["alg": "ES256", "kid": .string(key.id), "jku": "https://evil.example/keys"],
        ["alg": "ES256", "kid": "../../items/mine"], ["alg": "ES256", "kid": ""],
      ]
      for header in headers {
        let signed = encoded(header) + "." + claims
        let signature = try mine.signature(for: Data(signed.utf8)).rawRepresentation
        #expect(
          await refusal(stage, "\(signed).\(Base64URL.encode(signature))") != nil, "\(header)")
      }
      // The published key as the secret of a symmetric algorithm.
      for published in [
        key.published.rawRepresentation, Data(key.published.pemRepresentation.utf8),
      ] {
        let signed = encoded(["alg": "HS256", "kid": .string(key.id)]) + "." + claims
        let code = HMAC<SHA256>.authenticationCode(
          for: Data(signed.utf8), using: SymmetricKey(data: published))
        #expect(await refusal(stage, "\(signed).\(Base64URL.encode(code))") == .wrongAlgorithm)
      }
      for algorithm in ["none", "None", "NONE", "nOnE", "", "ES384", "RS256"] {
        for signature in ["", parts(token)[2]] {
          let header = encoded(["alg": .string(algorithm), "kid": .string(key.id)])
          #expect(await refusal(stage, "\(header).\(claims).\(signature)") == .wrongAlgorithm)
        }
      }
    }

    @Test func `A signature that is not one is none`() async throws {
      let stage = try await AuthStage()
      let token = try await stage.signUp().text("idToken")
      let rest = parts(token).prefix(2).joined(separator: ".")
      let signatures: [[UInt8]] = [
        [], [0], Array(repeating: 0, count: 64), Array(repeating: 255, count: 64),
      ]
      for bytes in signatures {
        #expect(await refusal(stage, "\(rest).\(Base64URL.encode(bytes))") == .wrongSignature)
      }
    }

    // MARK: - Remembered tokens

    @Test func `A remembered token ends with its time`() async throws {
      let stage = try await AuthStage()
      let token = try await stage.signUp().text("idToken")
      for _ in 0..<3 { #expect(await refusal(stage, token) == nil) }
      #expect(stage.identity.checked.count == 1)
      await stage.clock.advance(by: .seconds(3_600 + 299))
      #expect(await refusal(stage, token) == nil)
      await stage.clock.advance(by: .seconds(2))
      #expect(await refusal(stage, token) == .expired)
    }

    @Test func `A remembered token ends with its key`() async throws {
      let stage = try await AuthStage()
      let token = try await stage.signUp().text("idToken")
      #expect(await refusal(stage, token) == nil)
      let key = try await stage.identity.keys.signing()
      try await stage.database.tokenKeys.document(key.id).delete()
      await stage.clock.advance(by: .seconds(61))
      #expect(await refusal(stage, token) == .wrongKey)
      // Another key under the same name does not vouch for it.
      let other: [String: Value] = [
        "key": .bytes(Array(P256.Signing.PrivateKey().rawRepresentation)),
        "createdAt": .timestamp(key.createdAt),
      ]
      try await stage.database.tokenKeys.document(key.id).setData(other)
      await stage.clock.advance(by: .seconds(61))
      #expect(await refusal(stage, token) == .wrongSignature)
    }

    @Test func `A remembered token is of its kind, and of its bytes`() async throws {
      let stage = try await AuthStage()
      let token = try await stage.signUp().text("idToken")
      #expect(await refusal(stage, token) == nil)
      for kind in [TokenKind.sessionCookie, .custom] {
        let found = await problem { _ = try await stage.identity.verify(token, as: kind) }
        #expect(found != nil)
      }
      for other in [
        token + " ", " " + token, token + "=", token.uppercased(), String(token.dropLast()),
      ] {
        #expect(await refusal(stage, other) != nil)
      }
      // What is refused is not remembered.
      #expect(stage.identity.checked.count == 1)
    }

    @Test func `The memory of tokens is bounded, and keeps those that are used`() {
      let memory = CheckedTokens(most: 100)
      let used = CheckedTokens.digest("used")
      let checked = CheckedTokens.Checked(claims: [:], keyID: "k", key: Data())
      memory.note(checked, used)
      for number in 0..<10_000 {
        memory.note(checked, CheckedTokens.digest("\(number)"))
        #expect(memory.count <= 100)
        if number % 30 == 0 { #expect(memory.find(used) != nil) }
      }
      #expect(memory.find(CheckedTokens.digest("0")) == nil)
      memory.forget(used)
      #expect(memory.find(used) == nil)
    }
  }
#endif
