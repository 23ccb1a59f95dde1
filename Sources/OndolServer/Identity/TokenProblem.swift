// Why a token is not taken. Callers of a service get one error for all of it; Firebase's clients
// for accounts distinguish the token that is too old, because they then get another.

#if Server
  import Ondol

  /// Why a token is refused.
  enum TokenProblem: Error, Hashable {
    /// It is no token: its form, its size, or a claim that has the wrong type.
    case malformed(String)
    /// Its algorithm is not the one that this server signs with.
    case wrongAlgorithm
    /// No key of this database has signed it.
    case wrongKey
    /// The signature is not of these claims.
    case wrongSignature
    /// It is for something else: another kind of token, or another issuer.
    case wrongPurpose
    /// It has ended.
    case expired
    /// It begins in the future.
    case early
    /// The account's sessions were ended after the token's sign-in.
    case revoked
    /// The account is disabled.
    case disabled
    /// The account does not exist any more.
    case unknownAccount
    /// The database failed.
    case failed(DatabaseError)

    /// The error for callers of a service.
    var databaseError: DatabaseError {
      if case .failed(let error) = self { return error }
      return DatabaseError(
        .unauthenticated, "the token is not valid: \(reason)",
        suggestion: "sign in, or get a new token with the refresh token")
    }

    /// What is wrong with it, without anything that the token contains.
    var reason: String {
      switch self {
      case .malformed(let reason): reason
      case .wrongAlgorithm: "this server signs with ES256 alone"
      case .wrongKey: "no key of this database has signed it"
      case .wrongSignature: "the signature is not of these claims"
      case .wrongPurpose: "it was made for something else"
      case .expired: "it has expired"
      case .early: "it was made in the future"
      case .revoked: "the sessions of its account were ended"
      case .disabled: "its account is disabled"
      case .unknownAccount: "its account does not exist"
      case .failed(let error): error.message
      }
    }
  }
#endif
