// One person on one device: Firebase's `Auth`. It keeps a session's token outside the database,
// knows who is signed in without asking, and follows the session's document, so that a session that
// ends elsewhere ends here.

internal import Foundation
public import Ondol
internal import OndolEngine

/// Who is signed in on this device.
///
/// ```swift
/// let auth = try await Auth.open(in: database)
/// try await auth.createUser(withEmail: "minji@example.com", password: password)
/// auth.currentUser?.email
/// for await user in auth.authStateChanges { show(user) }
/// ```
///
/// The names are Firebase Auth's. What is different: there is a value that the app opens and keeps,
/// and no `Auth.auth()`; calls return the `User` itself; mail goes out by the app's own
/// `Accounts.Options.sendCode`, and there are recovery codes where there is none. After a restart
/// the one who was signed in is signed in again.
public final class Auth: Sendable {
  private struct State {
    /// Sessions here and in listeners' buffers, and not users, who would keep the `Auth`.
    var session: Session?
    var watching: Task<Void, Never>?
    var listeners: [Int: AsyncStream<Session?>.Continuation] = [:]
    var nextListener = 0

    mutating func tell(_ session: Session?) {
      self.session = session
      for listener in listeners.values { listener.yield(session) }
    }
  }

  /// The accounts it signs in to.
  public let accounts: Accounts
  private let tokens: any TokenStore
  private let state = Guarded(State())

  /// Opens the accounts in a database, and signs in whoever was signed in before.
  ///
  /// - Parameters:
  ///   - database: open for writing.
  ///   - options: how accounts are kept.
  ///   - tokens: where the session's token is kept. When nil, in a file beside the database's
  ///     directory, its name followed by `.session`, that the owner alone can read; in memory
  ///     for a database in memory. On Apple's systems put it into the keychain.
  /// - Throws: `.keychainError` when the token cannot be read, `.internalError`.
  /// - Complexity: as `Accounts.open(in:options:)`.
  public static func open(
    in database: Database, options: Accounts.Options = .init(), tokens: (any TokenStore)? = nil
  ) async throws(AuthError) -> Auth {
    let accounts = try await Accounts.open(in: database, options: options)
    return try await open(accounts, tokens: tokens)
  }

  /// Signs in to accounts that are open.
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

  /// Who is signed in; nil when nobody is. The last that was known: a session that ended elsewhere
  /// is noticed a moment later.
  public var currentUser: User? {
    state.withLock { $0.session }.map { User(auth: self, session: $0) }
  }

  /// Who is signed in, and whoever is after that: the first element is there at once, nil where
  /// nobody is. One more comes with each sign-in and sign-out, with a change of the address or of
  /// whether it is verified, and when the session ends elsewhere. Who is slow sees the newest only.
  /// Ends with its task, or when nobody has the `Auth` any more.
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

  /// Makes an account and signs in to it.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  /// - Returns: who is signed in now.
  /// - Throws: as `Accounts.createUser(withEmail:password:)`; `.keychainError` when the token
  ///   cannot be kept: then the account is there, and nobody is signed in.
  /// - Complexity: one run of scrypt, and one commit.
  @discardableResult
  public func createUser(
    withEmail email: String, password: String
  ) async throws(AuthError) -> User {
    try begin(try await accounts.createUser(withEmail: email, password: password))
  }

  /// Makes an account with a profile, and a picture if there is one, in one commit, and signs in to
  /// it. See `Accounts.createUser(withEmail:password:profile:picture:)`.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  ///   - profile: what is said of the person.
  ///   - picture: the bytes of a picture.
  /// - Returns: who is signed in now.
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

  /// Makes an account without anything and signs in to it; see
  /// `Accounts.signInAnonymously(origin:)`. Where somebody is signed in anonymously, they stay the
  /// same one, as with Firebase.
  ///
  /// - Returns: who is signed in now.
  /// - Throws: `.keychainError` when the token cannot be kept, `.internalError`.
  /// - Complexity: one commit; two gets where somebody is there.
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

  /// Signs in, in the place of whoever was signed in.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  /// - Returns: who is signed in now.
  /// - Throws: as `Accounts.signIn(withEmail:password:origin:)`; `.keychainError` when the token
  ///   cannot be kept.
  /// - Complexity: one run of scrypt, two where parameters were raised, and two commits.
  @discardableResult
  public func signIn(
    withEmail email: String, password: String
  ) async throws(AuthError) -> User {
    try begin(try await accounts.signIn(withEmail: email, password: password))
  }

  /// Gives an account another password by one of its recovery codes, and signs in to it.
  ///
  /// - Parameters:
  ///   - email: the account's address.
  ///   - recoveryCode: one of the codes.
  ///   - newPassword: the new password.
  /// - Returns: who is signed in now.
  /// - Throws: as `Accounts.resetPassword(withEmail:recoveryCode:newPassword:origin:)`;
  ///   `.keychainError` when the token cannot be kept.
  /// - Complexity: one run of scrypt, and two commits.
  @discardableResult
  public func resetPassword(
    withEmail email: String, recoveryCode: String, newPassword: String
  ) async throws(AuthError) -> User {
    try begin(
      try await accounts.resetPassword(
        withEmail: email, recoveryCode: recoveryCode, newPassword: newPassword))
  }

