// The accounts of a database: start reading here. A call checks what it is given, lets the password
// hasher do its work outside any transaction, and then does all it does in one. So an account, its
// profile, its picture and its first session come in one commit, or nothing of them does.

internal import Crypto
internal import Foundation
public import Ondol
internal import OndolEngine

/// The accounts of an app's people, in the app's own database.
///
/// For a service, where many people are signed in at once and each request brings a token. An app
/// on a device, where one person is, uses `Auth`, which keeps the token, too.
///
/// ```swift
/// let accounts = try await Accounts.open(in: database)
/// let session = try await accounts.createUser(withEmail: "minji@example.com", password: password)
/// // … the token goes to the browser and comes back with the next request:
/// let known = try await accounts.session(forToken: session.token)
/// try await known.account.uid
/// ```
///
/// Passwords are stored as scrypt's keys, tokens and codes as digests. What an unknown
/// address costs is what a known one does, so that nobody learns who has an account by signing in.
/// (Signing up tells, as it does with Firebase: an address is taken or not.)
public final class Accounts: Sendable {
  /// How accounts are kept.
  public struct Options: Sendable {
    /// What a guess at a password costs. Where it is raised, accounts follow at their next sign-in.
    public var hashing = PasswordHashing.standard
    /// Characters that a password has at least.
    public var minimumPasswordLength = 8
    /// Whether the library refuses passwords that everybody tries first: the few that it knows,
    /// simple rows of keys, and the account's own address. False leaves Firebase's rule, which is
    /// the length alone.
    public var refusesSimplePasswords = true
    /// Further passwords that nobody may have.
    public var commonPasswords: CommonPasswords?
    /// Whether the app takes a password that all other rules let pass; nil, the default, takes it.
    /// Where it says false the call throws `.weakPassword`.
    public var passwordPolicy: PasswordPolicy?
    /// Tries that may fail for one address within `triesWindow`, from any origin: 1 to 10,000.
    public var maximumTries = 10
    /// The same for all addresses together from one `origin`. Tries that succeed do not count.
    public var maximumTriesOfOrigin = 100
    /// Guests from one `origin` within `triesWindow`; see `Accounts.signInAnonymously(origin:)`.
    public var maximumGuestsOfOrigin = 100
    /// Each failed try is forgotten after this time, a year at most.
    public var triesWindow = Duration.seconds(15 * 60)
    /// How long a session lasts; nil, the default, for ever, as with Firebase.
    public var sessionLifetime: Duration?
    /// How long after a password was given the account may be changed.
    public var recentSignIn = Duration.seconds(5 * 60)
    /// Threads that hash passwords. A run has a core and, with `.standard`, 32 MiB.
    public var hashingThreads = 2
    /// The collection that profiles given at sign-up are in.
    public var profileCollection = "users"

    /// Sends a code to an address, by mail; nil, the default, where the app sends none, and then
    /// nothing can be verified and no password is reset by mail.
    ///
    /// ```swift
    /// options.sendCode = { operation, address, code in
    ///   try await mailer.send(to: address, text: "Your code: \(code)")
    /// }
    /// ```
    ///
    /// Put it into a link where people should not have to type it. What it throws for
    /// `.passwordReset` nobody sees, because that would tell who has an account: log it there.
    ///
    /// It runs with the task-local values of the call that asked for the code. A server passes it
    /// the language or the link's address of a request in one.
    public var sendCode: CodeSender?
    /// How long a code that was sent is good.
    public var codeLifetime = Duration.seconds(60 * 60)
    /// Codes that are sent to one address for one purpose within `triesWindow`.
    public var maximumCodes = 5

    /// Sends a code to an address.
    public typealias CodeSender =
      @Sendable (ActionCodeOperation, _ address: String, _ code: String) async throws -> Void

    /// Says whether an account with an address may have a password. Runs with each password that is
    /// set, and with none that is tried. The address is empty where the account has none.
    public typealias PasswordPolicy =
      @Sendable (_ password: String, _ email: String) async -> Bool

    /// The defaults.
    public init() {}
  }

  /// Whose accounts they are.
  public let database: Database
  let options: Options
  let places: AccountPlaces
  let hasher: PasswordHasher
  let settings: SettingsRecord
  /// All parameters that stored passwords may have, with those that were imported since opening.
  let hashings: Guarded<[PasswordHashing]>

  private static let mostWaiting = 64
  private static let secretLength = 32

  /// The accounts in a database, with what they need: collections, a unique index on
  /// addresses, and times at which sessions and failed tries end.
  ///
  /// - Parameters:
  ///   - database: open for writing.
  ///   - options: how accounts are kept.
  /// - Throws: `.internalError` when the database fails or is open for reading only.
  /// - Complexity: some small commits the first time, reads after that; O(accounts) once after a
  ///   version that compared addresses otherwise: see `addressConflicts()`.
  public static func open(
    in database: Database, options: Options = Options()
  ) async throws(AuthError) -> Accounts {
    try await open(in: database, options: options, derivation: .scrypt)
  }

