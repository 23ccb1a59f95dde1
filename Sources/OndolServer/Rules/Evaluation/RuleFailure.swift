// Why an expression has no value. A failure denies, unless the other side of && or || decides; one
// that comes from a limit ends the whole evaluation.

#if Server
  enum RuleFailure: Error, Sendable, Hashable {
    /// A member or a key that is not there.
    case noMember(String)
    /// A member of null.
    case null(String)
    /// A document that `get` asks for and that is not there.
    case noDocument
    /// Values for which there is no such operation.
    case wrongType(String)
    case overflow
    case divisionByZero
    case outOfRange
    /// An argument without a meaning, and which.
    case invalid(String)
    /// A document could not be read, and why.
    case unreadable(String)
    case tooManyExpressions
    case tooManyDocuments
    case tooDeep
    case tooMuchWork

    /// Whether nothing after it may decide.
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
