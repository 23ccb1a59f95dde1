// Tokens and requests of accounts as strangers send them. Whatever comes, no token is taken but the
// one that the key has signed; each request has an answer that is no fault of the server's; and the
// accounts go on as before.

#if Server
  import Dispatch
  import Foundation
  import Ondol
  import OndolAccounts
  import OndolEngine

  @testable import OndolServer

  enum TokenTarget: FuzzTarget {
    static let name = "token"

    static func run(_ bytes: [UInt8]) {
      var input = FuzzInput(bytes)
      let kind = input.below(targets.count + 2)
      let rest = input.rest()
      let isDone = DispatchSemaphore(value: 0)
      Task {
        do {
          switch kind {
          case 0: try await verify(String(decoding: rest, as: UTF8.self))
          case 1: try await request(rest)
          default: try await call(targets[kind - 2], rest)
          }
        } catch {
          demand(false, "\(error)")
        }
        isDone.signal()
      }
      isDone.wait()
    }

    /// The sound token, pieces of others, and a sound request of each call.
    static func seeds() -> [[UInt8]] {
      let header = Base64URL.encode("{\"alg\":\"none\"}".utf8)
      let claims = Base64URL.encode("{\"sub\":\"u\",\"a\":[1,{\"b\":null}]}".utf8)
      var seeds = [[0] + Array(sound.utf8), [0] + Array("\(header).\(claims).".utf8)]
      seeds.append([1] + Array("GET /emulator/action?key=a&mode=signIn&oobCode=x%20y".utf8))
      seeds += targets.enumerated().map { [UInt8($0.offset + 2)] + Array($0.element.seed.utf8) }
      return seeds
    }

    // MARK: - Tokens

    /// What signs here: a secret that only this file has, so a token can be sound in every run.
    private static let keyID = "fuzzfuzzfuzzfuzzfuzz"
    private static let secret = Data(repeating: 7, count: 32)
    /// Signed with that key, of a sign-in in 1970, and lasting until 2286.
    private static let sound =
      "eyJhbGciOiJFUzI1NiIsImtpZCI6ImZ1enpmdXp6ZnV6emZ1enpmdXp6In0.eyJpc3MiOiJodHRwczov"
      + "L3NlY3VyZXRva2VuLmdvb2dsZS5jb20vcCIsImF1ZCI6InAiLCJzdWIiOiJ1IiwiYXV0aF90aW1lIjow"
      + "LCJpYXQiOjAsImV4cCI6OTk5OTk5OTk5OX0.hTX9O9e-cuyL0hjAQuHMJtHgYeN4H9viXvjqqDAuOiNR"
      + "q1bJyvRyivAxcprh3hXyR377LgoIcPCrod_i6ok9xQ"

    private static func verify(_ text: String) async throws {
      let database = try await Database.inMemory()
      try await database.tokenKeys.document(keyID).setData([
        "key": secret, "createdAt": try Timestamp(microsecondsSince1970: 0),
      ])
      let identity = Identity(database)
      for kind in TokenKind.allCases {
        do throws(TokenProblem) {
          _ = try await identity.verify(text, as: kind)
          demand(kind == .id && text == sound, "a forged token is taken")
        } catch {
          demand(kind != .id || text != sound, "the sound token is refused: \(error)")
          if case .failed(let error) = error { demand(false, "\(error)") }
        }
      }
      // What nobody signed may say what it likes, and must be read all the same.
      _ = try? await identity.verify(text, as: .id, acceptsUnsigned: true)
      try await database.close()
    }

    // MARK: - Requests

    private struct Target: Sendable {
      let name: String
      let seed: String
      var isAdministrators = false

      var path: String {
        let root = "/identitytoolkit.googleapis.com/v1"
        if name == "token" { return "/securetoken.googleapis.com/v1/token?key=p" }
        if name == "createSessionCookie" { return "\(root)/projects/p:\(name)" }
        guard isAdministrators else { return "\(root)/accounts:\(name)?key=p" }
        return "\(root)/projects/p/accounts\(name == "create" ? "" : ":\(name)")"
      }
    }

    private static let targets = [
      Target(name: "signUp", seed: "{\"email\":\"b@c.de\",\"password\":\"secret\"}"),
      Target(name: "signInWithPassword", seed: "{\"email\":\"a@b.cd\",\"password\":\"secret\"}"),
      Target(name: "signInWithCustomToken", seed: "{\"token\":\"\(sound)\"}"),
      Target(name: "signInWithEmailLink", seed: "{\"email\":\"a@b.cd\",\"oobCode\":\"0000\"}"),
      Target(name: "lookup", seed: "{\"idToken\":\"\(sound)\"}"),
      Target(
        name: "update", seed: "{\"idToken\":\"x\",\"displayName\":\"A\",\"email\":\"b@c.de\"}"),
      Target(name: "delete", seed: "{\"idToken\":\"x\"}"),
      Target(name: "sendOobCode", seed: "{\"requestType\":\"EMAIL_SIGNIN\",\"email\":\"a@b.cd\"}"),
      Target(
        name: "resetPassword",
        seed: "{\"oobCode\":\"0000-0000-0000-0000\",\"newPassword\":\"secret\"}"),
      Target(
        name: "createAuthUri", seed: "{\"identifier\":\"a@b.cd\",\"continueUri\":\"http://l\"}"),
      Target(name: "token", seed: "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"x\"}"),
      Target(
        name: "create",
        seed: "{\"localId\":\"v\",\"email\":\"v@b.cd\",\"phoneNumber\":\"+15550100\"}",
        isAdministrators: true),
      Target(
        name: "lookup",
        seed: "{\"localId\":[\"u\"],\"federatedUserId\":[{\"providerId\":\"g\",\"rawId\":\"1\"}]}",
        isAdministrators: true),
      Target(
        name: "query", seed: "{\"offset\":\"0\",\"limit\":3,\"expression\":[{\"userId\":\"u\"}]}",
        isAdministrators: true),
      Target(
        name: "batchCreate",
        seed: "{\"hashAlgorithm\":\"STANDARD_SCRYPT\",\"memoryCost\":2,\"blockSize\":1,"
          + "\"parallelization\":1,\"users\":[{\"localId\":\"w\",\"salt\":\"AA==\"}]}",
        isAdministrators: true),
      Target(
        name: "batchDelete", seed: "{\"localIds\":[\"u\",\"x\"],\"force\":true}",
        isAdministrators: true),
      Target(
        name: "update",
        seed: "{\"localId\":\"u\",\"customAttributes\":\"{\\\"a\\\":1}\",\"validSince\":\"1\","
          + "\"linkProviderUserInfo\":{\"providerId\":\"g\",\"rawId\":\"1\"}}",
        isAdministrators: true),
      Target(
        name: "sendOobCode",
        seed: "{\"requestType\":\"VERIFY_EMAIL\",\"email\":\"a@b.cd\",\"returnOobLink\":true}",
        isAdministrators: true),
      Target(
        name: "createSessionCookie", seed: "{\"idToken\":\"\(sound)\",\"validDuration\":300}",
        isAdministrators: true),
    ]

    /// A method and a target in one line, with a body after it.
    private static func request(_ bytes: [UInt8]) async throws {
      let parts = bytes.split(
        separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
      let words = String(decoding: parts[0], as: UTF8.self)
        .split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
      let body = parts.count > 1 ? Array(parts[1]) : []
      guard words.count == 2, let call = HTTPCall(String(words[0]), String(words[1]), body: body)
      else { return }
      try await answer(call)
    }

    private static func call(_ target: Target, _ body: [UInt8]) async throws {
      let headers = target.isAdministrators ? ["authorization": "Bearer owner"] : [:]
      guard let call = HTTPCall("POST", target.path, headers: headers, body: body) else {
        return demand(false, "no target: \(target.path)")
      }
      try await answer(call)
    }

    private static func answer(_ call: HTTPCall) async throws {
      let database = try await Database.inMemory()
      var options = Accounts.Options()
      options.hashing = PasswordHashing(unchecked: 2, 1, 1)
      options.refusesSimplePasswords = false
      options.sendCode = { _, _, _ in }
      let served = ServedDatabase(database)
      let accounts = try await served.identity.accounts(options)
      var account = NewAccount(uid: "u")
      account.email = "a@b.cd"
      account.password = "secret123"
      _ = try await accounts.createAccount(account)
      let face = AccountsFace(
        directory: SingleDatabase(served), admission: Admission(accounts: options), project: nil)
      let answer = await face.answer(call)
      demand(
        answer.status < 500,
        "a fault of the server: \(String(decoding: answer.body, as: UTF8.self))")
      _ = try await accounts.listAccounts()
      try await database.close()
    }
  }
#endif
