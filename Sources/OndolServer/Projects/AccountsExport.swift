// The part of an export with accounts: `accounts.json`, which is the answer of Firebase's call for
// a list of accounts. The emulator writes passwords in clear, so people keep theirs. Ondol cannot:
// an export of its accounts has no passwords.

#if Server
  import Foundation
  import Ondol
  import OndolAccounts
  import OndolJSON

  /// Reads the accounts of an export.
  struct AccountsExportReader: Sendable {
    static let folder = "auth_export"
    static let name = "accounts.json"
    static let settingsName = "config.json"
    /// The largest number of accounts in one call.
    private static let mostAtOnce = 1_000

    private let file: String
    private var accounts: [ImportedAccount] = []

    /// - Parameter part: the name of the folder.
    init(_ folder: ProjectFolder, _ part: String) throws(ProjectFault) {
      let name = "\(part)/\(Self.name)"
      file = folder.place(name)
      for other in try folder.names(in: part)
      where other != Self.name && other.contains("accounts") {
        throw ProjectFault(folder.place("\(part)/\(other)"), nil, "accounts here have no tenants")
      }
      guard folder.exists(name) else { return }
      let answer = AccountsFields(try folder.json(name).map ?? [:])
      let users: [AccountsFields]
      do throws(AccountsFailure) {
        users = try answer.objects("users")
      } catch {
        throw ProjectFault(file, "users", error.message)
      }
      for (index, user) in users.enumerated() {
        do throws(AccountsFailure) {
          for key in ["mfaInfo", "tenantId"] where user.isFilled(key) {
            throw AccountsFailure("the accounts here have no \(key)")
          }
          accounts.append(try AccountsFace.imported(user))
        } catch {
          throw ProjectFault(file, "users[\(index)]", error.message)
        }
      }
    }

    /// Puts the accounts into a database.
    ///
    /// - Returns: their number.
    /// - Throws: `ProjectFault` for an account that is refused, such as the second with an address.
    func load(into opened: Accounts) async throws -> Int {
      for start in stride(from: 0, to: accounts.count, by: Self.mostAtOnce) {
        let step = Array(accounts[start..<min(start + Self.mostAtOnce, accounts.count)])
        let result = try await opened.importAccounts(step)
        guard let failure = result.failures.first else { continue }
        throw ProjectFault(
          file, "users[\(start + failure.index)]", AccountsFailure(failure.error).message)
      }
      return accounts.count
    }
  }

  /// Writes the accounts of an export.
  enum AccountsExport {
    private static let pageLength = 500

    /// Writes all accounts of a database.
    ///
    /// - Parameter write: gets the file's bytes, piece by piece.
    static func write(
      _ database: Database, _ counts: inout ExportCounts, _ write: ([UInt8]) throws -> Void
    ) async throws {
      try write(Array("{\"kind\":\"identitytoolkit#DownloadAccountResponse\",\"users\":[".utf8))
      var last: String?
      repeat {
        let page = try await Account.page(of: database, after: last, limit: pageLength)
        for account in page {
          let separator = counts.accounts == 0 ? "\n" : ",\n"
          try write(Array((separator + JSONWriter.line(account.user, .plain)).utf8))
          counts.accounts += 1
          if account.hasPassword { counts.passwords += 1 }
        }
        last = page.count < pageLength ? nil : page.last?.uid
      } while last != nil
      try write(Array("\n]}\n".utf8))
    }
  }
#endif
