// Errors of accounts, with Firebase Auth's names and numbers. An error reveals only what its reader
// may know: a wrong address and a wrong password are one error, and no message contains a password,
// a token or a code.

public import Ondol

/// The kind of an `AuthError`, with Firebase Auth's names and numbers. Firebase names the errors of
/// administrators' calls without numbers. Here their numbers start at 17,901.
public enum AuthErrorCode: Int, Sendable, Hashable, CaseIterable {
  /// The address, the password or the recovery code is wrong. The error does not say which.
  case invalidCredential = 17_004
  /// An administrator disabled the account: `AccountChanges.isDisabled`.
  case userDisabled = 17_005
  /// The app has not configured it: there is no `Accounts.Options.sendCode`. Or the account lacks
  /// something that the call needs, such as a password.
  case operationNotAllowed = 17_006
  /// Another account has the address.
  case emailAlreadyInUse = 17_007
  /// The text is not an email address.
  case invalidEmail = 17_008
  /// Too many tries failed. `AuthError.retryAfter` says when the next one is allowed.
  case tooManyRequests = 17_010
  /// The account does not exist any more.
  case userNotFound = 17_011
  /// Another account has the address of an identity at another service.
  case accountExistsWithDifferentCredential = 17_012
  /// The call needs a password that was given within the last minutes: `reauthenticate`.
  case requiresRecentLogin = 17_014
  /// The account already has a password, or an identity at the service. Change the password, or
  /// unlink the identity.
  case providerAlreadyLinked = 17_015
  /// The account has no identity at the service.
  case noSuchProvider = 17_016
  /// The text is not a session's token.
  case invalidUserToken = 17_017
  /// The session is over: signed out, too old, or ended by a change of the password.
  case userTokenExpired = 17_021
  /// Another account has the phone number, or the identity at another service.
  case credentialAlreadyInUse = 17_025
  /// The password is too short, too long or too easily guessed; the message says which.
  case weakPassword = 17_026
  /// The mailed code is wrong, used or expired. The error does not say which.
  case invalidActionCode = 17_030
  /// The account has no email address, and the call needs one.
  case missingEmail = 17_034
  /// The text is not a phone number in the form of E.164.
  case invalidPhoneNumber = 17_042
  /// No user is signed in.
  case nullUser = 17_067
  /// Another account has the uid.
  case uidAlreadyInUse = 17_901
  /// The text cannot be a uid.
  case invalidUID = 17_902
  /// The claims are not a JSON object, or are nested too deep.
  case invalidClaims = 17_903
  /// The claims have more than `CustomClaims.maximumBytes`.
  case claimsTooLarge = 17_904
  /// A claim has a name that tokens use themselves; see `CustomClaims.reservedNames`.
  case reservedClaim = 17_905
  /// The name is empty, too long, or contains control characters.
  case invalidDisplayName = 17_906
  /// The text is not an http or https URL, or is too long.
  case invalidPhotoURL = 17_907
  /// The text is not a page token of `Accounts.listAccounts(limit:pageToken:)`.
  case invalidPageToken = 17_908
  /// A hash of a password cannot come from the parameters.
  case invalidPasswordHash = 17_909
  /// The parameters of a hash of passwords are out of bounds.
  case invalidHashParameters = 17_910
  /// An identity at another service has no service, no person, or one that the library uses itself.
  case invalidIdentity = 17_912
  /// The call has more accounts than it takes, or fewer.
  case invalidCount = 17_911
  /// The session's token could not be stored or read outside the database.
  case keychainError = 17_995
  /// The database failed. `AuthError.databaseError` has its error.
  case internalError = 17_999
}

/// The error of calls about accounts.
///
/// ```swift
/// do {
///   try await auth.signIn(withEmail: email, password: password)
/// } catch {
///   switch error.code {
///   case .invalidCredential: show("The address or the password is wrong.")
///   case .tooManyRequests: show("Too many tries. Wait a little.")
///   default: show(error.message)
///   }
/// }
/// ```
public struct AuthError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of failure it is.
  public var code: AuthErrorCode
  /// The problem and its remedy, for a person.
  public var message: String
  /// After `.tooManyRequests`, the time until the next try is allowed.
  public var retryAfter: Duration?
  /// After `.internalError`, the database's error.
  public var databaseError: DatabaseError?

  init(_ code: AuthErrorCode, _ message: String, retryAfter: Duration? = nil) {
    self.code = code
    self.message = message
    self.retryAfter = retryAfter
  }

  /// Converts an error of a transaction or a database call.
  init(_ error: any Error) {
    switch error {
    case let error as AuthError:
      self = error
    case let error as DatabaseError:
      self.init(.internalError, error.message)
      databaseError = error
    default:
      self.init(.internalError, "a call failed in an unknown way")
    }
  }

  /// The code and the message, in one line.
  public var description: String { "\(code): \(message)" }
}

extension AuthError {
  static var invalidCredential: AuthError {
    AuthError(.invalidCredential, "the address or the password is wrong")
  }

  static var invalidActionCode: AuthError {
    AuthError(.invalidActionCode, "the code is wrong, used or too old; ask for another")
  }

  static var userTokenExpired: AuthError {
    AuthError(.userTokenExpired, "the session has ended; sign in again")
  }

  static var userNotFound: AuthError {
    AuthError(.userNotFound, "the account no longer exists")
  }

  static var userDisabled: AuthError {
    AuthError(.userDisabled, "the account is disabled; ask who runs the service")
  }

  static var credentialAlreadyInUse: AuthError {
    AuthError(.credentialAlreadyInUse, "another account has this phone number")
  }

  static var uidAlreadyInUse: AuthError {
    AuthError(.uidAlreadyInUse, "another account has this uid")
  }

  static var missingEmail: AuthError {
    AuthError(.missingEmail, "the account has no email address; give it one")
  }

  static var emailAlreadyInUse: AuthError {
    AuthError(.emailAlreadyInUse, "another account has this address; sign in, or use another")
  }
}

extension AuthError {
  /// Whether the calling session is over, so that another may begin.
  var isOfEndedSession: Bool {
    switch code {
    case .userTokenExpired, .userDisabled, .userNotFound: true
    default: false
    }
  }
}

/// Runs database calls and converts their errors to `AuthError`.
func authenticating<Result>(
  _ body: () async throws -> Result
) async throws(AuthError) -> Result {
  do {
    return try await body()
  } catch {
    throw AuthError(error)
  }
}
