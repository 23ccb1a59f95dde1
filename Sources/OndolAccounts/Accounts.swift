// The accounts of a database: start reading here. A call checks its arguments, hashes the password
// outside any transaction, and then does all its work in one transaction. So an account, its
// profile, its picture and its first session appear in one commit, or not at all.

internal import Crypto
internal import Foundation
public import Ondol
internal import OndolEngine

/// The accounts of an app's users, in the app's own database.
///
/// Use it in a service, which has many signed-in users and gets a token with each request. An app
/// on a device with one user uses `Auth`, which also keeps the token.
///
/// ```swift
/// let accounts = try await Accounts.open(in: database)
/// let session = try await accounts.createUser(withEmail: "minji@example.com", password: password)
/// // … the token goes to the browser and comes back with the next request:
/// let known = try await accounts.session(forToken: session.token)
/// try await known.account.uid
/// ```
///
/// The database stores passwords as scrypt's keys, and tokens and codes as digests. A sign-in with
/// an unknown address costs as much as one with a known address, so it does not reveal who has an
/// account. (Signing up does, as with Firebase: it reports that an address is taken.)
public final class Accounts: Sendable {
  /// The options of accounts.
  public struct Options: Sendable {
    /// The cost of a guess at a password. After you raise it, each account follows at its next
    /// sign-in.
    public var hashing = PasswordHashing.standard
    /// The smallest number of characters in a password.
    public var minimumPasswordLength = 8
    /// Whether the library refuses the passwords that attackers try first: the few that it knows,
    /// simple rows of keys, and the account's own address. False leaves Firebase's rule, which
    /// checks only the length.
    public var refusesSimplePasswords = true
    /// More passwords that the library refuses.
    public var commonPasswords: CommonPasswords?
    /// Whether the app accepts a password that passes all other rules; nil, the default, accepts
    /// it. If it returns false, the call throws `.weakPassword`.
    public var passwordPolicy: PasswordPolicy?
    /// The number of failed tries for one address within `triesWindow`, from any origin: 1 to
    /// 10,000.
    public var maximumTries = 10
    /// The same limit for all addresses together from one `origin`. Successful tries do not count.
    public var maximumTriesOfOrigin = 100
    /// The number of guests from one `origin` within `triesWindow`; see
    /// `Accounts.signInAnonymously(origin:)`.
    public var maximumGuestsOfOrigin = 100
    /// The time after which a failed try no longer counts, at most a year.
    public var triesWindow = Duration.seconds(15 * 60)
    /// The lifetime of a session; nil, the default, for no limit, as with Firebase.
    public var sessionLifetime: Duration?
    /// The time after giving the password during which the owner may change the account.
    public var recentSignIn = Duration.seconds(5 * 60)
    /// The number of threads that hash passwords. A run uses a core and, with `.standard`, 32 MiB.
    public var hashingThreads = 2
    /// The collection of profiles that are given at sign-up.
    public var profileCollection = "users"

    /// Sends a code to an address by mail. With nil, the default, the app sends none: it verifies
    /// no address and resets no password by mail.
    ///
    /// ```swift
    /// options.sendCode = { operation, address, code in
    ///   try await mailer.send(to: address, text: "Your code: \(code)")
    /// }
    /// ```
    ///
    /// Put the code into a link so that people need not type it. Its errors for `.passwordReset`
    /// reach no caller, because they would reveal who has an account: log them there.
    ///
    /// It runs with the task-local values of the call that asked for the code. A server can use one
    /// to pass a request's language or the link's address.
    public var sendCode: CodeSender?
    /// The lifetime of a sent code.
    public var codeLifetime = Duration.seconds(60 * 60)
    /// The number of codes to one address for one purpose within `triesWindow`.
    public var maximumCodes = 5

    /// Sends a code to an address.
    public typealias CodeSender =
      @Sendable (ActionCodeOperation, _ address: String, _ code: String) async throws -> Void

    /// Decides whether an account with an address may have a password. It runs for each password
    /// that is set, never for one that is tried. The address is empty if the account has none.
    public typealias PasswordPolicy =
      @Sendable (_ password: String, _ email: String) async -> Bool

    /// The defaults.
    public init() {}
  }

  /// The database of the accounts.
  public let database: Database
  package let options: Options
  let places: AccountPlaces
  let hasher: PasswordHasher
  let settings: SettingsRecord
  /// All parameters that stored passwords may have, including those imported since opening.
  let hashings: Guarded<[PasswordHashing]>

  private static let mostWaiting = 64
  private static let secretLength = 32

