// One person on one device: Firebase's `Auth`. It keeps a session's token outside the database and
// knows the signed-in user without a query. It follows the session's document, so a session that
// ends elsewhere also ends here.

internal import Foundation
public import Ondol
internal import OndolEngine

/// The user who is signed in on this device.
///
/// ```swift
/// let auth = try await Auth.open(in: database)
/// try await auth.createUser(withEmail: "minji@example.com", password: password)
/// auth.currentUser?.email
/// for await user in auth.authStateChanges { show(user) }
/// ```
///
/// The names are Firebase Auth's, with these differences. The app opens and keeps a value, and
/// there is no `Auth.auth()`. Calls return the `User` itself. Mail goes out by the app's own
/// `Accounts.Options.sendCode`, and recovery codes serve an app that sends none. After a restart
/// the same user is signed in again.
public final class Auth: Sendable {
  private struct State {
    /// Holds sessions here and in listeners' buffers, not users, because a user retains the `Auth`.
    var session: Session?
    var watching: Task<Void, Never>?
    var listeners: [Int: AsyncStream<Session?>.Continuation] = [:]
    var nextListener = 0

    mutating func tell(_ session: Session?) {
      self.session = session
      for listener in listeners.values { listener.yield(session) }
    }
  }

  /// The accounts that it signs in to.
  public let accounts: Accounts
  private let tokens: any TokenStore
  private let state = Guarded(State())

  /// Opens the accounts in a database, and signs in the user who was signed in before.
  ///
  /// - Parameters:
  ///   - database: open for writing.
  ///   - options: the options of the accounts.
  ///   - tokens: the store of the session's token. When nil, a file beside the database's
  ///     directory, with that name followed by `.session`, which only the owner can read. For a
  ///     database in memory, the token stays in memory. On Apple's systems use the keychain.
  /// - Throws: `.keychainError` when the token cannot be read, `.internalError`.
  /// - Complexity: as `Accounts.open(in:options:)`.
  public static func open(
    in database: Database, options: Accounts.Options = .init(), tokens: (any TokenStore)? = nil
  ) async throws(AuthError) -> Auth {
    let accounts = try await Accounts.open(in: database, options: options)
    return try await open(accounts, tokens: tokens)
  }

  /// Signs in to accounts that are already open.
  ///
  /// - Parameters:
  ///   - accounts: the accounts.
  ///   - tokens: as in `open(in:options:tokens:)`.
  /// - Throws: `.keychainError` when the token cannot be read, `.internalError`.
  /// - Complexity: two gets.
  public static func open(
    _ accounts: Accounts, tokens: (any TokenStore)? = nil
  ) async throws(AuthError) -> Auth {
    let files = accounts.database.directory.map { FileTokenStore(path: "\($0).session") }
    let auth = Auth(accounts, tokens ?? files ?? MemoryTokenStore())
    try await auth.resume()
    return auth
  }

  private init(_ accounts: Accounts, _ tokens: any TokenStore) {
    self.accounts = accounts
    self.tokens = tokens
  }

  deinit {
    state.withLock { state in
      state.watching?.cancel()
      for listener in state.listeners.values { listener.finish() }
    }
  }

  private func resume() async throws(AuthError) {
    let token: String?
    do { token = try tokens.load() } catch { throw Self.keychainError("read") }
    guard let token else { return }
    do {
      try begin(try await accounts.session(forToken: token), isKept: true)
    } catch {
      guard error.isOfEndedSession || error.code == .invalidUserToken else { throw error }
      try keep(nil)
    }
  }

  // MARK: - Who is signed in

  /// The signed-in user; nil if there is none. This is the last known state: `Auth` notices a
  /// moment later when a session ends elsewhere.
  public var currentUser: User? {
    state.withLock { $0.session }.map { User(auth: self, session: $0) }
  }

  /// The signed-in user, and each later one. The first element arrives at once, and is nil if no
  /// user is signed in. Another follows each sign-in and sign-out, each change of the address or of
  /// its verification, and a session that ends elsewhere. A slow listener sees only the newest. The
  /// sequence ends with its task, or when the app releases the `Auth`.
  public var authStateChanges: AuthStateChanges {
    AuthStateChanges(
      user: { [weak self] session in self.map { User(auth: $0, session: session) } },
      listen: { [weak self] in
        self?.listen() ?? AsyncStream { $0.finish() }
      })
  }

