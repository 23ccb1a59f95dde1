// Who a caller is: nobody without a proof, an administrator or a person with one, and nobody at all
// with a proof that is wrong.

#if Server
  import Foundation
  import OndolAccounts
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct AdmissionTests {
    private func principal(_ stage: AuthStage, _ bearer: String?) async throws -> Principal {
      try await stage.admission.principal(
        ofBearer: bearer, project: "app", in: stage.directory)
    }

    private func code(_ stage: AuthStage, _ bearer: String?) async -> DatabaseError.Code? {
      do {
        _ = try await principal(stage, bearer)
        return nil
      } catch {
        return (error as? DatabaseError)?.code
      }
    }

    @Test func `A request is of nobody, of an administrator or of a person`() async throws {
      let stage = try await AuthStage { $0.adminToken = "0123456789abcdef" }
      let signedUp = try await stage.signUp()
      guard case .nobody = try await principal(stage, nil) else {
        Issue.record("a request without a proof")
        return
      }
      for bearer in ["Bearer owner", "bearer owner", "Bearer 0123456789abcdef"] {
        guard case .admin = try await principal(stage, bearer) else {
          Issue.record("\(bearer) is an administrator's")
          return
        }
      }
      for scheme in ["Bearer", "Firebase"] {
        let found = try await principal(stage, "\(scheme) \(signedUp.text("idToken"))")
        #expect(found.token?.uid == signedUp.text("localId"))
      }
    }

    @Test func `A proof that is wrong makes nobody of nobody`() async throws {
      let stage = try await AuthStage { $0.adminToken = "0123456789abcdef" }
      let text = try await stage.signUp().text("idToken")
      let wrong = [
        "", "Bearer", "Bearer ", "owner", "Basic owner", "Bearer owner owner", "Bearer Owner",
        "Bearer 0123456789abcdeg", "Bearer \(text)x", "Bearer a.b.c", text,
      ]
      for bearer in wrong { #expect(await code(stage, bearer) == .unauthenticated, "\(bearer)") }
      await stage.clock.advance(by: .seconds(3_600 + 301))
      #expect(await code(stage, "Bearer \(text)") == .unauthenticated)
    }

    @Test func `Everybody's token of administrators is for this machine`() async throws {
      var stage = try await AuthStage { $0.acceptsUnsignedTokens = true }
      let unsigned =
        "\(Base64URL.encode("{\"alg\":\"none\"}".utf8))."
        + "\(Base64URL.encode("{\"sub\":\"ann\",\"role\":1}".utf8))."
      #expect(await code(stage, "Bearer owner") == nil)
      let found = try await principal(stage, "Bearer \(unsigned)")
      #expect(found.token?.uid == "ann" && found.token?.claims["role"] == 1)
      stage.admission.isLoopback = false
      #expect(await code(stage, "Bearer owner") == .unauthenticated)
      #expect(await code(stage, "Bearer \(unsigned)") == .unauthenticated)
      let strict = try await AuthStage()
      #expect(await code(strict, "Bearer \(unsigned)") == .unauthenticated)
    }

    /// A page of any site that a browser shows could send it.
    @Test func `Pages of other sites are no administrators`() async throws {
      let stage = try await AuthStage()
      let path = "/identitytoolkit.googleapis.com/v1/projects/app/accounts:query"
      let cases: [([String: String], Int)] = [
        (["host": "127.0.0.1:9099"], 200), (["host": "localhost:9099"], 200),
        (["host": "[::1]:9099"], 200),
        (["host": "127.0.0.1:9099", "origin": "http://localhost:5173"], 200),
        (["host": "127.0.0.1:9099", "origin": "https://evil.example"], 401),
        (["host": "127.0.0.1:9099", "origin": "https://localhost.evil.example"], 401),
        (["host": "127.0.0.1:9099", "origin": "null"], 401),
        (["host": "evil.example:9099"], 401),
        (["host": "127.0.0.1.evil.example"], 401),
      ]
      for (headers, status) in cases {
        let answer = try await stage.call(
          path, [:], headers: headers.merging(AuthStage.owner) { one, _ in one })
        #expect(answer.status == status, "\(headers)")
      }
    }
  }
#endif
