// What a request is to rules, what they may read beside it, and what they answer.

#if Server
  /// A request, as rules see it.
  struct RuleRequest: Sendable {
    var service: RuleService
    /// One of get, list, create, update and delete.
    var method: RuleMethods
    /// The whole path, as the outermost `match` has it: see `firestore` and `storage`.
    var path: [String]
    /// `request.auth`: null, or a map of `uid` and `token`.
    var auth = RuleValue.null
    var time: RuleTimestamp
    /// `resource`: what is stored, or null. A document for Firestore, a map for Storage.
    var resource = RuleValue.null
    /// `request.resource`: what will be stored, or null.
    var newResource = RuleValue.null
    /// `request.query`: a map of `limit`, `offset` and `orderBy`, or null.
    var query = RuleValue.null

    /// The whole path of a document or a collection.
    static func firestore(
      _ path: [String], database: String = "(default)"
    ) -> [String] { ["databases", database, "documents"] + path }

    /// The whole path of an object.
    static func storage(_ path: [String], bucket: String) -> [String] { ["b", bucket, "o"] + path }

    /// What `request.method` is.
    var methodName: String {
      switch method {
      case .get: "get"
      case .list: "list"
      case .create: "create"
      case .update: "update"
      case .delete: "delete"
      default: "unknown"
      }
    }
  }

  /// The documents that rules may read, as of the moment of the request.
  protocol RuleDocuments {
    /// The fields of a document as a map, or nil when there is none.
    ///
    /// - Parameters:
    ///   - path: the whole path, as in `/databases/(default)/documents/items/lamp`.
    ///   - afterWrites: whether as of after the request's own writes.
    func document(at path: [String], afterWrites: Bool) throws -> RuleValue?
  }

  /// No documents at all.
  struct NoRuleDocuments: RuleDocuments {
    func document(at path: [String], afterWrites: Bool) throws -> RuleValue? { nil }
  }

  /// The digests of `hashing`. The server hands in what it has; a function that is missing fails.
  struct RuleDigests: Sendable {
    var md5: (@Sendable ([UInt8]) -> [UInt8])?
    var sha256: (@Sendable ([UInt8]) -> [UInt8])?

    static let none = RuleDigests()
  }

  /// What rules decided, and why.
  struct RuleVerdict: Sendable {
    /// An `allow` that was for the request, and what became of its condition.
    struct Considered: Sendable {
      enum Outcome: Sendable, Hashable {
        case held
        case didNotHold
        case failed(RuleFailure)
      }

      let place: RulePlace
      let outcome: Outcome
    }

    /// A value that was seen on the way.
    struct Step: Sendable {
      let place: RulePlace
      /// The expression as it is written.
      let expression: String
      /// Its value, or why it has none.
      let result: String
    }

    let isAllowed: Bool
    /// The allows that were for the request, in their order. The last one decided, if any did.
    /// Empty when none was.
    let considered: [Considered]
    /// What was seen, when an explanation was asked for.
    let steps: [Step]

    /// The `allow` that allowed the request.
    var decidedAt: RulePlace? { isAllowed ? considered.last?.place : nil }
  }

  extension RuleVerdict: CustomStringConvertible {
    /// A line of the verdict, a line of each allow that was considered, and the steps.
    var description: String {
      var lines = [isAllowed ? "allowed" : "denied"]
      if considered.isEmpty { lines.append("  no allow is for this path and method") }
      for allow in considered {
        switch allow.outcome {
        case .held: lines.append("  \(allow.place): holds")
        case .didNotHold: lines.append("  \(allow.place): does not hold")
        case .failed(let failure): lines.append("  \(allow.place): \(failure)")
        }
      }
      for step in steps { lines.append("  \(step.place): \(step.expression) → \(step.result)") }
      return lines.joined(separator: "\n")
    }
  }
#endif
