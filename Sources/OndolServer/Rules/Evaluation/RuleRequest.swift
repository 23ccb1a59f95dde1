// A request to rules, the documents that rules may read in addition, and their verdict.

#if Server
  /// A request, as rules see it.
  struct RuleRequest: Sendable {
    var service: RuleService
    /// One of get, list, create, update and delete.
    var method: RuleMethods
    /// The whole path, in the form of the outermost `match`: see `firestore` and `storage`.
    var path: [String]
    /// `request.auth`: null, or a map of `uid` and `token`.
    var auth = RuleValue.null
    var time: RuleTimestamp
    /// `resource`: the stored document or object, or null. A document for Firestore, a map for
    /// Storage.
    var resource = RuleValue.null
    /// `request.resource`: the document or object after the write, or null.
    var newResource = RuleValue.null
    /// `request.query`: a map of `limit`, `offset` and `orderBy`, or null.
    var query = RuleValue.null

    /// Returns the whole path of a document or a collection.
    static func firestore(
      _ path: [String], database: String = "(default)"
    ) -> [String] { ["databases", database, "documents"] + path }

    /// Returns the whole path of an object.
    static func storage(_ path: [String], bucket: String) -> [String] { ["b", bucket, "o"] + path }

    /// The value of `request.method`.
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
    /// Returns the fields of a document as a map; nil if it does not exist.
    ///
    /// - Parameters:
    ///   - path: the whole path, such as `/databases/(default)/documents/items/lamp`.
    ///   - afterWrites: whether to read the state after the request's own writes.
    func document(at path: [String], afterWrites: Bool) throws -> RuleValue?
  }

  /// A database without documents.
  struct NoRuleDocuments: RuleDocuments {
    func document(at path: [String], afterWrites: Bool) throws -> RuleValue? { nil }
  }

  /// The digests of `hashing`. The server passes the ones that it has; a missing function fails.
  struct RuleDigests: Sendable {
    var md5: (@Sendable ([UInt8]) -> [UInt8])?
    var sha256: (@Sendable ([UInt8]) -> [UInt8])?

    static let none = RuleDigests()
  }

  /// The rules' decision, and its reason.
  struct RuleVerdict: Sendable {
    /// An `allow`, or a tree rule, that was evaluated, and its result.
    struct Considered: Sendable {
      enum Outcome: Sendable, Hashable {
        case held
        case didNotHold
        case failed(RuleFailure)
      }

      let span: RuleSpan
      let source: RuleSource
      let outcome: Outcome

      /// - Complexity: O(length of the file), so it is counted only on demand.
      var place: RulePlace { source.place(of: span) }
    }

    /// A value from the evaluation.
    struct Step: Sendable {
      let place: RulePlace
      /// The expression in the file's text.
      let expression: String
      /// Its value, or the reason that it has none.
      let result: String
    }

    let isAllowed: Bool
    /// The evaluated rules, in order. Empty if no rule applies to the path and the method.
    let considered: [Considered]
    /// The rule that decided. Nil if the request is denied because no rule allowed it.
    let decision: Int?
    /// The values from the evaluation, if an explanation was requested.
    let steps: [Step]

    /// The place of the rule that decided.
    var decidedAt: RulePlace? { decision.map { considered[$0].place } }
  }

  extension RuleVerdict: CustomStringConvertible {
    /// A line for the verdict, a line for each evaluated rule, and the steps.
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