  /// Opens the accounts in a database. The call creates what they need: collections, a unique index
  /// on addresses, and expiry times for sessions and failed tries.
  ///
  /// - Parameters:
  ///   - database: open for writing.
  ///   - options: the options of the accounts.
  /// - Throws: `.internalError` when the database fails or is open only for reading.
  /// - Complexity: some small commits the first time, reads after that; O(accounts) once after a
  ///   version that compared addresses differently: see `addressConflicts()`.
  public static func open(
    in database: Database, options: Options = Options()
  ) async throws(AuthError) -> Accounts {
    try await open(in: database, options: options, derivation: .scrypt)
  }

  /// Opens accounts whose keys are derived as a test chooses.
  package static func open(
    in database: Database, options: Options = Options(), derivation: KeyDerivation
  ) async throws(AuthError) -> Accounts {
    guard options.hashing.isPossible else {
      throw AuthError(.internalError, "scrypt cannot run with these parameters")
    }
    let places = AccountPlaces(database: database)
    let settings = try await authenticating {
      try await places.accounts.createIndex(on: [AccountRecord.emailKey], unique: true)
      try await places.accounts.createIndex(on: [AccountRecord.sharesAddress])
      try await places.accounts.createIndex(on: [AccountRecord.phoneNumber], unique: true)
      try await places.accounts.createIndex(onArray: AccountRecord.identityKeys)
      try await places.sessions.createIndex(on: [SessionRecord.uid])
      try await places.sessions.setTimeToLive(field: FieldPath(SessionRecord.expiresAt))
      try await places.tries.setTimeToLive(field: FieldPath(SessionRecord.expiresAt))
      try await places.codes.setTimeToLive(field: FieldPath(SessionRecord.expiresAt))
      // One account's rule is all accounts'.
      try await places.puts(of: "any").setTimeToLive(field: FieldPath(SessionRecord.expiresAt))
      let settings = try await settle(places, options.hashing)
      guard settings.addressForm != EmailAddress.form else { return settings }
      try await places.renewAddressKeys()
      return try await settle(places, options.hashing, addressForm: EmailAddress.form)
    }
    return Accounts(database, options, places, settings, derivation)
  }

  private init(
    _ database: Database, _ options: Options, _ places: AccountPlaces, _ settings: SettingsRecord,
    _ derivation: KeyDerivation
  ) {
    self.database = database
    self.options = options
    self.places = places
    self.settings = settings
    hashings = Guarded(settings.hashings)
    let environment = database.environment
    hasher = PasswordHasher(
      derivation, threads: environment.threads, count: options.hashingThreads,
      mostWaiting: Self.mostWaiting, random: environment.random)
  }

  /// The settings, with today's parameters among those that passwords may have.
  ///
  /// - Parameter form: the form of all accounts' addresses, if already known.
  static func settle(
    _ places: AccountPlaces, _ hashing: PasswordHashing, addressForm form: Int? = nil
  ) async throws -> SettingsRecord {
    try await places.database.runTransaction { transaction in
      let stored = try transaction.getDocument(places.settings).data(as: SettingsRecord?.self)
      var settings =
        stored
        ?? SettingsRecord(
          secret: Data(Randomness.bytes(secretLength, places.database.environment.random)),
          hashings: [], addressForm: EmailAddress.form)
      if !settings.hashings.contains(hashing) { settings.hashings.append(hashing) }
      settings.addressForm = form ?? settings.addressForm
      if settings != stored {
        try transaction.setData(from: settings, forDocument: places.settings)
      }
      return settings
    }
  }

  // MARK: - Signing up

  /// Creates an account and signs its owner in.
  ///
  /// - Parameters:
  ///   - email: the address. No other account may have it; see `Account.email`.
  ///   - password: the password.
  /// - Returns: a session.
  /// - Throws: `.invalidEmail`, `.weakPassword`, `.emailAlreadyInUse`; `.tooManyRequests` when too
  ///   many passwords wait to be hashed; `.internalError`. The call then leaves nothing behind.
  /// - Complexity: one run of scrypt, and one commit.
  public func createUser(
    withEmail email: String, password: String
  ) async throws(AuthError) -> Session {
    try await createUser(withEmail: email, password: password) { _, _ in nil }
  }

