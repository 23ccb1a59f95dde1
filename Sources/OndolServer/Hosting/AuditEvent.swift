// What a server tells those who answer for it: who signed in, who was refused, and what
// administrators changed. An event has names of calls and of accounts, and nothing that a caller
// typed: no password, token, code or address of mail, and no document.

#if Server
  import Foundation
  public import Ondol
  import OndolJSON

  /// Something that happened to the access to a server.
  public struct AuditEvent: Sendable, Hashable {
    /// What happened.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// Somebody signed in or up.
      case signIn = "sign-in"
      /// A password, a code or a custom token was wrong, or there were too many of them.
      case failedSignIn = "failed-sign-in"
      /// A call had a token that is not valid.
      case refusedToken = "refused-token"
      /// Rules denied a call, or it was for administrators only.
      case denial
      /// A caller reached a limit. It is reported once until a call of the caller is allowed.
      case limit
      /// An account was created, changed or deleted.
      case accountChange = "account-change"
      /// An administrator deployed rules.
      case rulesChange = "rules-change"
    }

    /// Who made the call.
    public enum Caller: String, Sendable, Hashable {
      /// Somebody without a valid token, or not known at the time.
      case nobody
      /// An administrator.
      case admin
      /// The person of `account`, or of the sign-in that failed.
      case user
    }

    /// When, by the machine's clock.
    public var time: Timestamp
    /// What happened.
    public var kind: Kind
    /// The call's name in the server's log, such as `Commit` or `accounts:signUp`.
    public var call: String
    /// Who made the call.
    public var caller: Caller
    /// The uid of the account: the caller's, or the one that an administrator changed. nil if none
    /// is concerned, or it is not known.
    public var account: String?
    /// The project or the database of the call; empty if it names none.
    public var database: String
    /// The network address of the caller, with `::/64` for a network of IPv6; nil if it is not
    /// known.
    public var address: String?
    /// The reason in one line, such as the status that the caller was sent; nil without one.
    public var reason: String?

    /// The event as a line of JSON without its line break. Its members have the names of this
    /// type's properties, and those that are nil are missing.
    public var line: String {
      var members: [String: Value] = [
        "time": .string(JSONWriter.dateText(time)), "kind": .string(kind.rawValue),
        "call": .string(call), "caller": .string(caller.rawValue), "database": .string(database),
      ]
      members["account"] = account.map(Value.string)
      members["address"] = address.map(Value.string)
      members["reason"] = reason.map(Value.string)
      return JSONWriter.line(.map(members), .plain)
    }
  }

  /// Where a server's events go.
  package struct AuditTrail: Sendable {
    /// The longest part of a call's name, a database's or a reason, in characters.
    private static let longest = 256

    private let record: (@Sendable (AuditEvent) -> Void)?

    package init(_ record: (@Sendable (AuditEvent) -> Void)?) { self.record = record }

    /// Records an event of the call that the present task answers.
    ///
    /// - Parameter account: the account that is concerned, if it is not the caller's.
    func note(
      _ kind: AuditEvent.Kind, account: String? = nil, database: String? = nil,
      reason: String? = nil
    ) {
      note(kind, in: OpenCall.current, account: account, database: database, reason: reason)
    }

    func note(
      _ kind: AuditEvent.Kind, in call: OpenCall?, account: String? = nil,
      database: String? = nil, reason: String? = nil
    ) {
      let now = Int64(Date().timeIntervalSince1970 * 1_000_000)
      guard let record, let time = try? Timestamp(microsecondsSince1970: now) else { return }
      let caller = call?.caller ?? .nobody
      record(
        AuditEvent(
          time: time, kind: kind, call: call?.method ?? "",
          caller: caller.kind, account: account ?? caller.account?.uid,
          database: String((database ?? caller.project ?? "").prefix(Self.longest)),
          address: call?.address?.description,
          reason: reason.map { String($0.prefix(Self.longest)) }))
    }
  }
#endif
