// Conditions as people write them. Any text is a condition, or is refused with a place inside it.
// The text of a condition reads back as the same condition. A database can run every parsed
// condition: it returns what a scan returns, or refuses the argument.

import Ondol
import OndolEngine

@testable import OndolJSON

enum WhereTarget: FuzzTarget {
  static let name = "where"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    let text =
      input.flag() ? String(decoding: input.rest(), as: UTF8.self) : Self.text(&input)
    read(text)
    if let orders = try? WhereParser.orders(text) { demand(!orders.isEmpty, "\(text): no order") }
    if let fields = try? WhereParser.fields(text) { demand(!fields.isEmpty, "\(text): no field") }
  }

  private static func text(_ input: inout FuzzInput) -> String {
    let pieces = [
      "a", "b", "c", "m.x", "t", "`a.b`", "(", ")", "and", "or", "not", "in", "not in", "=", "==",
      "!=", "<", "<=", ">", ">=", "array-contains", "array-contains-any", "starts-with", "1",
      "-2.5", "\"a\"", "\"é\"", "[1, \"a\"]", "[]", "null", "true", "{\"$date\": 0}", "{\"x\": 1}",
      "{\"$numberDouble\": \"NaN\"}", "__name__", ",", "desc", "\u{301}", "AND", "`or`",
    ]
    return (0..<input.below(24)).map { _ in input.pick(pieces) }
      .joined(separator: input.oneIn(6) ? "" : " ")
  }

  private static func read(_ text: String) {
    let expression: WhereExpression
    do throws(WhereError) {
      expression = try WhereExpression(text)
    } catch {
      demand(
        (0...text.utf8.count).contains(error.offset), "\(error.reason) at \(error.offset)")
      return demand(error.description.contains(error.reason), "an error without its reason")
    }
    let written = expression.description
    let again = try? WhereExpression(written)
    demand(
      again?.description.utf8.elementsEqual(written.utf8) == true,
      "\(text) as \(written) comes back as \(again?.description ?? "nothing")")
    ask(expression)
  }

  /// Runs it in both databases, which have the same documents but different indexes.
  private static func ask(_ expression: WhereExpression) {
    var found: [[String]?] = []
    for snapshot in [QueryWorld.shared.plain, QueryWorld.shared.indexed] {
      let query = snapshot.database.collection("shop").whereFilter(expression.filter)
      do throws(DatabaseError) {
        found.append(
          try snapshot.getDocuments(query).documents.map(\.reference.path).sorted())
      } catch {
        demand(error.code == .invalidArgument, "\(expression) throws \(error)")
        found.append(nil)
      }
    }
    demand(found[0] == found[1], "\(expression) gives \(found[0] as Any) and \(found[1] as Any)")
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    let texts = [
      "a = 1", "a >= 1 and b < \"x\"", "not (a in [1, 2] or m.x = null)", "t array-contains 2",
      "`a.b` starts-with \"é\" or c != {\"$numberDouble\": \"NaN\"}", "a desc, b, m.x asc",
    ]
    var chance = Chance(15)
    return texts.map { [1] + $0.utf8 } + [20, 60].map { [0] + chance.bytes($0) }
  }
}
