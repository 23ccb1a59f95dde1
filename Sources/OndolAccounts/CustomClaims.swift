// Custom claims: roles and levels of access that go into each token of an account. Every reader of
// a token must find one value under each name, and none under the names that the token uses itself.
// So the library parses the JSON before it stores it, and stores one form of it, with each name
// once.

internal import Foundation

/// An administrator's claims about an account, for rules and tokens: a small JSON object.
///
/// ```swift
/// let claims = try CustomClaims(["admin": true])
/// try await accounts.setCustomClaims(claims, of: uid)
/// try account.customClaims.decode(as: [String: Bool].self)["admin"]
/// ```
///
/// The rules are Firebase's: at most 1,000 bytes, and no names that ID tokens use themselves:
/// https://firebase.google.com/docs/auth/admin/custom-claims. Every token carries the claims, so
/// keep all other data about a person in documents.
public struct CustomClaims: Sendable, Hashable, CustomStringConvertible {
  /// The most bytes of JSON that claims may have.
  public static let maximumBytes = 1_000
  /// Names that ID tokens use themselves: those of OpenID Connect and Firebase's own.
  public static let reservedNames: Set<String> = [
    "acr", "amr", "at_hash", "aud", "auth_time", "azp", "c_hash", "cnf", "exp", "firebase", "iat",
    "iss", "jti", "nbf", "nonce", "sub",
  ]
  /// No claims.
  public static let none = CustomClaims(checked: "{}")

  /// The deepest nesting of objects and arrays. A parser that recurses needs a bound.
  private static let mostNesting = 32

  /// A JSON object without spaces, with its names in order and each name once.
  public let json: String

  /// Whether there are none.
  public var isEmpty: Bool { json == "{}" }

  /// The JSON.
  public var description: String { json }

  /// Claims from JSON.
  ///
  /// - Parameter json: an object. If it has a name twice, the claims have one of the values.
  /// - Throws: `.claimsTooLarge` for more than `maximumBytes`, `.invalidClaims` for what is no
  ///   object or is nested more than 32 deep, `.reservedClaim` for one of `reservedNames`.
  /// - Complexity: O(bytes).
  public init(json: String) throws(AuthError) {
    guard json.utf8.count <= Self.maximumBytes else {
      throw AuthError(.claimsTooLarge, "claims must have at most \(Self.maximumBytes) bytes")
    }
    guard Self.nesting(of: json) <= Self.mostNesting,
      let members = try? JSONDecoder().decode([String: JSONTree].self, from: Data(json.utf8))
    else { throw AuthError(.invalidClaims, "claims must be a JSON object") }
    try self.init(members)
  }

  /// Claims from a value.
  ///
  /// - Parameter value: a value that encodes as a JSON object, such as a dictionary or a structure.
  /// - Throws: as `init(json:)`.
  /// - Complexity: O(bytes).
  public init(_ value: some Encodable) throws(AuthError) {
    guard let data = try? JSONEncoder().encode(value) else {
      throw AuthError(.invalidClaims, "the claims cannot be written as JSON")
    }
    try self.init(json: String(decoding: data, as: UTF8.self))
  }

  private init(_ members: [String: JSONTree]) throws(AuthError) {
    if let name = members.keys.filter(Self.reservedNames.contains).min() {
      throw AuthError(.reservedClaim, "tokens use the name \(name) themselves; choose another")
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(members) else {
      throw AuthError(.invalidClaims, "the claims cannot be written as JSON")
    }
    json = String(decoding: data, as: UTF8.self)
  }

  /// Claims that were stored; none if they are damaged.
  init(stored: String?) {
    self = stored.flatMap { try? CustomClaims(json: $0) } ?? .none
  }

  private init(checked: String) { json = checked }

  /// Decodes the claims.
  ///
  /// - Parameter type: a type that a JSON object decodes to, such as `[String: Bool]`.
  /// - Throws: `.invalidClaims` when the claims do not fit the type.
  /// - Complexity: O(bytes).
  public func decode<Claims: Decodable>(
    as type: Claims.Type = Claims.self
  ) throws(AuthError) -> Claims {
    do {
      return try JSONDecoder().decode(type, from: Data(json.utf8))
    } catch {
      throw AuthError(.invalidClaims, "the claims do not fit the type \(type)")
    }
  }

  /// The stored form: nil for no claims.
  var stored: String? { isEmpty ? nil : json }

  /// The deepest nesting of objects and arrays in a text that may not be JSON.
  private static func nesting(of json: String) -> Int {
    var (depth, deepest, isInText, isEscaped) = (0, 0, false, false)
    for byte in json.utf8 {
      switch byte {
      case _ where isEscaped: isEscaped = false
      case UInt8(ascii: "\\") where isInText: isEscaped = true
      case UInt8(ascii: "\""): isInText.toggle()
      case _ where isInText: break
      case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      default: break
      }
      deepest = max(deepest, depth)
    }
    return deepest
  }
}

/// Any JSON value.
private enum JSONTree: Codable {
  case null
  case bool(Bool)
  case integer(Int64)
  case natural(UInt64)
  case number(Double)
  case text(String)
  case array([JSONTree])
  case object([String: JSONTree])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(UInt64.self) {
      self = .natural(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .text(value)
    } else if let value = try? container.decode([JSONTree].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSONTree].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .natural(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .text(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}