  private func listen() -> AsyncStream<Session?> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Session?.self, bufferingPolicy: .bufferingNewest(1))
    let number = state.withLock { state in
      state.nextListener += 1
      state.listeners[state.nextListener] = continuation
      continuation.yield(state.session)
      return state.nextListener
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { $0.listeners[number] = nil }
    }
    return stream
  }

  // MARK: - Signing up, in and out

  /// Creates an account and signs in to it.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  /// - Returns: the signed-in user.
  /// - Throws: as `Accounts.createUser(withEmail:password:)`; `.keychainError` when the token
  ///   cannot be stored. The account exists then, and no user is signed in.
  /// - Complexity: one run of scrypt, and one commit.
  @discardableResult
  public func createUser(
    withEmail email: String, password: String
  ) async throws(AuthError) -> User {
    try begin(try await accounts.createUser(withEmail: email, password: password))
  }

  /// Creates an account with a profile, and a picture if there is one, in one commit, and signs in
  /// to it. See `Accounts.createUser(withEmail:password:profile:picture:)`.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  ///   - profile: the person's profile.
  ///   - picture: the bytes of a picture.
  /// - Returns: the signed-in user.
  /// - Throws: as `createUser(withEmail:password:)`.
  /// - Complexity: one run of scrypt, and one commit, in O(bytes of the picture).
  @discardableResult
  public func createUser<Profile: Encodable>(
    withEmail email: String, password: String, profile: Profile,
    picture: (some Collection<UInt8> & Sendable)? = [UInt8]?.none
  ) async throws(AuthError) -> User {
    try begin(
      try await accounts.createUser(
        withEmail: email, password: password, profile: profile, picture: picture))
  }

  /// Creates an account without an address or a password and signs in to it; see
  /// `Accounts.signInAnonymously(origin:)`. A user who is already signed in anonymously stays the
  /// same, as with Firebase.
  ///
  /// - Returns: the signed-in user.
  /// - Throws: `.keychainError` when the token cannot be stored, `.internalError`.
  /// - Complexity: one commit; two gets if a user is already signed in.
  @discardableResult
  public func signInAnonymously() async throws(AuthError) -> User {
    if let user = currentUser, user.isAnonymous {
      do throws(AuthError) {
        return try await user.reload()
      } catch {
        guard error.isOfEndedSession else { throw error }
      }
    }
    return try begin(try await accounts.signInAnonymously())
  }

  /// Signs in. The new user replaces the one who was signed in.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  /// - Returns: the signed-in user.
  /// - Throws: as `Accounts.signIn(withEmail:password:origin:)`; `.keychainError` when the token
  ///   cannot be stored.
  /// - Complexity: one run of scrypt, two after the parameters were raised, and two commits.
  @discardableResult
  public func signIn(
    withEmail email: String, password: String
  ) async throws(AuthError) -> User {
    try begin(try await accounts.signIn(withEmail: email, password: password))
  }

  /// Resets an account's password with one of its recovery codes, and signs in to it.
  ///
  /// - Parameters:
  ///   - email: the account's address.
  ///   - recoveryCode: one of the codes.
  ///   - newPassword: the new password.
  /// - Returns: the signed-in user.
  /// - Throws: as `Accounts.resetPassword(withEmail:recoveryCode:newPassword:origin:)`;
  ///   `.keychainError` when the token cannot be stored.
  /// - Complexity: one run of scrypt, and two commits.
  @discardableResult
  public func resetPassword(
    withEmail email: String, recoveryCode: String, newPassword: String
  ) async throws(AuthError) -> User {
    try begin(
      try await accounts.resetPassword(
        withEmail: email, recoveryCode: recoveryCode, newPassword: newPassword))
  }

  /// Sends a code that resets a password; see `Accounts.sendPasswordReset(withEmail:origin:)`.
  ///
  /// - Parameter email: the address. It need not belong to an account.
  /// - Throws: `.operationNotAllowed`, `.invalidEmail`, `.tooManyRequests`, `.internalError`.
  /// - Complexity: one commit.
  public func sendPasswordReset(withEmail email: String) async throws(AuthError) {
    try await accounts.sendPasswordReset(withEmail: email)
  }

  /// Resets an account's password with a mailed code, and signs in to the account.
  ///
  /// - Parameters:
  ///   - code: the code.
  ///   - newPassword: the new password.
  /// - Returns: the signed-in user.
  /// - Throws: as `Accounts.confirmPasswordReset(withCode:newPassword:origin:)`; `.keychainError`
  ///   when the token cannot be stored.
  /// - Complexity: one run of scrypt, and two commits.
  @discardableResult
  public func confirmPasswordReset(
    withCode code: String, newPassword: String
  ) async throws(AuthError) -> User {
    try begin(try await accounts.confirmPasswordReset(withCode: code, newPassword: newPassword))
  }

  /// Sends a code to an address, for `signIn(withEmail:code:)`; see
  /// `Accounts.sendSignInCode(toEmail:origin:)`.
  ///
  /// - Parameter email: the address. It need not belong to an account.
  /// - Throws: `.operationNotAllowed`, `.invalidEmail`, `.tooManyRequests`, `.internalError`.
  /// - Complexity: one commit, and the time of `sendCode`.
  public func sendSignInCode(toEmail email: String) async throws(AuthError) {
    try await accounts.sendSignInCode(toEmail: email)
  }

  /// Signs in with a code that went to an address, and creates the account if there is none.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - code: the code.
  /// - Returns: the signed-in user.
  /// - Throws: as `Accounts.signIn(withEmail:code:origin:)`; `.keychainError` when the token cannot
  ///   be stored.
  /// - Complexity: two commits.
  @discardableResult
  public func signIn(withEmail email: String, code: String) async throws(AuthError) -> User {
    try begin(try await accounts.signIn(withEmail: email, code: code))
  }

  /// Signs in a person whom the app has recognised by another service; see
  /// `Accounts.signIn(with:isEmailVerified:)`.
  ///
  /// - Parameters:
  ///   - identity: who the person is there.
  ///   - isEmailVerified: whether the service says that the identity's address is the person's.
  /// - Returns: the signed-in user.
  /// - Throws: as `Accounts.signIn(with:isEmailVerified:)`; `.keychainError` when the token cannot
  ///   be stored.
  /// - Complexity: one commit.
  @discardableResult
  public func signIn(
    with identity: LinkedIdentity, isEmailVerified: Bool = false
  ) async throws(AuthError) -> User {
    try begin(try await accounts.signIn(with: identity, isEmailVerified: isEmailVerified))
  }

  /// Reports what a code is for; see `Accounts.checkActionCode(_:origin:)`.
  ///
  /// - Parameter code: the code.
  /// - Throws: as `Accounts.checkActionCode(_:origin:)`.
  /// - Complexity: two commits.
  public func checkActionCode(_ code: String) async throws(AuthError) -> ActionCodeInfo {
    try await accounts.checkActionCode(code)
  }

  /// Verifies an address with a code. Its owner need not be signed in here.
  ///
  /// - Parameter code: one that `User.sendEmailVerification()` or
  ///   `User.sendEmailVerification(beforeUpdatingEmailTo:)` sent.
  /// - Throws: as `Accounts.applyActionCode(_:origin:)`.
  /// - Complexity: two commits.
  public func applyActionCode(_ code: String) async throws(AuthError) {
    renew(try await accounts.applyActionCode(code))
  }

  /// Signs out: ends the session and deletes its token. Without effect when no user is signed in.
  ///
  /// - Throws: `.keychainError` when the token cannot be deleted, `.internalError`. In any case, no
  ///   user is signed in here afterwards.
  /// - Complexity: one commit.
  public func signOut() async throws(AuthError) {
    guard let token = state.withLock({ $0.session?.token }) else { return }
    let failure = end(token)
    // Also ends the session in the database, whatever happens to the token here.
    try await accounts.signOut(token: token)
    if let failure { throw failure }
  }

  // MARK: - Steps

  /// Makes a user the signed-in one.
  @discardableResult
  func begin(_ session: Session, isKept: Bool = false) throws(AuthError) -> User {
    let watching = try watch(session)
    // Holds the lock, so that of two concurrent sign-ins the same one is stored and shown.
    let (earlier, failure) = state.withLock { state -> (Task<Void, Never>?, AuthError?) in
      do throws(AuthError) {
        if !isKept { try keep(session.token) }
      } catch {
        return (watching, error)
      }
      defer { state.watching = watching }
      state.tell(session)
      return (state.watching, nil)
    }
    earlier?.cancel()
    if let failure { throw failure }
    return User(auth: self, session: session)
  }

  /// Publishes an account's current state while its owner is signed in.
  func renew(_ account: Account) {
    state.withLock { state in
      guard let session = state.session, session.account.uid == account.uid,
        session.account != account
      else { return }
      state.tell(Session(session, account))
    }
  }

  /// Exchanges the session for another. The end of the old one is no sign-out.
  func exchange(
    _ session: Session, _ body: () async throws(AuthError) -> Session
  ) async throws(AuthError) -> User {
    state.withLock { $0.session?.token == session.token ? $0.watching.take() : nil }?.cancel()
    do throws(AuthError) {
      return try begin(try await body())
    } catch {
      let watching = try watch(session)
      let unneeded = state.withLock { state -> Task<Void, Never>? in
        guard state.session?.token == session.token, state.watching == nil else { return watching }
        state.watching = watching
        return nil
      }
      unneeded?.cancel()
      throw error
    }
  }

  /// Waits for the end of a session.
  private func watch(_ session: Session) throws(AuthError) -> Task<Void, Never> {
    let document = accounts.places.sessions.document(try SessionToken(session.token).digest)
    return Task { [weak self] in
      // If the database is closed or fails, the last known user stays signed in. Every call that
      // matters checks again.
      do {
        for try await snapshot in document.snapshots where Self.isOver(snapshot) {
          if !Task.isCancelled { _ = self?.end(session.token) }
          return
        }
      } catch {}
    }
  }

  /// Whether a session has ended, or its account was disabled.
  private static func isOver(_ session: DocumentSnapshot) -> Bool {
    !session.exists || session[FieldPath(SessionRecord.isSuspended)] as Bool? == true
  }

  /// Signs out and deletes the token, if the session is the current one. Returns the error when the
  /// token could not be deleted.
  func end(_ token: String) -> AuthError? {
    let (watching, failure) = state.withLock { state -> (Task<Void, Never>?, AuthError?) in
      guard state.session?.token == token else { return (nil, nil) }
      state.tell(nil)
      do throws(AuthError) {
        try keep(nil)
        return (state.watching.take(), nil)
      } catch {
        return (state.watching.take(), error)
      }
    }
    watching?.cancel()
    return failure
  }

  private func keep(_ token: String?) throws(AuthError) {
    do { try tokens.save(token) } catch { throw Self.keychainError("kept") }
  }

  private static func keychainError(_ done: String) -> AuthError {
    AuthError(.keychainError, "the session's token could not be \(done)")
  }
}

/// The signed-in user as it changes; see `Auth.authStateChanges`.
public struct AuthStateChanges: AsyncSequence, Sendable {
  /// The user; nil if none is signed in.
  public typealias Element = User?
  /// The sequence throws nothing.
  public typealias Failure = Never

  /// Makes the user of a session; nil after the `Auth` is released.
  private let user: @Sendable (Session) -> User?
  private let listen: @Sendable () -> AsyncStream<Session?>

  init(
    user: @escaping @Sendable (Session) -> User?,
    listen: @escaping @Sendable () -> AsyncStream<Session?>
  ) {
    self.user = user
    self.listen = listen
  }

  /// Listens, from now on.
  public func makeAsyncIterator() -> Iterator {
    Iterator(user: user, base: listen().makeAsyncIterator())
  }

  /// One listener.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let user: @Sendable (Session) -> User?
    fileprivate var base: AsyncStream<Session?>.Iterator

    /// The next signed-in user; nil at the end.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async -> User?? {
      guard let session = await base.next(isolation: actor) else { return nil }
      return .some(session.flatMap(user))
    }
  }
}