  /// Sends a code for another password; see `Accounts.sendPasswordReset(withEmail:origin:)`.
  ///
  /// - Parameter email: the address; nobody need have an account by it.
  /// - Throws: `.operationNotAllowed`, `.invalidEmail`, `.tooManyRequests`, `.internalError`.
  /// - Complexity: one commit.
  public func sendPasswordReset(withEmail email: String) async throws(AuthError) {
    try await accounts.sendPasswordReset(withEmail: email)
  }

  /// Gives an account another password by a code that was mailed, and signs in to it.
  ///
  /// - Parameters:
  ///   - code: the code.
  ///   - newPassword: the new password.
  /// - Returns: who is signed in now.
  /// - Throws: as `Accounts.confirmPasswordReset(withCode:newPassword:origin:)`; `.keychainError`
  ///   when the token cannot be kept.
  /// - Complexity: one run of scrypt, and two commits.
  @discardableResult
  public func confirmPasswordReset(
    withCode code: String, newPassword: String
  ) async throws(AuthError) -> User {
    try begin(try await accounts.confirmPasswordReset(withCode: code, newPassword: newPassword))
  }

  /// Sends a code to an address, which `signIn(withEmail:code:)` takes; see
  /// `Accounts.sendSignInCode(toEmail:origin:)`.
  ///
  /// - Parameter email: the address; nobody need have an account by it.
  /// - Throws: `.operationNotAllowed`, `.invalidEmail`, `.tooManyRequests`, `.internalError`.
  /// - Complexity: one commit, and what sending takes.
  public func sendSignInCode(toEmail email: String) async throws(AuthError) {
    try await accounts.sendSignInCode(toEmail: email)
  }

  /// Signs in with a code that went to an address, and makes the account where there is none.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - code: the code.
  /// - Returns: who is signed in now.
  /// - Throws: as `Accounts.signIn(withEmail:code:origin:)`; `.keychainError` when the token cannot
  ///   be kept.
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
  /// - Returns: who is signed in now.
  /// - Throws: as `Accounts.signIn(with:isEmailVerified:)`; `.keychainError` when the token cannot
  ///   be kept.
  /// - Complexity: one commit.
  @discardableResult
  public func signIn(
    with identity: LinkedIdentity, isEmailVerified: Bool = false
  ) async throws(AuthError) -> User {
    try begin(try await accounts.signIn(with: identity, isEmailVerified: isEmailVerified))
  }

  /// What a code is for; see `Accounts.checkActionCode(_:origin:)`.
  ///
  /// - Parameter code: the code.
  /// - Throws: as `Accounts.checkActionCode(_:origin:)`.
  /// - Complexity: two commits.
  public func checkActionCode(_ code: String) async throws(AuthError) -> ActionCodeInfo {
    try await accounts.checkActionCode(code)
  }

  /// Notes that an address is its owner's, who need not be signed in here.
  ///
  /// - Parameter code: one that `User.sendEmailVerification()` or
  ///   `User.sendEmailVerification(beforeUpdatingEmailTo:)` sent.
  /// - Throws: as `Accounts.applyActionCode(_:origin:)`.
  /// - Complexity: two commits.
  public func applyActionCode(_ code: String) async throws(AuthError) {
    renew(try await accounts.applyActionCode(code))
  }

  /// Signs out: the session is over, and its token forgotten. Does nothing when nobody is signed
  /// in.
  ///
  /// - Throws: `.keychainError` when the token cannot be forgotten, `.internalError`. Nobody is
  ///   signed in here in any case.
  /// - Complexity: one commit.
  public func signOut() async throws(AuthError) {
    guard let token = state.withLock({ $0.session?.token }) else { return }
    let failure = end(token)
    // In the database, too, whatever becomes of the token here.
    try await accounts.signOut(token: token)
    if let failure { throw failure }
  }

  // MARK: - Steps

  /// Somebody is signed in.
  @discardableResult
  func begin(_ session: Session, isKept: Bool = false) throws(AuthError) -> User {
    let watching = try watch(session)
    // Under the lock, so that of two who sign in the same one is kept and shown.
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

  /// Shows an account as it is now, where its owner is signed in.
  func renew(_ account: Account) {
    state.withLock { state in
      guard let session = state.session, session.account.uid == account.uid,
        session.account != account
      else { return }
      state.tell(Session(session, account))
    }
  }

  /// Has the session exchanged for another: that it ends on the way is no sign-out.
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
      // Where the database is closed or fails, who is signed in stays what was known last; every
      // call that matters asks again.
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

  /// The session is over, and its token forgotten, if it is the one that is known. Gives back why
  /// the token could not be forgotten.
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

/// Who is signed in, as it changes; see `Auth.authStateChanges`.
public struct AuthStateChanges: AsyncSequence, Sendable {
  /// Nil where nobody is signed in.
  public typealias Element = User?
  /// Nothing is thrown.
  public typealias Failure = Never

  /// Who a session is; nil when nobody has the `Auth` any more.
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

    /// Who is signed in next; nil at the end.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async -> User?? {
      guard let session = await base.next(isolation: actor) else { return nil }
      return .some(session.flatMap(user))
    }
  }
}
