// The valid claims: a small JSON object that every reader reads alike, without the names that
// tokens use. Input from outside is refused and never crashes.

import Foundation
import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct ClaimsTests {
  private static func refusal(_ json: String) -> AuthErrorCode? {
    do throws(AuthError) {
      _ = try CustomClaims(json: json)
      return nil
    } catch {
      return error.code
    }
  }

  @Test(arguments: [
    ("{}", "{}"), (" { } ", "{}"), (#"{"admin":true}"#, #"{"admin":true}"#),
    (#"{ "b" : 1, "a" : [ null, "x", {"sub": 2.5} ] }"#, #"{"a":[null,"x",{"sub":2.5}],"b":1}"#),
    (#"{"n":9007199254740993}"#, #"{"n":9007199254740993}"#),
    (#"{"n":18446744073709551615}"#, #"{"n":18446744073709551615}"#),
    (#"{"n":-9223372036854775808,"m":0.1}"#, #"{"m":0.1,"n":-9223372036854775808}"#),
    (#"{"url":"https:\/\/a.b\/c"}"#, #"{"url":"https://a.b/c"}"#),
    (#"{"민지":"\ud55c"}"#, #"{"민지":"한"}"#),
  ])
  func `Claims are kept in one form`(_ json: String, _ form: String) throws {
    let claims = try CustomClaims(json: json)
    #expect(claims.json == form)
    #expect(try CustomClaims(json: form) == claims)
    #expect(claims.isEmpty == (form == "{}"))
  }

  @Test(arguments: [
    "", " ", "null", "true", "1", "\"text\"", "[]", "[{}]", "{", "}", "{\"a\"}", "{\"a\":}",
    "{\"a\":1}{}", "{a:1}", "{\"a\":NaN}", "{\"a\":1e999}", "{\"a\":\"\\ud800\"}", "{'a':1}",
  ])
  func `Anything except a JSON object is refused`(_ json: String) {
    #expect(Self.refusal(json) == .invalidClaims)
  }

  @Test(arguments: CustomClaims.reservedNames.sorted())
  func `A name that tokens use is refused, however it is written`(_ name: String) {
    let escaped = name.unicodeScalars.map { String(format: "\\u%04x", $0.value) }.joined()
    for text in [name, escaped] {
      #expect(Self.refusal("{\"admin\":true,\"\(text)\":1}") == .reservedClaim, "\(text)")
    }
    // Further down it is a name like any other.
    #expect(Self.refusal("{\"a\":{\"\(name)\":1}}") == nil)
  }

  @Test func `A thousand bytes are allowed, and one more is not`() throws {
    for text in ["x", "한"] {
      let frame = "{\"a\":\"\"}".utf8.count
      let count = (CustomClaims.maximumBytes - frame) / text.utf8.count
      let padding = CustomClaims.maximumBytes - frame - count * text.utf8.count
      let longest =
        "{\"a\":\"" + String(repeating: text, count: count)
        + String(repeating: "y", count: padding) + "\"}"
      #expect(longest.utf8.count == CustomClaims.maximumBytes)
      #expect(Self.refusal(longest) == nil)
      #expect(Self.refusal(longest + " ") == .claimsTooLarge)
    }
    #expect(Self.refusal(String(repeating: "[", count: 1 << 20)) == .claimsTooLarge)
  }

  @Test func `Nesting that a reader might not follow is refused`() {
    func nested(_ depth: Int) -> String {
      "{\"a\":" + String(repeating: "[", count: depth - 1)
        + String(repeating: "]", count: depth - 1) + "}"
    }
    #expect(Self.refusal(nested(32)) == nil)
    #expect(Self.refusal(nested(33)) == .invalidClaims)
    #expect(Self.refusal(nested(490)) == .invalidClaims)
    #expect(Self.refusal("{\"a\":\"" + String(repeating: "[", count: 900) + "\"}") == nil)
    #expect(Self.refusal("{\"a\":\"\\\"" + String(repeating: "{", count: 900) + "\"}") == nil)
  }

  @Test func `Of a name that comes twice every reader sees the same value`() throws {
    let claims = try CustomClaims(json: #"{"admin":true,"admin":false}"#)
    #expect(claims.json.split(separator: "admin").count == 2)
    #expect(try claims.decode(as: [String: Bool].self).count == 1)
    // An escape is no second spelling.
    let escaped = try CustomClaims(json: #"{"admin":true,"\u0061dmin":true}"#)
    #expect(escaped.json == #"{"admin":true}"#)
  }

  @Test func `Random bytes are claims or are refused, and claims come back as they are`() throws {
    var random = SeededRandom(seed: 1)
    let letters = Array("{}[]\":,0123456789.eE+-truefalsn \\u\u{FFFD}한")
    for round in 0..<20_000 {
      let text = String((0..<random.below(24)).map { _ in random.pick(letters) })
      for json in [text, "{\"a\":\(text)}"] {
        guard let claims = try? CustomClaims(json: json) else { continue }
        #expect(try CustomClaims(json: claims.json) == claims, "round \(round)")
      }
    }
  }

  @Test func `A type of the program's is written and read`() throws {
    struct Role: Codable, Equatable {
      var admin: Bool
      var levels: [Int]
    }
    let role = Role(admin: true, levels: [1, 2])
    let claims = try CustomClaims(role)
    #expect(claims.json == #"{"admin":true,"levels":[1,2]}"#)
    #expect(try claims.decode(as: Role.self) == role)
    let unfit = #expect(throws: AuthError.self) { try claims.decode(as: [String: Bool].self) }
    #expect(unfit?.code == .invalidClaims)
    for value in [["sub": 1], ["firebase": 2]] {
      let reserved = #expect(throws: AuthError.self) { _ = try CustomClaims(value) }
      #expect(reserved?.code == .reservedClaim)
    }
    let list = #expect(throws: AuthError.self) { _ = try CustomClaims([1, 2]) }
    #expect(list?.code == .invalidClaims)
  }

  @Test func `Claims are the account's for all its sessions, and a session's are its own`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    var accounts = try await trial.accounts(in: database)
    let claims = try CustomClaims(["admin": true])
    let own = try CustomClaims(["device": "phone"])
    let session = try await accounts.signIn(withUID: "minji", claims: own)
    #expect(session.provider == .custom)
    #expect(session.claims == own && session.isNewUser)
    #expect(session.account.customClaims.isEmpty)
    #expect(!session.account.isAnonymous)
    try await accounts.setCustomClaims(claims, of: "minji")
    accounts = try await trial.accounts(in: database)
    let known = try await accounts.session(forToken: session.token)
    #expect(known.account.customClaims == claims)
    #expect(known.claims == own)
    let other = try await accounts.signIn(
      withUID: "minji", provider: SignInProvider(rawValue: "phone"))
    #expect(other.claims.isEmpty && !other.isNewUser)
    #expect(other.provider.rawValue == "phone")
    #expect(other.account.customClaims == claims)
    #expect(try await accounts.setCustomClaims(.none, of: "minji").customClaims.isEmpty)
    #expect(
      await code { try await accounts.setCustomClaims(claims, of: "nobody") } == .userNotFound)
    try await database.close()
  }
}
