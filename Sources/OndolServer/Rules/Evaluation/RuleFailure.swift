// Why an expression has no value. A failure denies, unless the other side of && or || decides. A
// failure from a limit ends the whole evaluation.

#if Server
  enum RuleFailure: Error, Sendable, Hashable {
    /// A missing member or key.
    case noMember(String)
    /// A member of null.
    case null(String)
    /// A missing document that `get` reads.
    case noDocument
    /// An operation that these types do not have.
    case wrongType(String)
    case overflow
    case divisionByZero
    case outOfRange
    /// An invalid argument, and which.
    case invalid(String)
    /// An unreadable document, and why.
    case unreadable(String)
    case tooManyExpressions
    case tooManyDocuments
    case tooDeep
    case tooMuchWork

    /// Whether the failure ends the evaluation.
    var isFinal: Bool {
      switch self {
      case .unreadable, .tooManyExpressions, .tooManyDocuments, .tooDeep, .tooMuchWork: true
      default: false
      }
    }
  }

  extension RuleFailure: CustomStringConvertible {
    var description: String {
      switch self {
      case .noMember(let name): "there is no \"\(name)\""
      case .noDocument: "the document does not exist"
      case .null(let name): "null has no \"\(name)\""
      case .wrongType(let operation): "\(operation) is not for these types"
      case .overflow: "the number is beyond 64 bits"
      case .divisionByZero: "a division by zero"
      case .outOfRange: "an index is out of range"
      case .invalid(let what): what
      case .unreadable(let reason): "a document could not be read: \(reason)"
      case .tooManyExpressions:
        "a request evaluates at most \(RuleEvaluation.mostExpressions) expressions"
      case .tooManyDocuments: "a request reads at most \(RuleEvaluation.mostDocuments) documents"
      case .tooDeep: "the evaluation is nested too deep"
      case .tooMuchWork: "the values are too large for the rules' work on them"
      }
    }
  }
#endif
