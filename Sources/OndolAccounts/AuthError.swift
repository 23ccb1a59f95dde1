// What can go wrong with accounts, under Firebase Auth's names and numbers. An error says what its
// reader may know and no more: a wrong address and a wrong password are one error, and no message
// has a password, a token or a code in it.

public import Ondol

/// What kind of failure an `AuthError` is: Firebase Auth's names and numbers.
public enum AuthErrorCode: Int, Sendable, Hashable, CaseIterable {
  /// The address, the password or the recovery code is wrong. Which of them is not told.
  case invalidCredential = 17_004
  /// The app has not said how it is done: there is no `Accounts.Options.sendCode`.
  case operationNotAllowed = 17_006
  /// Another account has the address.
  case emailAlreadyInUse = 17_007
  /// The text is no address of e-mail.
  case invalidEmail = 17_008
  /// Too many tries failed; `AuthError.retryAfter` says when the next is allowed.
  case tooManyRequests = 17_010
  /// There is no such account any more.
  case userNotFound = 17_011
  /// The call needs a password that was given within the last minutes: `reauthenticate`.
  case requiresRecentLogin = 17_014
  /// The text is no token of a session.
  case invalidUserToken = 17_017
  /// The session is over: signed out, too old, or ended by a change of the password.
  case userTokenExpired = 17_021
  /// The password is too short, too long or too easily guessed; the message says which.
  case weakPassword = 17_026
  /// The code that was mailed is wrong, used or too old. Which of them is not told.
  case invalidActionCode = 17_030
  /// Nobody is signed in.
  case nullUser = 17_067
  /// The session's token could not be kept or read outside the database.
  case keychainError = 17_995
  /// The database failed; `AuthError.databaseError` says how.
  case internalError = 17_999
}

/// What calls about accounts throw.
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
  /// What was wrong and what helps, for a person.
  public var message: String
  /// After `.tooManyRequests`, how long until the next try is allowed.
  public var retryAfter: Duration?
  /// After `.internalError`, what the database threw.
  public var databaseError: DatabaseError?

  init(_ code: AuthErrorCode, _ message: String, retryAfter: Duration? = nil) {
    self.code = code
    self.message = message
    self.retryAfter = retryAfter
  }

  /// What a transaction or a call of the database threw, as an error of accounts.
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
    AuthError(.userTokenExpired, "the session is over; sign in again")
  }

  static var userNotFound: AuthError {
    AuthError(.userNotFound, "there is no such account any more")
  }

  static var emailAlreadyInUse: AuthError {
    AuthError(.emailAlreadyInUse, "another account has this address; sign in, or use another")
  }
}

/// Runs calls of the database, and has what they throw as an `AuthError`.
func authenticating<Result>(
  _ body: () async throws -> Result
) async throws(AuthError) -> Result {
  do {
    return try await body()
  } catch {
    throw AuthError(error)
  }
}
