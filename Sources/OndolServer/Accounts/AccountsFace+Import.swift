// Administrators' imports of accounts with the hashes of their passwords.

#if Server
  import Ondol
  import OndolAccounts

  extension AccountsFace {
    private static let mostImported = 1_000

    /// Imports accounts. Those that cannot be imported are in the answer, with their reasons.
    func importAccounts(_ request: Request) async throws(AccountsFailure) -> Value {
      let users = try request.fields.objects("users")
      guard !users.isEmpty else { throw AccountsFailure("MISSING_USER_ACCOUNT") }
      guard users.count <= Self.mostImported else {
        throw AccountsFailure("INVALID_ARGUMENT : a call imports \(Self.mostImported) accounts")
      }
      let format = try Self.format(request.fields)
      var (chosen, errors): ([(index: Int, account: ImportedAccount)], [(Int, String)]) = ([], [])
      for (index, user) in users.enumerated() {
        do throws(AccountsFailure) {
          chosen.append((index, try Self.imported(user)))
        } catch {
          errors.append((index, error.message))
        }
      }
      let all = chosen
      let result = try await reporting { () async throws(AuthError) in
        try await request.accounts.importAccounts(all.map(\.account), passwords: format)
      }
      errors += result.failures.map { failure in
        (all[failure.index].index, AccountsFailure(failure.error).message)
      }
      let failures = errors.sorted { $0.0 < $1.0 }.map { index, message -> Value in
        ["index": .integer(Int64(index)), "message": .string(message)]
      }
      var answer: [String: Value] = ["kind": "identitytoolkit#UploadAccountResponse"]
      if !failures.isEmpty { answer["error"] = .array(failures) }
      return .map(answer)
    }

    /// How the passwords were hashed; nil when the request has none.
    private static func format(
      _ fields: AccountsFields
    ) throws(AccountsFailure) -> PasswordHashFormat? {
      guard let algorithm = try fields.text("hashAlgorithm") else { return nil }
      let signerKey = try fields.bytes("signerKey") ?? []
      let separator = try fields.bytes("saltSeparator") ?? []
      let rounds = try fields.integer("rounds") ?? 0
      // Firebase's libraries name it in the second way for plain scrypt.
      let costs = [try fields.integer("memoryCost"), try fields.integer("cpuMemCost")]
      let cost = costs.compactMap(\.self).first ?? 0
      let blockSize = try fields.integer("blockSize") ?? 0
      let parallelization = try fields.integer("parallelization") ?? 0
      do throws(AuthError) {
        switch algorithm {
        case "SCRYPT":
          return try .firebaseScrypt(
            signerKey: signerKey, saltSeparator: separator, rounds: rounds, memoryCost: cost)
        case "STANDARD_SCRYPT":
          return try .scrypt(
            memoryCost: cost, blockSize: blockSize, parallelization: parallelization)
        default: break
        }
      } catch {
        throw AccountsFailure(error)
      }
      throw AccountsFailure("INVALID_HASH_ALGORITHM")
    }

    /// An account to import, as imports and exports of Firebase's have it.
    static func imported(
      _ fields: AccountsFields
    ) throws(AccountsFailure) -> ImportedAccount {
      var account = ImportedAccount(uid: try fields.text("localId", orMissing: "LOCAL_ID"))
      account.email = try fields.text("email")
      account.isEmailVerified = try fields.flag("emailVerified") ?? false
      account.phoneNumber = try fields.text("phoneNumber")
      account.displayName = try fields.text("displayName")
      account.photoURL = try fields.text("photoUrl")
      account.isDisabled = try fields.flag("disabled") ?? false
      account.customClaims = try claims(fields) ?? .none
      account.creationTime = try time(fields, "createdAt")
      account.lastSignInTime = try time(fields, "lastLoginAt")
      if let password = try password(fields) {
        account.password = password
      } else {
        account.passwordHash = try fields.bytes("passwordHash")
        account.passwordSalt = try fields.bytes("salt") ?? []
      }
      for provider in try fields.objects("providerUserInfo") {
        // These two are the account's own address and number.
        let name = try provider.text("providerId")
        guard name != "password", name != "phone" else { continue }
        account.identities.append(try identity(provider))
      }
      return account
    }

    /// The password, if it is there in clear. What Firebase's emulator calls a hash has the
    /// password in it: `fakeHash:salt=SALT:password=PASSWORD`. The salt has letters and digits.
    private static func password(_ fields: AccountsFields) throws(AccountsFailure) -> String? {
      if let password = try fields.text("rawPassword") { return password }
      let (beginning, middle) = ("fakeHash:salt=", ":password=")
      guard let hash = try fields.text("passwordHash"), hash.hasPrefix(beginning),
        let range = hash.firstRange(of: middle)
      else { return nil }
      return String(hash[range.upperBound...])
    }

    /// A time in milliseconds since 1970.
    private static func time(
      _ fields: AccountsFields, _ name: String
    ) throws(AccountsFailure) -> Timestamp? {
      guard let milliseconds = try fields.integer(name) else { return nil }
      let (microseconds, overflow) = Int64(milliseconds).multipliedReportingOverflow(by: 1_000)
      guard !overflow, let time = try? Timestamp(microsecondsSince1970: microseconds) else {
        throw .wrongType(name)
      }
      return time
    }
  }
#endif
