// A user who is signed in on this device, and their changes to their account: Firebase's `User`.

internal import Ondol

/// The user who is signed in on this device.
///
/// A value with the state at the time you asked for it. Its calls work while its session is valid,
/// and throw `.userTokenExpired` afterwards.
public struct User: Sendable, Hashable, Identifiable, CustomStringConvertible, CustomReflectable {
  let auth: Auth
  let session: Session

  init(auth: Auth, session: Session) {
    self.auth = auth
    self.session = session
  }

  var token: String { session.token }

  /// The account.
  public var account: Account { session.account }
  /// The account's permanent identifier: 20 letters and digits, or one that an administrator chose.
  public var uid: String { account.uid }
  /// The address as it was typed; nil if the account has none.
  public var email: String? { account.email }
  /// Whether a mailed code has shown that the address is the person's.
  public var isEmailVerified: Bool { account.isEmailVerified }
  /// Whether only this session leads to the account. If so, link a password before the session
  /// ends.
  public var isAnonymous: Bool { account.isAnonymous }
  /// The person's name for others to see; nil if the account has none.
  public var displayName: String? { account.displayName }
  /// The URL of the person's picture; nil if the account has none.
  public var photoURL: String? { account.photoURL }
  /// The phone number in the form of E.164; nil if the account has none.
  public var phoneNumber: String? { account.phoneNumber }
  /// The uid.
  public var id: String { uid }

  /// The uid and the address, if there is one.
  public var description: String { "User(uid: \(uid), email: \(email ?? "none"))" }

  /// The account without the token: the output of `dump`.
  public var customMirror: Mirror { Mirror(self, children: ["account": account]) }

  /// Whether both are the same account in the same state.
  public static func == (left: User, right: User) -> Bool { left.account == right.account }

  /// Hashes the account.
  public func hash(into hasher: inout Hasher) { hasher.combine(account) }

  /// Gives the password again, which calls that change the account require after some minutes.
  ///
  /// - Parameter password: the password.
  /// - Throws: as `Accounts.reauthenticate(token:password:)`.
  /// - Complexity: one run of scrypt, and two commits.
  public func reauthenticate(password: String) async throws(AuthError) {
    try await auth.accounts.reauthenticate(token: token, password: password)
  }

  /// Reads the account's current state: its address may have been verified elsewhere.
  ///
  /// - Returns: the user, now the current one.
  /// - Throws: as `Accounts.session(forToken:)`.
  /// - Complexity: two gets.
  @discardableResult
  public func reload() async throws(AuthError) -> User {
    let session = try await auth.accounts.session(forToken: token)
    auth.renew(session.account)
    return User(auth: auth, session: session)
  }

  /// Sends a code to the address, for `Auth.applyActionCode(_:)`; see
  /// `Accounts.sendEmailVerification(token:)`.
  ///
  /// - Throws: `.operationNotAllowed`, `.tooManyRequests`, `.userTokenExpired`, `.internalError`.
  /// - Complexity: one commit, and the time of `sendCode`.
  public func sendEmailVerification() async throws(AuthError) {
    try await auth.accounts.sendEmailVerification(token: token)
  }

  /// Sends a code to another address. The account gets that address when `Auth.applyActionCode(_:)`
  /// accepts the code; see `Accounts.sendEmailVerification(token:beforeUpdatingEmailTo:)`.
  ///
  /// - Parameter email: the new address.
  /// - Throws: as `Accounts.sendEmailVerification(token:beforeUpdatingEmailTo:)`.
  /// - Complexity: one commit, and the time of `sendCode`.
  public func sendEmailVerification(
    beforeUpdatingEmailTo email: String
  ) async throws(AuthError) {
    try await auth.accounts.sendEmailVerification(token: token, beforeUpdatingEmailTo: email)
  }

  /// Adds an address and a password to an account without a password. The uid and all its data
  /// stay; see `Accounts.link(token:withEmail:password:)`.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  /// - Returns: the user with the address, now the current one.
  /// - Throws: as `Accounts.link(token:withEmail:password:)`.
  /// - Complexity: one run of scrypt, and one commit.
  @discardableResult
  public func link(withEmail email: String, password: String) async throws(AuthError) -> User {
    try auth.begin(
      try await auth.accounts.link(token: token, withEmail: email, password: password))
  }

