// The values that conditions of rules compute with. They are Firebase's types and none of the
// database's, so that rules can be read, tested and explained without a database.

#if Server
  /// A value of the rules language.
  enum RuleValue: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case float(Double)
    case string(String)
    case bytes([UInt8])
    case list([RuleValue])
    case map([String: RuleValue])
    case set(Set<RuleValue>)
    case timestamp(RuleTimestamp)
    case duration(RuleDuration)
    case path([String])
    case latlng(RuleLatLng)
    /// A document with its path: `resource`, `request.resource` and what `get` answers.
    indirect case document(RuleDocument)
    /// What `diff` answers.
    indirect case difference(RuleDifference)
    /// What is not known while a list is proven. It is never inside another value.
    indirect case unknown(RuleUnknown)
  }

  /// A document as rules see it.
  struct RuleDocument: Sendable {
    /// The whole path, as in `/databases/(default)/documents/items/lamp`.
    var path: [String]
    /// A map of its fields.
    var data: RuleValue

    var id: String { path.last ?? "" }
  }

  /// A place on the earth, in degrees.
  struct RuleLatLng: Sendable, Hashable {
    var latitude: Double
    var longitude: Double
  }

  /// How one map differs from another, by its keys.
  struct RuleDifference: Sendable, Hashable {
    var added: Set<RuleValue> = []
    var removed: Set<RuleValue> = []
    var changed: Set<RuleValue> = []
    var unchanged: Set<RuleValue> = []
  }

  /// What the proof of a list knows of a value that it does not have.
  enum RuleUnknown: Sendable {
    /// Nothing: any value, or a failure.
    case anything
    /// `resource`: a document of which the path is not known.
    case resource
    /// A field of `resource.data`, by its path; all of the fields when the path is empty.
    case field([String])
  }

  /// The types that `is` tests for.
  enum RuleType: String, Sendable, CaseIterable {
    case bool
    case bytes
    case duration
    case float
    case int
    case latlng
    case list
    case map
    case null
    case number
    case path
    case set
    case string
    case timestamp
  }

  extension RuleValue {
    /// Whether `value is type` holds. Nothing is known of an unknown value.
    func isOf(_ type: RuleType) -> Bool {
      switch self {
      case .null: type == .null
      case .bool: type == .bool
      case .int: type == .int || type == .number
      case .float: type == .float || type == .number
      case .string: type == .string
      case .bytes: type == .bytes
      case .list: type == .list
      case .map, .document: type == .map
      case .set: type == .set
      case .timestamp: type == .timestamp
      case .duration: type == .duration
      case .path: type == .path
      case .latlng: type == .latlng
      case .difference, .unknown: false
      }
    }

    var isUnknown: Bool { if case .unknown = self { true } else { false } }

    /// What an error message calls the type.
    var typeName: String {
      switch self {
      case .document: "resource"
      case .difference: "map_diff"
      case .unknown: "unknown"
      default: RuleType.allCases.first { isOf($0) }?.rawValue ?? "unknown"
      }
    }
  }

  /// Whether two texts have the same bytes. Swift's own comparison takes different spellings of a
  /// character for one, and an account must not get what belongs to another spelling of its id.
  func isExactly(_ one: String, _ other: String) -> Bool {
    one == other && one.utf8.elementsEqual(other.utf8)
  }

  extension [String: RuleValue] {
    /// The value of the key with exactly these bytes.
    func field(_ name: String) -> RuleValue? {
      guard let index = index(forKey: name), isExactly(self[index].key, name) else { return nil }
      return self[index].value
    }
  }
#endif
