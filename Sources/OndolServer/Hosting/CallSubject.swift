// Who makes a call, for its line in the log. The service finds out, and the log has begun before.

#if Server
  import Synchronization

  /// The caller of one call, once it is known.
  final class CallSubject: Sendable {
    /// The call that the current task answers.
    @TaskLocal static var current: CallSubject?

    private let known = Mutex<String?>(nil)

    /// `admin`, `nobody`, or a person's uid; nil if the call ended before.
    var name: String? { known.withLock { $0 } }

    func note(_ principal: Principal) {
      let name =
        switch principal {
        case .nobody: "nobody"
        case .admin: "admin"
        case .user(let token): token.uid
        }
      known.withLock { $0 = name }
    }
  }
#endif
