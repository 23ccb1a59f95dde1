// Who makes a call. A service asks for the principal before it does anything. A caller whose proof
// is wrong is no principal at all: the call ends there, and never goes on as one of nobody.

#if Server
  public import Ondol

  /// Who makes a call.
  package enum Principal: Sendable {
    /// Somebody who has not signed in.
    case nobody
    /// Somebody who may do everything.
    case admin
    /// Somebody who has signed in.
    case user(VerifiedToken)

    /// The token of somebody who has signed in; nil for the others.
    package var token: VerifiedToken? { if case .user(let token) = self { token } else { nil } }
  }

  /// What a token says, once it is verified.
  public struct VerifiedToken: Sendable, CustomStringConvertible, CustomReflectable {
    /// The account's uid.
    public let uid: String
    /// All claims: a map. Rules see it as `request.auth.token`.
    public let claims: Value
    /// When the person signed in, in seconds since 1970; 0 in a token that does not say so.
    public let authenticationTime: Int64
    /// When the token was made, in seconds since 1970; 0 in a token that does not say so.
    public let issueTime: Int64
    /// When the token ends, in seconds since 1970; 0 in a token that does not say so.
    public let expirationTime: Int64

    init(uid: String, claims: [String: Value]) {
      self.uid = uid
      self.claims = .map(claims)
      authenticationTime = claims["auth_time"]?.integer ?? 0
      issueTime = claims["iat"]?.integer ?? 0
      expirationTime = claims["exp"]?.integer ?? 0
    }

    /// The account's address at the time of the token; nil if it had none.
    public var email: String? { claims["email"]?.string }

    /// Whether the address was verified then.
    public var isEmailVerified: Bool { claims["email_verified"]?.boolean ?? false }

    /// How the person signed in, such as `password`; nil in a token that does not say so.
    public var signInProvider: String? { claims["firebase"]?["sign_in_provider"]?.string }

    /// The project that the token is for.
    public var audience: String? { claims["aud"]?.string }

    /// The uid.
    public var description: String { "VerifiedToken(uid: \(uid))" }

    /// The uid and the claims.
    public var customMirror: Mirror { Mirror(self, children: ["uid": uid, "claims": claims]) }
  }
#endif