  /// Creates an account with a profile, and a picture if there is one, in one commit, and signs its
  /// owner in.
  ///
  /// The profile becomes the document of the new uid in `Options.profileCollection`. The picture
  /// becomes its field `picture`, a `BlobReference`, and is deleted with the profile.
  ///
  /// - Parameters:
  ///   - email: the address. No other account may have it.
  ///   - password: the password.
  ///   - profile: the person's profile.
  ///   - picture: the bytes of a picture. The call detects the type from the bytes.
  /// - Returns: a session.
  /// - Throws: as `createUser(withEmail:password:)`. The call then leaves nothing behind, not even
  ///   the picture.
  /// - Complexity: one run of scrypt, and one commit, in O(bytes of the picture).
  public func createUser<Profile: Encodable>(
    withEmail email: String, password: String, profile: Profile,
    picture: (some Collection<UInt8> & Sendable)? = [UInt8]?.none
  ) async throws(AuthError) -> Session {
    let profiles = database.collection(options.profileCollection)
    return try await createUser(withEmail: email, password: password) { transaction, uid in
      let document = profiles.document(uid)
      try transaction.create(from: profile, forDocument: document)
      if let picture {
        let blob = try await transaction.put(picture)
        try transaction.updateData(["picture": blob], forDocument: document)
      }
      return document.path
    }
  }

  private func createUser(
    withEmail email: String, password: String,
    profile: (Transaction, _ uid: String) async throws -> String?
  ) async throws(AuthError) -> Session {
    let address = try EmailAddress(email)
    try await check(password, for: address)
    if try await find(address) != nil { throw .emailAlreadyInUse }
    let stored = try await hasher.hash(PasswordRules.bytes(of: password), options.hashing)
    return try await authenticating {
      try await database.runTransaction { transaction in
        guard try find(address, in: transaction) == nil else { throw AuthError.emailAlreadyInUse }
        let document = places.accounts.document()
        var record = AccountRecord(createdAt: try now())
        record.email = address.text
        record.emailKey = address.key
        record.password = stored
        record.lastSignInAt = record.createdAt
        record.profile = try await profile(transaction, document.documentID)
        try transaction.create(from: record, forDocument: document)
        return try startSession(of: document.documentID, record, isNew: true, in: transaction)
      }
    }
  }

  // MARK: - Signing in and out

  /// Signs a person in.
  ///
  /// The database records each try before the password is checked. A success removes its own try
  /// and the earlier failures of its address. So no more than `Options.maximumTries` guesses are
  /// wrong in any window, even with concurrent tries and across restarts. As a consequence, anyone
  /// who knows an address can block new sign-ins of its owner for as long. Sessions continue.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  ///   - origin: the client, such as the network address of a request. It has its own count,
  ///     against attackers who try one password for many addresses.
  /// - Returns: a new session.
  /// - Throws: `.invalidEmail` for a text that is not an address; `.invalidCredential` for a wrong
  ///   address or a wrong password, without a difference; `.userDisabled` for the right ones of a
  ///   disabled account; `.tooManyRequests`; `.internalError`.
  /// - Complexity: one run of scrypt, two after the parameters were raised or the password was
  ///   imported, and two commits.
  public func signIn(
    withEmail email: String, password: String, origin: String? = nil
  ) async throws(AuthError) -> Session {
    let address = try EmailAddress(email)
    return try await counting(triesLimits("password", of: address.key, origin)) {
      (tries) throws(AuthError) in
      try await signIn(address, password, tries)
    }
  }

  /// Signs in, for a try that is already recorded.
  private func signIn(
    _ address: EmailAddress, _ password: String, _ tries: NotedTries
  ) async throws(AuthError) -> Session {
    let bytes = PasswordRules.bytes(of: password)
    guard PasswordRules.isPossible(bytes) else { throw .invalidCredential }
    let found = try await find(address)
    let stored = found?.record.password ?? decoy(for: address)
    let matches = try await hasher.matches(bytes, stored)
    guard let found, matches else { throw .invalidCredential }
    // If the hasher is busy, the next sign-in raises them.
    let raised =
      stored.isWeaker(than: options.hashing)
      ? try? await hasher.hash(bytes, options.hashing) : nil
    return try await authenticating {
      try await database.runTransaction { transaction in
        // The password may have changed while the call checked it.
        guard var record = try account(found.uid, in: transaction), record.password == stored else {
          throw AuthError.invalidCredential
        }
        if let raised { record.password = raised }
        record.lastSignInAt = try now()
        try transaction.setData(from: record, forDocument: places.accounts.document(found.uid))
        try takeBack(tries, forgetting: true, in: transaction)
        return try startSession(of: found.uid, record, in: transaction)
      }
    }
  }

