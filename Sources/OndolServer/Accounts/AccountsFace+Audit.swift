// What the audit has of calls for accounts: who signed in or did not, and which accounts changed.
// Events name accounts by uid. What a caller typed is in none of them: a password that was typed
// where the address belongs would otherwise be there for ever.

#if Server
  import Ondol

  extension AccountsRoute.Client {
    /// Whether the call starts a session.
    fileprivate var signsIn: Bool {
      switch self {
      case .signUp, .signInWithPassword, .signInWithCustomToken, .signInWithEmailLink: true
      default: false
      }
    }

    /// Whether the call may derive a key from a password, or make an account.
    var mayDeriveKeys: Bool { signsIn || self == .update || self == .resetPassword }
  }

  extension AccountsFace {
    /// Runs a client's call, and records what it did.
    func auditing(
      _ name: AccountsRoute.Client, _ project: String,
      _ body: () async throws(AccountsFailure) -> Value
    ) async throws(AccountsFailure) -> Value {
      let audit = admission.audit
      do throws(AccountsFailure) {
        let answer = try await body()
        let uid = answer["localId"]?.string
        if name.signsIn, let uid {
          OpenCall.current?.note(
            OpenCall.Caller(
              kind: .user, account: CallerAccount(project: project, uid: uid), project: project))
          audit.note(.signIn, account: uid, database: project)
        } else if [.update, .delete, .resetPassword].contains(name) {
          audit.note(.accountChange, account: uid, database: project)
        }
        return answer
      } catch {
        if name.signsIn || error.message.hasPrefix("INVALID_OOB_CODE") {
          // Firebase's name of the error, and not what a person may read after it.
          let reason = error.message.prefix { $0 != " " }
          audit.note(.failedSignIn, database: project, reason: String(reason))
        }
        throw error
      }
    }

    /// Records an administrator's changes, without those that the answer says have failed.
    func note(_ name: AccountsRoute.Administrator, _ fields: AccountsFields, _ answer: Value) {
      let uids: [String?]
      switch name {
      case .create, .update, .delete:
        uids = [answer["localId"]?.string ?? (try? fields.text("localId"))]
      case .batchDelete: uids = (try? fields.texts("localIds")) ?? []
      case .batchCreate:
        uids = ((try? fields.objects("users")) ?? []).map { try? $0.text("localId") }
      case .createSessionCookie, .sendOobCode, .lookup, .query, .batchGet: return
      }
      let errors = (answer["errors"] ?? answer["error"])?.array ?? []
      let failed = Set(errors.compactMap { $0["index"]?.integer })
      for (index, uid) in uids.enumerated() where !failed.contains(Int64(index)) {
        admission.audit.note(.accountChange, account: uid)
      }
    }
  }
#endif
