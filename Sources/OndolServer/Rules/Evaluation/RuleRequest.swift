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
    /// An `allow`, or a rule of a tree, that was asked, and what became of it.
    struct Considered: Sendable {
      enum Outcome: Sendable, Hashable {
        case held
        case didNotHold
        case failed(RuleFailure)
      }

      let span: RuleSpan
      let source: RuleSource
      let outcome: Outcome

      /// - Complexity: O(length of the file), so it is counted only when someone asks.
      var place: RulePlace { source.place(of: span) }
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
    /// What was asked, in its order. Empty when nothing is for the path and the method.
    let considered: [Considered]
    /// Which of them decided. Nil when the request is denied because none allowed it.
    let decision: Int?
    /// What was seen, when an explanation was asked for.
    let steps: [Step]

    /// The place of the rule that decided.
    var decidedAt: RulePlace? { decision.map { considered[$0].place } }
  }

  extension RuleVerdict: CustomStringConvertible {
    /// A line of the verdict, a line of each rule that was asked, and the steps.
    var description: String {
      var lines = [isAllowed ? "allowed" : "denied"]
      if considered.isEmpty { lines.append("  no rule is for this path and method") }
      for rule in considered {
        switch rule.outcome {
        case .held: lines.append("  \(rule.place): holds")
        case .didNotHold: lines.append("  \(rule.place): does not hold")
        case .failed(let failure): lines.append("  \(rule.place): \(failure)")
        }
      }
      for step in steps { lines.append("  \(step.place): \(step.expression) → \(step.result)") }
      return lines.joined(separator: "\n")
    }
  }
#endif
