// Tokens: what a key of the database signed is taken while it lasts, and nothing else is.

#if Server
  import Crypto
  import Foundation
  import OndolAccounts
  import OndolJSON
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct WebTokenTests {
    private func stage() async throws -> (AuthStage, token: String) {
      let stage = try await AuthStage()
      return (stage, try await stage.signUp().text("idToken"))
    }

    private func verify(_ stage: AuthStage, _ token: String) async -> TokenProblem? {
      await problem { _ = try await stage.identity.verify(token, as: .id) }
    }

    /// A token of these parts, signed with a key if there is one.
    private func token(
      _ header: String, _ claims: String, _ key: P256.Signing.PrivateKey? = nil
    ) throws -> String {
      let signed = "\(Base64URL.encode(header.utf8)).\(Base64URL.encode(claims.utf8))"
      let signature = try key?.signature(for: Array(signed.utf8)).rawRepresentation
      return "\(signed).\(Base64URL.encode(signature ?? Data()))"
    }

    private func claims(_ stage: AuthStage, _ changes: [String: Value?] = [:]) throws -> String {
      let now = stage.identity.now
      var claims: [String: Value] = [
        "iss": "https://securetoken.google.com/app", "aud": "app", "sub": "u", "user_id": "u",
        "auth_time": .integer(now), "iat": .integer(now), "exp": .integer(now + 3_600),
      ]
      for (name, value) in changes { claims[name] = value }
      return JSONWriter.line(.map(claims), .plain)
    }

    @Test func `Base64 agrees with Foundation's, and has one spelling`() throws {
      for seed in Seeds.first(200) {
        var random = SeededRandom(seed: seed)
        let bytes = (0..<random.below(60)).map { _ in UInt8(random.below(256)) }
        let text = Base64URL.encode(bytes)
        let plain = Data(bytes).base64EncodedString().replacing("+", with: "-")
          .replacing("/", with: "_").replacing("=", with: "")
        #expect(text == plain)
        #expect(Base64URL.decode(text.utf8) == bytes)
        // Any other text of the same length is other bytes, or none.
        guard let last = text.utf8.last else { continue }
        for other in UInt8.min...UInt8.max where other != last {
          let decoded = Base64URL.decode(Array(text.utf8.dropLast()) + [other])
          #expect(decoded != bytes, "seed \(seed)")
        }
      }
      for text in ["A", "AA==", "AB", "A A", "AA\n", "+A", "/A", "é"] {
        #expect(Base64URL.decode(text.utf8) == nil)
      }
    }

    @Test func `A token of a sign-in has Firebase's claims, and is verified`() async throws {
      let (stage, text) = try await stage()
      let token = try await stage.identity.verify(text, as: .id)
      let now = stage.identity.now
      #expect(token.email == "ann@example.com" && !token.isEmailVerified)
      #expect(token.signInProvider == "password" && token.audience == "app")
      #expect(token.issueTime == now && token.expirationTime == now + 3_600)
      #expect(token.authenticationTime == now)
      #expect(token.claims["iss"] == "https://securetoken.google.com/app")
      #expect(
        token.claims["sub"] == .string(token.uid) && token.claims["user_id"] == .string(token.uid))
      #expect(token.claims["firebase"]?["identities"] == ["email": ["ann@example.com"]])
    }

    @Test func `A key outside can check a token with what is published`() async throws {
      let (stage, text) = try await stage()
      let answer = try await stage.call("/.well-known/jwks.json?key=app", method: "GET")
      let keys = try #require(answer["keys"]?.array)
      let parts = text.split(separator: ".")
      let decoded = try #require(Base64URL.decode(parts[0].utf8))
      let header = try JSONReader.read(decoded, .plain)
      let key = try #require(keys.first { $0["kid"] == header["kid"] })
      #expect(key["crv"] == "P-256" && key["d"] == nil && keys.count == 1)
      let point = try ["x", "y"].flatMap { name in
        let text = try #require(key[name]?.string)
        return try #require(Base64URL.decode(text.utf8))
      }
      let published = try P256.Signing.PublicKey(rawRepresentation: point)
      let signature = try P256.Signing.ECDSASignature(
        rawRepresentation: try #require(Base64URL.decode(parts[2].utf8)))
      #expect(published.isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8)))
    }

    @Test func `Every changed byte of a token is noticed`() async throws {
      let (stage, text) = try await stage()
      let bytes = Array(text.utf8)
      for place in bytes.indices {
        var other = bytes
        other[place] = other[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let found = await verify(stage, String(decoding: other, as: UTF8.self))
        #expect(found != nil, "the byte at \(place)")
      }
      for length in 0..<bytes.count {
        let found = await verify(stage, String(decoding: bytes.prefix(length), as: UTF8.self))
        #expect(found != nil, "\(length) bytes of it")
      }
      #expect(await verify(stage, text + "A") != nil)
      #expect(await verify(stage, text + ".") != nil)
      #expect(await verify(stage, " " + text) != nil)
      #expect(await verify(stage, text) == nil)
    }

    @Test func `Claims and header are checked after the signature, and all of them`() async throws {
      let (stage, _) = try await stage()
      let key = try await stage.identity.keys.signing()
      let header = "{\"alg\":\"ES256\",\"kid\":\"\(key.id)\"}"
      let now = stage.identity.now
      let cases: [([String: Value?], TokenProblem?)] = [
        ([:], nil),
        (["exp": .integer(now - 301)], .expired), (["exp": .integer(now - 299)], nil),
        (["iat": .integer(now + 301)], .early), (["iat": .integer(now + 300)], nil),
        (["auth_time": .integer(now + 301)], .early),
        (["exp": .integer(.max), "iat": .integer(.min)], nil),
        (["aud": "other"], .wrongPurpose), (["aud": ""], .wrongPurpose),
        (["aud": nil], .wrongPurpose),
        (["aud": ["app"]], .wrongPurpose),
        (["iss": "https://session.firebase.google.com/app"], .wrongPurpose),
        (["iss": nil], .wrongPurpose),
        (["sub": ""], .malformed("it names no account")),
        (["sub": "v"], .malformed("it names no account")),
        (["sub": 1], .malformed("it names no account")),
        (["sub": .string(String(repeating: "u", count: 129))], .malformed("it names no account")),
        (["exp": nil], .malformed("it has no times")),
        (["iat": "1"], .malformed("it has no times")),
        (["exp": 1.5e300], .malformed("it has no times")),
      ]
      for (changes, expected) in cases {
        let text = try token(header, try claims(stage, changes), key.secret)
        #expect(await verify(stage, text) == expected, "\(changes)")
      }
    }

    @Test func `No other header is taken`() async throws {
      let (stage, _) = try await stage()
      let key = try await stage.identity.keys.signing()
      let body = try claims(stage)
      let other = P256.Signing.PrivateKey()
      let headers: [(String, P256.Signing.PrivateKey?, TokenProblem)] = [
        ("{\"alg\":\"none\"}", nil, .wrongAlgorithm),
        ("{\"alg\":\"none\",\"kid\":\"\(key.id)\"}", key.secret, .wrongAlgorithm),
        ("{\"alg\":\"None\"}", nil, .wrongAlgorithm), ("{}", key.secret, .wrongAlgorithm),
        ("{\"alg\":\"HS256\",\"kid\":\"\(key.id)\"}", key.secret, .wrongAlgorithm),
        ("{\"alg\":\"RS256\",\"kid\":\"\(key.id)\"}", key.secret, .wrongAlgorithm),
        ("{\"alg\":\"ES256\"}", key.secret, .wrongKey),
        ("{\"alg\":\"ES256\",\"kid\":\"\"}", key.secret, .wrongKey),
        ("{\"alg\":\"ES256\",\"kid\":\"../accounts/x\"}", key.secret, .wrongKey),
        ("{\"alg\":\"ES256\",\"kid\":\"aaaaaaaaaaaaaaaaaaaa\"}", key.secret, .wrongKey),
        ("{\"alg\":\"ES256\",\"kid\":\"\(key.id)\"}", other, .wrongSignature),
        ("{\"alg\":\"ES256\",\"kid\":\"\(key.id)\"}", nil, .wrongSignature),
        (
          "{\"alg\":\"ES256\",\"crit\":[\"exp\"],\"kid\":\"\(key.id)\"}", key.secret,
          .malformed("its header has unknown extensions")
        ),
      ]
      for (header, secret, expected) in headers {
        #expect(await verify(stage, try token(header, body, secret)) == expected, "\(header)")
      }
    }

    @Test func `A name that stands twice, and what is huge or deep, is refused`() async throws {
      let (stage, _) = try await stage()
      let key = try await stage.identity.keys.signing()
      let header = "{\"alg\":\"ES256\",\"kid\":\"\(key.id)\"}"
      let sound = try claims(stage)
      let doubled = "{\"sub\":\"admin\"," + sound.dropFirst()
      let malformed = TokenProblem.malformed("a part is no JSON object")
      #expect(await verify(stage, try token(header, doubled, key.secret)) == malformed)
      let inner = "{\"a\":{\"b\":1,\"b\":2}," + sound.dropFirst()
      #expect(await verify(stage, try token(header, inner, key.secret)) == malformed)
      let twoKeys = "{\"alg\":\"none\"," + header.dropFirst()
      #expect(await verify(stage, try token(twoKeys, sound, key.secret)) == malformed)
      let deep = String(repeating: "[", count: 2_000) + String(repeating: "]", count: 2_000)
      let nested = "{\"a\":\(deep)," + sound.dropFirst()
      #expect(await verify(stage, try token(header, nested, key.secret)) == malformed)
      let large = "{\"a\":\"\(String(repeating: "x", count: 13_000))\"," + sound.dropFirst()
      let found = await verify(stage, try token(header, large, key.secret))
      #expect(found == .malformed("a token has 16384 bytes at most"))
      for other in ["[]", "1", "\"a\"", "", sound + "x"] {
        #expect(await verify(stage, try token(header, other, key.secret)) == malformed)
      }
    }

    @Test func `No kind of token is taken for another`() async throws {
      let stage = try await AuthStage()
      let signedUp = try await stage.signUp()
      let cookie = try await stage.call(
        "/identitytoolkit.googleapis.com/v1/projects/app:createSessionCookie",
        ["idToken": .string(signedUp.text("idToken")), "validDuration": 3_600],
        headers: AuthStage.owner)
      let now = stage.identity.now
      let custom = try await stage.identity.sign(
        TokenKind.customClaims(for: signedUp.text("localId"), .none, now: now))
      let texts: [(TokenKind, String)] = [
        (.id, signedUp.text("idToken")), (.sessionCookie, cookie.text("sessionCookie")),
        (.custom, custom),
      ]
      for (kind, text) in texts {
        for other in TokenKind.allCases {
          let found = await problem { _ = try await stage.identity.verify(text, as: other) }
          #expect(
            (found == nil) == (kind == other), "\(kind) as \(other): \(String(describing: found))")
        }
      }
    }

    @Test func `A token of another database is not taken`() async throws {
      let (stage, text) = try await stage()
      let other = try await AuthStage(stage.clock, stage.device, path: "other.ondol")
      _ = try await other.signUp()
      #expect(await verify(other, text) == .wrongKey)
      // Not even under the name of the other's own key.
      let key = try await stage.identity.keys.signing()
      let known = try await other.identity.keys.signing()
      let header = "{\"alg\":\"ES256\",\"kid\":\"\(known.id)\"}"
      let forged = try token(header, try claims(stage), key.secret)
      #expect(await verify(other, forged) == .wrongSignature)
    }
  }
#endif
