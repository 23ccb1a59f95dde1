// The values of rule conditions. They have Firebase's types and not the database's, so that rules
// can be read, tested and explained without a database.

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
    /// A document with its path: `resource`, `request.resource` or the result of `get`.
    indirect case document(RuleDocument)
    /// The result of `diff`.
    indirect case difference(RuleDifference)
    /// An unknown value during the proof of a list. It is never inside another value.
    indirect case unknown(RuleUnknown)
  }

  /// A document as rules see it.
  struct RuleDocument: Sendable {
    /// The whole path, such as `/databases/(default)/documents/items/lamp`.
    var path: [String]
    /// A map of the document's fields.
    var data: RuleValue

    var id: String { path.last ?? "" }
  }

  /// A place on the earth, in degrees.
  struct RuleLatLng: Sendable, Hashable {
    var latitude: Double
    var longitude: Double
  }

  /// The differences between two maps, by their keys.
  struct RuleDifference: Sendable, Hashable {
    var added: Set<RuleValue> = []
    var removed: Set<RuleValue> = []
    var changed: Set<RuleValue> = []
    var unchanged: Set<RuleValue> = []
  }

  /// What the proof of a list knows about an unavailable value.
  enum RuleUnknown: Sendable {
    /// Nothing: it may be any value, or a failure.
    case anything
    /// `resource`: a document with an unknown path.
    case resource
    /// A field of `resource.data`, by its path; all fields if the path is empty.
    case field([String])
  }

  /// The types for `is`.
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
    /// Whether `value is type` holds. For an unknown value, nothing holds.
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

    /// The type's name in error messages.
    var typeName: String {
      switch self {
      case .document: "resource"
      case .difference: "map_diff"
      case .unknown: "unknown"
      default: RuleType.allCases.first { isOf($0) }?.rawValue ?? "unknown"
      }
    }
  }

  /// Whether two texts have the same bytes. Swift's own comparison treats different spellings of a
  /// character as equal, and an account must not get data that belongs to another spelling of its
  /// id.
  func isExactly(_ one: String, _ other: String) -> Bool {
    one == other && one.utf8.elementsEqual(other.utf8)
  }

  extension [String: RuleValue] {
    /// Returns the value of the key with exactly these bytes.
    func field(_ name: String) -> RuleValue? {
      guard let index = index(forKey: name), isExactly(self[index].key, name) else { return nil }
      return self[index].value
    }
  }
#endif
