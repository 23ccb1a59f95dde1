// Errors as Firebase's clients for accounts know them: a name in capitals, and sometimes a reason
// after a colon. One table gives each error of the library its name.

#if Server
  import Ondol
  import OndolAccounts

  /// An error of a call about accounts.
  struct AccountsFailure: Error, Hashable {
    /// The status of HTTP.
    let status: Int
    /// The error's name, which clients compare, and after " : " what a person may read.
    let message: String
    /// Google's name of the status; nil where Firebase has none.
    var statusName: String?

    init(_ message: String, status: Int = 400, named statusName: String? = nil) {
      self.status = status
      self.message = message
      self.statusName = statusName
    }

    var answer: HTTPAnswer {
      var answer = HTTPAnswer.failure(status, message, named: statusName)
      answer.isDenial = self == .notAdministrator
      return answer
    }

    static let notFound = AccountsFailure("NOT_FOUND", status: 404, named: "NOT_FOUND")
    static let missingKey = AccountsFailure(
      "The request is missing a valid API key.", status: 403, named: "PERMISSION_DENIED")
    static let notAdministrator = AccountsFailure(
      "The request needs an administrator's token in its header Authorization.", status: 401,
      named: "UNAUTHENTICATED")

    /// A field that is missing, such as `MISSING_EMAIL`.
    static func missing(_ name: String) -> AccountsFailure { AccountsFailure("MISSING_\(name)") }

    /// A field with a value that it cannot have.
    static func wrongType(_ name: String) -> AccountsFailure {
      AccountsFailure("INVALID_ARGUMENT : \(name) has a wrong value", named: "INVALID_ARGUMENT")
    }
  }

  // MARK: - The library's errors

  extension AccountsFailure {
    /// The failure for an error of the library.
    init(_ error: AuthError) {
      if let failure = error.databaseError {
        self.init(failure)
      } else {
        self.init(error.code, reason: error.message)
      }
    }

    /// The failure for a kind of error.
    init(_ code: AuthErrorCode, reason: String) {
      switch code {
      case .internalError, .keychainError:
        self.init("INTERNAL_ERROR", status: 500, named: "INTERNAL")
      case .weakPassword, .invalidPhoneNumber, .tooManyRequests, .invalidCount:
        self.init("\(Self.name(of: code)) : \(reason)")
      default:
        self.init(Self.name(of: code))
      }
    }

    /// The failure for an error of the database, which is no fault of the caller.
    init(_ error: DatabaseError) {
      switch error.code {
      case .unauthenticated:
        self.init(error.message, status: 401, named: "UNAUTHENTICATED")
      case .invalidArgument: self.init("INVALID_ARGUMENT", named: "INVALID_ARGUMENT")
      case .notFound: self.init("PROJECT_NOT_FOUND", status: 404, named: "NOT_FOUND")
      case .resourceExhausted:
        self.init("QUOTA_EXCEEDED", status: 429, named: "RESOURCE_EXHAUSTED")
      case .unavailable, .deadlineExceeded, .cancelled, .aborted:
        self.init("UNAVAILABLE", status: 503, named: "UNAVAILABLE")
      default: self.init("INTERNAL_ERROR", status: 500, named: "INTERNAL")
      }
    }

    /// The name that Firebase has for a kind of error.
    static func name(of code: AuthErrorCode) -> String {
      switch code {
      case .invalidCredential: "INVALID_LOGIN_CREDENTIALS"
      case .userDisabled: "USER_DISABLED"
      case .operationNotAllowed: "OPERATION_NOT_ALLOWED"
      case .emailAlreadyInUse, .accountExistsWithDifferentCredential: "EMAIL_EXISTS"
      case .invalidEmail: "INVALID_EMAIL"
      case .tooManyRequests: "TOO_MANY_ATTEMPTS_TRY_LATER"
      case .userNotFound: "USER_NOT_FOUND"
      case .requiresRecentLogin: "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"
      case .providerAlreadyLinked: "PROVIDER_ALREADY_LINKED"
      case .noSuchProvider, .invalidIdentity: "INVALID_PROVIDER_ID"
      case .invalidUserToken: "INVALID_REFRESH_TOKEN"
      case .userTokenExpired: "TOKEN_EXPIRED"
      case .credentialAlreadyInUse: "FEDERATED_USER_ID_ALREADY_LINKED"
      case .weakPassword: "WEAK_PASSWORD"
      case .invalidActionCode: "INVALID_OOB_CODE"
      case .missingEmail: "MISSING_EMAIL"
      case .invalidPhoneNumber: "INVALID_PHONE_NUMBER"
      case .nullUser: "INVALID_ID_TOKEN"
      case .uidAlreadyInUse: "DUPLICATE_LOCAL_ID"
      case .invalidUID: "INVALID_LOCAL_ID"
      case .invalidClaims: "INVALID_CLAIMS"
      case .claimsTooLarge: "CLAIMS_TOO_LARGE"
      case .reservedClaim: "FORBIDDEN_CLAIM"
      case .invalidDisplayName: "INVALID_DISPLAY_NAME"
      case .invalidPhotoURL: "INVALID_PHOTO_URL"
      case .invalidPageToken: "INVALID_PAGE_SELECTION"
      case .invalidPasswordHash: "INVALID_PASSWORD_HASH"
      case .invalidHashParameters: "INVALID_HASH_PARAMETERS"
      case .invalidCount: "INVALID_ARGUMENT"
      case .keychainError, .internalError: "INTERNAL_ERROR"
      }
    }

    /// The failure for a token that is not taken.
    ///
    /// - Parameter name: the name of a token that is none, such as `INVALID_ID_TOKEN`.
    init(_ problem: TokenProblem, named name: String) {
      switch problem {
      case .expired, .revoked: self.init("TOKEN_EXPIRED")
      case .disabled: self.init("USER_DISABLED")
      case .unknownAccount: self.init("USER_NOT_FOUND")
      case .failed(let error): self.init(error)
      default: self.init(name)
      }
    }
  }

  /// Runs calls of the library and converts their errors.
  func reporting<Result>(
    _ body: () async throws(AuthError) -> Result
  ) async throws(AccountsFailure) -> Result {
    do throws(AuthError) {
      return try await body()
    } catch {
      throw AccountsFailure(error)
    }
  }
#endif