  /// Returns the session of a token.
  ///
  /// - Parameter token: the value of `Session.token`.
  /// - Throws: `.invalidUserToken` when the text is not a token, `.userTokenExpired` when there is
  ///   no
  ///   such session or it is over, `.userDisabled` while the account is disabled, `.internalError`.
  /// - Complexity: two gets.
  public func session(forToken token: String) async throws(AuthError) -> Session {
    let token = try SessionToken(token)
    return try await authenticating {
      let session = try await places.sessions.document(token.digest).getDocument()
        .data(as: SessionRecord?.self)
      guard let session else { throw AuthError.userTokenExpired }
      let record = try await places.accounts.document(session.uid).getDocument()
        .data(as: AccountRecord?.self)
      return Session(session, try check(session, record), token: token.text)
    }
  }

  /// Ends a session. Without effect when it is already over.
  ///
  /// - Parameter token: the value of `Session.token`.
  /// - Throws: `.invalidUserToken` when the text is not a token, `.internalError`.
  /// - Complexity: one commit.
  public func signOut(token: String) async throws(AuthError) {
    let document = places.sessions.document(try SessionToken(token).digest)
    try await authenticating { _ = try await document.delete() }
  }
}

// MARK: - Steps

extension Accounts {
  /// The current time, by the database's clock.
  func now() throws -> Timestamp { try Timestamp(microsecondsSince1970: database.now()) }

  /// The time after a duration.
  func moment(_ duration: Duration, after moment: Timestamp) throws -> Timestamp {
    let (seconds, attoseconds) = duration.components
    let microseconds = seconds.multipliedReportingOverflow(by: 1_000_000).partialValue
    let end = moment.microsecondsSince1970.addingReportingOverflow(
      microseconds + attoseconds / 1_000_000_000_000)
    return end.overflow || end.partialValue > Timestamp.maximum.microsecondsSince1970
      ? .maximum : try Timestamp(microsecondsSince1970: end.partialValue)
  }

  func account(_ uid: String, in transaction: Transaction) throws -> AccountRecord? {
    try transaction.getDocument(places.accounts.document(uid)).data(as: AccountRecord?.self)
  }

  /// Puts a new session into a transaction; throws `.userDisabled` for an account that is disabled.
  ///
  /// - Parameters:
  ///   - provider: how the person signed in.
  ///   - claims: claims of this session only.
  ///   - isNew: whether the transaction creates the account.
  func startSession(
    of uid: String, _ record: AccountRecord, by provider: SignInProvider = .password,
    claims: CustomClaims = .none, isNew: Bool = false, in transaction: Transaction
  ) throws -> Session {
    guard record.isDisabled != true else { throw AuthError.userDisabled }
    let token = SessionToken(database.environment.random)
    let now = try now()
    let session = SessionRecord(
      uid: uid, passwordVersion: record.passwordVersion, createdAt: now, authenticatedAt: now,
      expiresAt: try options.sessionLifetime.map { try moment($0, after: now) },
      provider: provider == .password ? nil : provider.rawValue, claims: claims.stored,
      revocation: record.revocation)
    try transaction.create(from: session, forDocument: places.sessions.document(token.digest))
    return Session(session, record, token: token.text, isNewUser: isNew)
  }

  /// The account of a session; throws `.userTokenExpired` when it is over, and `.userDisabled`
  /// while the account is disabled.
  func check(_ session: SessionRecord, _ record: AccountRecord?) throws -> AccountRecord {
    guard let record else { throw AuthError.userTokenExpired }
    guard record.isDisabled != true else { throw AuthError.userDisabled }
    guard session.passwordVersion == record.passwordVersion, session.isSuspended != true,
      session.revocation ?? 0 == record.revocation ?? 0
    else { throw AuthError.userTokenExpired }
    if let end = session.expiresAt,
      end.microsecondsSince1970 <= (try now()).microsecondsSince1970
    {
      throw AuthError.userTokenExpired
    }
    return record
  }

  /// The session within a transaction, which fails when the session ends before its commit.
  func session(
    _ token: String, in transaction: Transaction
  ) throws -> (session: SessionRecord, record: AccountRecord) {
    let document = places.sessions.document(try SessionToken(token).digest)
    guard let session = try transaction.getDocument(document).data(as: SessionRecord?.self) else {
      throw AuthError.userTokenExpired
    }
    return (session, try check(session, try account(session.uid, in: transaction)))
  }

  /// The record that is hashed against when no account has the address.
  func decoy(for address: EmailAddress) -> StoredPassword {
    settings.decoy(for: address, among: hashings.withLock { $0 }, options.hashing)
  }
}
