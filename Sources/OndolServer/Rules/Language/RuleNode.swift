// A checked expression. Every name is resolved to the place of its value, every function and method
// is known with its number of arguments, and every constant pattern is compiled. So an evaluation
// looks up nothing by name except fields of documents.

#if Server
  import Ondol

  /// An expression that is ready for evaluation. It is a class, because the uses of a `let` share
  /// it.
  final class RuleNode: Sendable {
    enum Form: Sendable {
      case constant(RuleValue)
      case request
      case requestField(RuleRequestField)
      case resource
      /// A wildcard of the matched path.
      case capture(Int)
      /// A parameter of the function.
      case parameter(Int)
      /// A `let` of the function, evaluated at its first use.
      case variable(Int, RuleNode)
      case member(RuleNode, String)
      case method(RuleMethod, RuleNode, [RuleNode])
      case builtin(RuleBuiltin, [RuleNode])
      /// `matches` with a constant pattern.
      case matches(RuleNode, RegularExpression)
      case call(RuleFunction, [RuleNode])
      case index(RuleNode, RuleNode)
      case range(RuleNode, from: RuleNode, to: RuleNode)
      case not(RuleNode)
      case negated(RuleNode)
      case binary(RuleOperator, RuleNode, RuleNode)
      case all([RuleNode])
      case any([RuleNode])
      case choice(RuleNode, RuleNode, RuleNode)
      case isType(RuleNode, RuleType)
      case list([RuleNode])
      case map([(key: RuleNode, value: RuleNode)])
      case path([RulePathPart<RuleNode>])
    }

    let form: Form
    let span: RuleSpan

    init(_ form: Form, _ span: RuleSpan) {
      self.form = form
      self.span = span
    }
  }

  /// A checked function.
  final class RuleFunction: Sendable {
    let name: String
    let parameterCount: Int
    let letCount: Int
    let result: RuleNode
    /// The depth of function calls from here down.
    let callDepth: Int

    init(name: String, parameterCount: Int, letCount: Int, result: RuleNode, callDepth: Int) {
      self.name = name
      self.parameterCount = parameterCount
      self.letCount = letCount
      self.result = result
      self.callDepth = callDepth
    }
  }

  /// A checked `match`.
  struct RuleMatch: Sendable {
    enum Segment: Sendable {
      case literal(String)
      case single(slot: Int)
      case rest(slot: Int)
    }

    let segments: [Segment]
    let allows: [RuleAllow]
    let matches: [RuleMatch]
  }

  struct RuleAllow: Sendable {
    let methods: RuleMethods
    let condition: RuleNode?
    let span: RuleSpan
  }

  /// The members of `request`.
  enum RuleRequestField: String, Sendable, CaseIterable {
    case auth
    case method
    case path
    case query
    case resource
    case time
  }

  /// Methods of values. Several types may have one name; the call distinguishes them.
  enum RuleMethod: String, Sendable {
    case addedKeys, affectedKeys, bind, changedKeys, concat, date, day, dayOfWeek, dayOfYear, diff
    case difference, distance, get, hasAll, hasAny, hasOnly, hours, intersection, join, keys
    case latitude, longitude, lower, matches, minutes, month, nanos, removeAll, removedKeys
    case replace, seconds, size, split, time, toBase64, toHexString, toMillis, toSet, toUtf8, trim
    case unchangedKeys, union, upper, values, year

    var argumentCounts: ClosedRange<Int> {
      switch self {
      case .bind, .concat, .diff, .difference, .distance, .hasAll, .hasAny, .hasOnly, .intersection,
        .join, .matches, .removeAll, .split, .union:
        1...1
      case .get, .replace: 2...2
      default: 0...0
      }
    }
  }

  /// Functions of the language itself.
  enum RuleBuiltin: String, Sendable {
    case bool, debug, float, int, path, string
    case get, exists, getAfter, existsAfter
    case firestoreGet = "firestore.get"
    case firestoreExists = "firestore.exists"
    case timestampDate = "timestamp.date"
    case timestampValue = "timestamp.value"
    case durationAbs = "duration.abs"
    case durationTime = "duration.time"
    case durationValue = "duration.value"
    case latlngValue = "latlng.value"
    case abs = "math.abs"
    case ceil = "math.ceil"
    case floor = "math.floor"
    case isInfinite = "math.isInfinite"
    case isNaN = "math.isNaN"
    case pow = "math.pow"
    case round = "math.round"
    case sqrt = "math.sqrt"
    case md5 = "hashing.md5"
    case sha256 = "hashing.sha256"
    case crc32 = "hashing.crc32"
    case crc32c = "hashing.crc32c"

    /// The namespaces of functions.
    static let namespaces: Set<String> = [
      "duration", "firestore", "hashing", "latlng", "math", "timestamp",
    ]

    var argumentCount: Int {
      switch self {
      case .durationTime: 4
      case .timestampDate: 3
      case .durationValue, .latlngValue, .pow: 2
      default: 1
      }
    }

    /// The service, if only one has it.
    var service: RuleService? {
      switch self {
      case .get, .exists, .getAfter, .existsAfter: .firestore
      case .firestoreGet, .firestoreExists: .storage
      default: nil
      }
    }
  }

  /// The services that rules are for.
  enum RuleService: String, Sendable, Hashable {
    case firestore = "cloud.firestore"
    case storage = "firebase.storage"
  }
#endif
