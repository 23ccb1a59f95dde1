// The table of errors, whole: each of the library's has a name that Firebase's clients know.

#if Server
  import OndolAccounts
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct AccountsErrorTests {
    /// As Firebase's clients compare them.
    private static let names: [AuthErrorCode: String] = [
      .invalidCredential: "INVALID_LOGIN_CREDENTIALS", .userDisabled: "USER_DISABLED",
      .operationNotAllowed: "OPERATION_NOT_ALLOWED", .emailAlreadyInUse: "EMAIL_EXISTS",
      .invalidEmail: "INVALID_EMAIL", .tooManyRequests: "TOO_MANY_ATTEMPTS_TRY_LATER : why",
      .userNotFound: "USER_NOT_FOUND", .accountExistsWithDifferentCredential: "EMAIL_EXISTS",
      .requiresRecentLogin: "CREDENTIAL_TOO_OLD_LOGIN_AGAIN",
      .providerAlreadyLinked: "PROVIDER_ALREADY_LINKED", .noSuchProvider: "INVALID_PROVIDER_ID",
      .invalidUserToken: "INVALID_REFRESH_TOKEN", .userTokenExpired: "TOKEN_EXPIRED",
      .credentialAlreadyInUse: "FEDERATED_USER_ID_ALREADY_LINKED",
      .weakPassword: "WEAK_PASSWORD : why", .invalidActionCode: "INVALID_OOB_CODE",
      .missingEmail: "MISSING_EMAIL", .invalidPhoneNumber: "INVALID_PHONE_NUMBER : why",
      .nullUser: "INVALID_ID_TOKEN", .uidAlreadyInUse: "DUPLICATE_LOCAL_ID",
      .invalidUID: "INVALID_LOCAL_ID", .invalidClaims: "INVALID_CLAIMS",
      .claimsTooLarge: "CLAIMS_TOO_LARGE", .reservedClaim: "FORBIDDEN_CLAIM",
      .invalidDisplayName: "INVALID_DISPLAY_NAME", .invalidPhotoURL: "INVALID_PHOTO_URL",
      .invalidPageToken: "INVALID_PAGE_SELECTION", .invalidPasswordHash: "INVALID_PASSWORD_HASH",
      .invalidHashParameters: "INVALID_HASH_PARAMETERS", .invalidIdentity: "INVALID_PROVIDER_ID",
      .invalidCount: "INVALID_ARGUMENT : why", .keychainError: "INTERNAL_ERROR",
      .internalError: "INTERNAL_ERROR",
    ]

    @Test func `Each error of the library has Firebase's name`() {
      for code in AuthErrorCode.allCases {
        let failure = AccountsFailure(code, reason: "why")
        #expect(failure.message == Self.names[code], "\(code)")
        let isOurs = code == .internalError || code == .keychainError
        #expect(failure.status == (isOurs ? 500 : 400), "\(code)")
      }
      #expect(Self.names.count == AuthErrorCode.allCases.count)
    }

    @Test func `Each error of the database has a status`() {
      let statuses: [DatabaseError.Code: Int] = [
        .unauthenticated: 401, .invalidArgument: 400, .notFound: 404, .resourceExhausted: 429,
        .unavailable: 503, .deadlineExceeded: 503, .cancelled: 503, .aborted: 503,
      ]
      for code in DatabaseError.Code.allCases {
        let failure = AccountsFailure(DatabaseError(code, "of /srv/app.ondol"))
        #expect(failure.status == statuses[code] ?? 500, "\(code)")
        #expect(code == .unauthenticated || !failure.message.contains("srv"), "\(code)")
      }
    }

    @Test func `Each refused token has a name`() {
      let names: [(TokenProblem, String)] = [
        (.expired, "TOKEN_EXPIRED"), (.revoked, "TOKEN_EXPIRED"), (.disabled, "USER_DISABLED"),
        (.unknownAccount, "USER_NOT_FOUND"), (.early, "INVALID_ID_TOKEN"),
        (.malformed("x"), "INVALID_ID_TOKEN"), (.wrongKey, "INVALID_ID_TOKEN"),
        (.wrongSignature, "INVALID_ID_TOKEN"), (.wrongAlgorithm, "INVALID_ID_TOKEN"),
        (.wrongPurpose, "INVALID_ID_TOKEN"),
        (.failed(DatabaseError(.unavailable, "x")), "UNAVAILABLE"),
      ]
      for (problem, name) in names {
        #expect(AccountsFailure(problem, named: "INVALID_ID_TOKEN").message == name)
      }
    }

    @Test func `Each call that lacks a field names it`() async throws {
      let stage = try await AuthStage()
      let cases: [(String, Value, String)] = [
        ("signUp", ["email": "a@b.cd"], "MISSING_PASSWORD"),
        ("signUp", ["password": "secret"], "MISSING_EMAIL"),
        ("signUp", ["email": "a", "password": "secret"], "INVALID_EMAIL"),
        ("signInWithPassword", ["email": "a@b.cd"], "MISSING_PASSWORD"),
        ("signInWithPassword", [:], "MISSING_EMAIL"),
        ("signInWithCustomToken", [:], "MISSING_CUSTOM_TOKEN"),
        ("signInWithEmailLink", ["email": "a@b.cd"], "MISSING_OOB_CODE"),
        ("lookup", [:], "MISSING_ID_TOKEN"), ("update", [:], "MISSING_ID_TOKEN"),
        ("lookup", ["idToken": "x"], "INVALID_ID_TOKEN"),
        ("delete", ["idToken": "a.b.c"], "INVALID_ID_TOKEN"),
        ("sendOobCode", [:], "MISSING_REQ_TYPE"),
        ("sendOobCode", ["requestType": "X"], "INVALID_REQ_TYPE"),
        ("sendOobCode", ["requestType": "PASSWORD_RESET"], "MISSING_EMAIL"),
        ("resetPassword", [:], "MISSING_OOB_CODE"),
        ("resetPassword", ["oobCode": "x"], "INVALID_OOB_CODE"),
        ("resetPassword", ["oobCode": "0000-0000-0000-0000"], "INVALID_OOB_CODE"),
        ("createAuthUri", [:], "MISSING_IDENTIFIER"),
      ]
      for (name, body, error) in cases {
        #expect(try await stage.client(name, body).error == error, "\(name) \(body)")
      }
      #expect(try await stage.refresh("x").error == "INVALID_REFRESH_TOKEN")
      let unknown = Base64URL.encode(Array(repeating: 7 as UInt8, count: 32))
      #expect(try await stage.refresh(unknown).error == "TOKEN_EXPIRED")
      let grant = try await stage.call(
        "/securetoken.googleapis.com/v1/token?key=app", ["grant_type": "x"])
      #expect(grant.error == "INVALID_GRANT_TYPE")
    }
  }
#endif