  /// Links an identity at another service to the account; see `Accounts.link(token:with:)`.
  ///
  /// - Parameter identity: who the person is there.
  /// - Returns: the user with the identity, now the current one.
  /// - Throws: as `Accounts.link(token:with:)`.
  /// - Complexity: one commit.
  @discardableResult
  public func link(with identity: LinkedIdentity) async throws(AuthError) -> User {
    try auth.begin(try await auth.accounts.link(token: token, with: identity))
  }

  /// Removes the account's identity at a service.
  ///
  /// - Parameter provider: the service.
  /// - Returns: the user without the identity, now the current one.
  /// - Throws: as `Accounts.unlink(token:fromProvider:)`.
  /// - Complexity: one commit.
  @discardableResult
  public func unlink(fromProvider provider: String) async throws(AuthError) -> User {
    try auth.begin(try await auth.accounts.unlink(token: token, fromProvider: provider))
  }

  /// Changes the name and the picture; see `Accounts.updateProfile(token:displayName:photoURL:)`.
  ///
  /// - Parameters:
  ///   - displayName: the name.
  ///   - photoURL: where a picture is.
  /// - Returns: the user with the changes, now the current one.
  /// - Throws: as `Accounts.updateProfile(token:displayName:photoURL:)`.
  /// - Complexity: one commit.
  @discardableResult
  public func updateProfile(
    displayName: PropertyChange<String> = .keep, photoURL: PropertyChange<String> = .keep
  ) async throws(AuthError) -> User {
    try auth.begin(
      try await auth.accounts.updateProfile(
        token: token, displayName: displayName, photoURL: photoURL))
  }

  /// Changes the account's address. The new address is not verified.
  ///
  /// - Parameter email: the address.
  /// - Returns: the user with the new address, now the current one.
  /// - Throws: as `Accounts.updateEmail(token:to:)`.
  /// - Complexity: one commit.
  @discardableResult
  public func updateEmail(to email: String) async throws(AuthError) -> User {
    try auth.begin(try await auth.accounts.updateEmail(token: token, to: email))
  }

  /// Changes the account's password. The same commit ends all its sessions, on every device, and
  /// starts a new one on this device.
  ///
  /// - Parameter password: the new password.
  /// - Returns: the user with the new session, now the current one.
  /// - Throws: as `Accounts.updatePassword(token:to:)`; `.keychainError` when the new token cannot
  ///   be stored.
  /// - Complexity: one run of scrypt, and one commit.
  @discardableResult
  public func updatePassword(to password: String) async throws(AuthError) -> User {
    try await auth.exchange(session) { () async throws(AuthError) in
      try await auth.accounts.updatePassword(token: token, to: password)
    }
  }

  /// Creates codes, each of which can replace a forgotten password; see
  /// `Accounts.generateRecoveryCodes(token:count:)`.
  ///
  /// - Parameter count: the number of codes, 1 to 32.
  /// - Returns: the codes, which cannot be shown again.
  /// - Throws: `.requiresRecentLogin`, `.userTokenExpired`, `.internalError`.
  /// - Complexity: one commit.
  public func generateRecoveryCodes(count: Int = 8) async throws(AuthError) -> [String] {
    try await auth.accounts.generateRecoveryCodes(token: token, count: count)
  }

  /// Deletes the account with its profile and its private data, and signs out; see
  /// `Accounts.delete(token:)`.
  ///
  /// - Throws: `.requiresRecentLogin`, `.userTokenExpired`, `.keychainError`, `.internalError`.
  /// - Complexity: O(deleted documents).
  public func delete() async throws(AuthError) {
    try await auth.accounts.delete(token: token)
    if let failure = auth.end(token) { throw failure }
  }

  /// The data that only this person sees.
  public var privateDatabase: UserDatabase {
    auth.accounts.privateDatabase(for: session)
  }

  /// The data that all users see and its creator changes.
  public var publicDatabase: UserDatabase {
    auth.accounts.publicDatabase(for: session)
  }
}