  /// Accounts whose keys are derived as a test says.
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
  /// - Parameter form: that of all accounts' addresses, where it is known by now.
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

  /// Makes an account and signs its owner in.
  ///
  /// - Parameters:
  ///   - email: the address. No other account may have it; see `Account.email`.
  ///   - password: the password.
  /// - Returns: a session.
  /// - Throws: `.invalidEmail`, `.weakPassword`, `.emailAlreadyInUse`; `.tooManyRequests` when too
  ///   many passwords wait to be hashed; `.internalError`. Then nothing is left of it.
  /// - Complexity: one run of scrypt, and one commit.
  public func createUser(
    withEmail email: String, password: String
  ) async throws(AuthError) -> Session {
    try await createUser(withEmail: email, password: password) { _, _ in nil }
  }

  /// Makes an account with a profile, and a picture if there is one, all in one commit, and signs
  /// its owner in.
  ///
  /// The profile becomes the document of the new uid in `Options.profileCollection`; the picture
  /// becomes its field `picture`, a `BlobReference`, and goes where the profile goes.
  ///
  /// - Parameters:
  ///   - email: the address. No other account may have it.
  ///   - password: the password.
  ///   - profile: what is said of the person.
  ///   - picture: the bytes of a picture; its type is seen from them.
  /// - Returns: a session.
  /// - Throws: as `createUser(withEmail:password:)`; then nothing is left of it, not even the
  ///   picture.
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

  /// Signs somebody in.
  ///
  /// Each try counts before the password is looked at, in the database. A success takes its own try
  /// back, and forgets the failures of its address before it. So no more than
  /// `Options.maximumTries` guesses are wrong in any window, however many come at once, and
  /// restarting does not help. What it means: who knows an address can keep its owner from another
  /// sign-in for as long; sessions go on.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  ///   - origin: who asks, such as the address of the network that a request comes from; has a
  ///     count of its own, against those who try one password for many addresses.
  /// - Returns: a new session.
  /// - Throws: `.invalidEmail` for a text that is no address; `.invalidCredential` for a wrong
  ///   address and a wrong password alike; `.userDisabled` for the right ones of an account that is
  ///   disabled; `.tooManyRequests`; `.internalError`.
  /// - Complexity: one run of scrypt, two where parameters were raised or the password was
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

  /// Signs in by a try that was noted.
  private func signIn(
    _ address: EmailAddress, _ password: String, _ tries: NotedTries
  ) async throws(AuthError) -> Session {
    let bytes = PasswordRules.bytes(of: password)
    guard PasswordRules.isPossible(bytes) else { throw .invalidCredential }
    let found = try await find(address)
    let stored = found?.record.password ?? decoy(for: address)
    let matches = try await hasher.matches(bytes, stored)
    guard let found, matches else { throw .invalidCredential }
    // Where the hasher is busy, the next sign-in raises them.
    let raised =
      stored.isWeaker(than: options.hashing)
      ? try? await hasher.hash(bytes, options.hashing) : nil
    return try await authenticating {
      try await database.runTransaction { transaction in
        // Who changed the password while it was being checked has changed what it is.
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

  /// The session that a token stands for.
  ///
  /// - Parameter token: as `Session.token` was.
  /// - Throws: `.invalidUserToken` when the text is no token, `.userTokenExpired` when there is no
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

  /// Ends a session. Does nothing when it is over.
  ///
  /// - Parameter token: as `Session.token` was.
  /// - Throws: `.invalidUserToken` when the text is no token, `.internalError`.
  /// - Complexity: one commit.
  public func signOut(token: String) async throws(AuthError) {
    let document = places.sessions.document(try SessionToken(token).digest)
    try await authenticating { _ = try await document.delete() }
  }
}

// MARK: - Steps

extension Accounts {
  /// This moment, by the database's clock.
  func now() throws -> Timestamp { try Timestamp(microsecondsSince1970: database.now()) }

  /// A moment so much later.
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
  ///   - provider: how somebody signed in.
  ///   - claims: what is said of the session alone.
  ///   - isNew: whether the transaction makes the account.
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

  /// The session as of a transaction, which fails when the session ends before its commit.
  func session(
    _ token: String, in transaction: Transaction
  ) throws -> (session: SessionRecord, record: AccountRecord) {
    let document = places.sessions.document(try SessionToken(token).digest)
    guard let session = try transaction.getDocument(document).data(as: SessionRecord?.self) else {
      throw AuthError.userTokenExpired
    }
    return (session, try check(session, try account(session.uid, in: transaction)))
  }

  /// What is hashed against where nobody has the address.
  func decoy(for address: EmailAddress) -> StoredPassword {
    settings.decoy(for: address, among: hashings.withLock { $0 }, options.hashing)
  }
}
