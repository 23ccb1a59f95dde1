// Tokens whose signature was checked lately. A client sends the same token with each call for an
// hour, and a check costs more than a small read. Only a digest of each token is kept, and what is
// remembered is the signature alone: the key must still be published, and times are compared again.

#if Server
  import Crypto
  import Foundation
  import Ondol
  import Synchronization

  /// A bounded memory of checked tokens.
  final class CheckedTokens: Sendable {
    /// A token whose signature was right.
    struct Checked: Sendable {
      let claims: [String: Value]
      /// The id of the key, and the key itself: another one may have got its id.
      let keyID: String
      let key: Data
    }

    typealias Digest = SHA256.Digest

    /// Two generations. When the newer is full, the older is forgotten.
    private struct State: Sendable {
      var newer: [Digest: Checked] = [:]
      var older: [Digest: Checked] = [:]
    }

    private let most: Int
    private let state = Mutex(State())

    /// - Parameter most: the number of tokens to remember, 2 or more. One takes about 2 KB.
    init(most: Int = 10_000) {
      self.most = most
    }

    static func digest(_ token: String) -> Digest { SHA256.hash(data: Data(token.utf8)) }

    /// The number of remembered tokens.
    var count: Int { state.withLock { $0.newer.count + $0.older.count } }

    func find(_ digest: Digest) -> Checked? {
      state.withLock { state in
        if let known = state.newer[digest] { return known }
        guard let known = state.older.removeValue(forKey: digest) else { return nil }
        keep(known, digest, in: &state)
        return known
      }
    }

    func note(_ checked: Checked, _ digest: Digest) {
      state.withLock { keep(checked, digest, in: &$0) }
    }

    func forget(_ digest: Digest) {
      state.withLock { state in
        state.newer[digest] = nil
        state.older[digest] = nil
      }
    }

    private func keep(_ checked: Checked, _ digest: Digest, in state: inout State) {
      if state.newer.count >= most / 2 {
        state.older = state.newer
        state.newer = [:]
      }
      state.newer[digest] = checked
    }
  }
#endif
