// Somebody who is signed in on this device, and what they do to their account: Firebase's `User`.

internal import Ondol

/// Who is signed in on this device.
///
/// A value: who it was when it was asked for. Its calls work for as long as its session does, and
/// throw `.userTokenExpired` after that.
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
  /// What the account is called for good: 20 letters and digits, or what an administrator chose.
  public var uid: String { account.uid }
  /// The address, as it was typed; nil where the account has none.
  public var email: String? { account.email }
  /// Whether somebody has shown, by a code that went there, that the address is theirs.
  public var isEmailVerified: Bool { account.isEmailVerified }
  /// Whether nothing but this session leads to the account: link a password before it ends.
  public var isAnonymous: Bool { account.isAnonymous }
  /// The person's name, as others see it; nil where the account has none.
  public var displayName: String? { account.displayName }
  /// Where a picture of the person is; nil where the account has none.
  public var photoURL: String? { account.photoURL }
  /// The phone number in the form of E.164; nil where the account has none.
  public var phoneNumber: String? { account.phoneNumber }
  /// The uid.
  public var id: String { uid }

  /// The uid and the address, if there is one.
  public var description: String { "User(uid: \(uid), email: \(email ?? "none"))" }

  /// The account, and nothing of the token: what `dump` shows.
  public var customMirror: Mirror { Mirror(self, children: ["account": account]) }

  /// Whether both are the same account in the same state.
  public static func == (left: User, right: User) -> Bool { left.account == right.account }

  /// Hashes the account.
  public func hash(into hasher: inout Hasher) { hasher.combine(account) }

  /// Gives the password again, which calls that change the account want after some minutes.
  ///
  /// - Parameter password: the password.
  /// - Throws: as `Accounts.reauthenticate(token:password:)`.
  /// - Complexity: one run of scrypt, and two commits.
  public func reauthenticate(password: String) async throws(AuthError) {
    try await auth.accounts.reauthenticate(token: token, password: password)
  }

  /// Asks for the account as it is now: its address may have been verified elsewhere.
  ///
  /// - Returns: the user, who is the current one now.
  /// - Throws: as `Accounts.session(forToken:)`.
  /// - Complexity: two gets.
  @discardableResult
  public func reload() async throws(AuthError) -> User {
    let session = try await auth.accounts.session(forToken: token)
    auth.renew(session.account)
    return User(auth: auth, session: session)
  }

  /// Sends a code to the address, which `Auth.applyActionCode(_:)` takes; see
  /// `Accounts.sendEmailVerification(token:)`.
  ///
  /// - Throws: `.operationNotAllowed`, `.tooManyRequests`, `.userTokenExpired`, `.internalError`.
  /// - Complexity: one commit, and what sending takes.
  public func sendEmailVerification() async throws(AuthError) {
    try await auth.accounts.sendEmailVerification(token: token)
  }

  /// Sends a code to another address, which the account gets when `Auth.applyActionCode(_:)` takes
  /// the code; see `Accounts.sendEmailVerification(token:beforeUpdatingEmailTo:)`.
  ///
  /// - Parameter email: the new address.
  /// - Throws: as `Accounts.sendEmailVerification(token:beforeUpdatingEmailTo:)`.
  /// - Complexity: one commit, and what sending takes.
  public func sendEmailVerification(
    beforeUpdatingEmailTo email: String
  ) async throws(AuthError) {
    try await auth.accounts.sendEmailVerification(token: token, beforeUpdatingEmailTo: email)
  }

  /// Gives an account without a password an address and a password, and keeps the uid with all that
  /// it has; see `Accounts.link(token:withEmail:password:)`.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  /// - Returns: the user with the address, who is the current one now.
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
  /// - Returns: the user with the identity, who is the current one now.
  /// - Throws: as `Accounts.link(token:with:)`.
  /// - Complexity: one commit.
  @discardableResult
  public func link(with identity: LinkedIdentity) async throws(AuthError) -> User {
    try auth.begin(try await auth.accounts.link(token: token, with: identity))
  }

  /// Takes the identity at a service away from the account.
  ///
  /// - Parameter provider: the service.
  /// - Returns: the user without the identity, who is the current one now.
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
  /// - Returns: the user with them, who is the current one now.
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

  /// Gives the account another address, which is not verified.
  ///
  /// - Parameter email: the address.
  /// - Returns: the user with the new address, who is the current one now.
  /// - Throws: as `Accounts.updateEmail(token:to:)`.
  /// - Complexity: one commit.
  @discardableResult
  public func updateEmail(to email: String) async throws(AuthError) -> User {
    try auth.begin(try await auth.accounts.updateEmail(token: token, to: email))
  }

  /// Gives the account another password. All its sessions end, everywhere; this device gets a new
  /// one in the same commit.
  ///
  /// - Parameter password: the new password.
  /// - Returns: the user with the new session, who is the current one now.
  /// - Throws: as `Accounts.updatePassword(token:to:)`; `.keychainError` when the new token cannot
  ///   be kept.
  /// - Complexity: one run of scrypt, and one commit.
  @discardableResult
  public func updatePassword(to password: String) async throws(AuthError) -> User {
    try await auth.exchange(session) { () async throws(AuthError) in
      try await auth.accounts.updatePassword(token: token, to: password)
    }
  }

  /// Makes codes, one of which replaces a forgotten password; see
  /// `Accounts.generateRecoveryCodes(token:count:)`.
  ///
  /// - Parameter count: how many, 1 to 32.
  /// - Returns: the codes, which are not shown again.
  /// - Throws: `.requiresRecentLogin`, `.userTokenExpired`, `.internalError`.
  /// - Complexity: one commit.
  public func generateRecoveryCodes(count: Int = 8) async throws(AuthError) -> [String] {
    try await auth.accounts.generateRecoveryCodes(token: token, count: count)
  }

  /// Deletes the account with its profile and its private data, and signs out; see
  /// `Accounts.delete(token:)`.
  ///
  /// - Throws: `.requiresRecentLogin`, `.userTokenExpired`, `.keychainError`, `.internalError`.
  /// - Complexity: O(documents that go).
  public func delete() async throws(AuthError) {
    try await auth.accounts.delete(token: token)
    if let failure = auth.end(token) { throw failure }
  }

  /// What this person alone sees.
  public var privateDatabase: UserDatabase {
    auth.accounts.privateDatabase(for: session)
  }

  /// What all see, and who made it may change.
  public var publicDatabase: UserDatabase {
    auth.accounts.publicDatabase(for: session)
  }
}
