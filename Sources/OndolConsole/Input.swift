// Parses requests: names and values of a query, members of a body. All of it comes from a network,
// so a route refuses anything that it does not know.

import Foundation
import Ondol
import OndolJSON

/// The part after `?`.
struct QueryItems: Sendable {
  private var items: [String: String] = [:]

  init(_ text: Substring) throws {
    for part in text.split(separator: "&") {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(pair[0]),
        let value = Self.decoded(pair.count > 1 ? pair[1] : "")
      else { throw ConsoleFailure.wrong("the query is not percent-encoded UTF-8") }
      guard items.updateValue(value, forKey: name) == nil else {
        throw ConsoleFailure.wrong("\"\(name)\" occurs twice in the query")
      }
    }
  }

  static func decoded(_ text: Substring) -> String? { String(text).removingPercentEncoding }

  /// Refuses names that the route does not know.
  func check(_ known: [String]) throws {
    for name in items.keys where !known.contains(name) {
      throw ConsoleFailure.wrong("\"\(name)\" means nothing here")
    }
  }

  subscript(name: String) -> String? { items[name] }

  func text(_ name: String) throws -> String {
    guard let text = items[name] else { throw ConsoleFailure.wrong("\"\(name)\" is missing") }
    return text
  }

  func number(_ name: String, or other: Int, in range: ClosedRange<Int>) throws -> Int {
    guard let text = items[name] else { return other }
    guard let number = Int(text), range.contains(number) else {
      throw ConsoleFailure.wrong("\"\(name)\" is a number from \(range)")
    }
    return number
  }
}

/// The members of a body, or of a watch.
struct Members: Sendable {
  private let members: [String: Value]

  init(_ members: [String: Value], known: [String]) throws {
    for name in members.keys where !known.contains(name) {
      throw ConsoleFailure.wrong("\"\(name)\" means nothing here")
    }
    self.members = members
  }

  init(_ bytes: [UInt8], known: [String]) throws {
    let members = try JSONReader.readRequest(
      bytes, documents: ["fields", "set", "values", "custom"])
    try self.init(members, known: known)
  }

  /// A value of the database, which may be null. Nil if it is absent.
  func value(_ name: String) -> Value? { members[name] }

  private func present(_ name: String) -> Value? {
    guard let value = members[name], value != .null else { return nil }
    return value
  }

  func text(_ name: String) throws -> String? {
    guard let value = present(name) else { return nil }
    guard let text = value.string else { throw ConsoleFailure.wrong("\"\(name)\" is a text") }
    return text
  }

  func needed(_ name: String) throws -> String {
    guard let text = try text(name) else { throw ConsoleFailure.wrong("\"\(name)\" is missing") }
    return text
  }

  /// A condition; nil for blanks. A condition longer than any that a person writes would take
  /// minutes.
  func condition(_ name: String) throws -> WhereExpression? {
    guard let text = try text(name), !text.allSatisfy(\.isWhitespace) else { return nil }
    guard text.utf8.count <= 32 << 10 else {
      throw ConsoleFailure.wrong("a condition has 32 KiB at most")
    }
    return try WhereExpression(text)
  }

  func boolean(_ name: String) throws -> Bool? {
    guard let value = present(name) else { return nil }
    guard case .boolean(let boolean) = value else {
      throw ConsoleFailure.wrong("\"\(name)\" is true or false")
    }
    return boolean
  }

  func number(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
    guard let value = present(name) else { return nil }
    guard let number = value.integer.flatMap(Int.init(exactly:)), range.contains(number) else {
      throw ConsoleFailure.wrong("\"\(name)\" is a whole number from \(range)")
    }
    return number
  }

  func texts(_ name: String) throws -> [String]? {
    guard let value = present(name) else { return nil }
    guard let elements = value.array, elements.count <= 1_000 else {
      throw ConsoleFailure.wrong("\"\(name)\" is a list")
    }
    return try elements.map { element in
      guard let text = element.string else {
        throw ConsoleFailure.wrong("\"\(name)\" is a list of texts")
      }
      return text
    }
  }

  func list(_ name: String, known: [String]) throws -> [Members]? {
    guard let value = present(name) else { return nil }
    guard let elements = value.array, elements.count <= 100 else {
      throw ConsoleFailure.wrong("\"\(name)\" is a list of at most 100")
    }
    return try elements.map { element in
      guard let members = element.map else {
        throw ConsoleFailure.wrong("\"\(name)\" is a list of objects")
      }
      return try Members(members, known: known)
    }
  }

  func fields(_ name: String) throws -> [String: Value]? {
    guard let value = present(name) else { return nil }
    guard let fields = value.map else { throw ConsoleFailure.wrong("\"\(name)\" is an object") }
    return fields
  }
}
