// Conditions on a command line: their meaning, that a printed condition reads back as the same, and
// that a mistake is pointed out.

import Ondol
import OndolJSON
import OndolTestKit
import Testing

@Suite struct `The where language` {
  @Test(arguments: [
    ("price >= 10 and kind in [\"a\", \"b\"]", "(price >= 10 and kind in [\"a\",\"b\"])"),
    ("a = 1 or b = 2 and c = 3", "(a = 1 or (b = 2 and c = 3))"),
    ("(a = 1 or b = 2) and c == 3", "((a = 1 or b = 2) and c = 3)"),
    ("NOT (a < 1 or b in [2])", "(a >= 1 and b not in [2])"),
    ("not not a != null", "a != null"),
    (
      "tags array-contains \"x\" or tags array-contains-any [1,2]",
      "(tags array-contains \"x\" or tags array-contains-any [1,2])"
    ),
    ("`odd name`.`5.5` starts-with \"한\"", "`odd name`.`5.5` starts-with \"한\""),
    ("`and` = true", "`and` = true"),
    ("이름 = \"온돌\"", "`이름` = \"온돌\""),
    ("__name__ > \"a\"", "__name__ > \"a\""),
    ("size.width<=1.5", "size.width <= 1.5"),
    ("price = 0.10m or price<-2.50M", "(price = 0.1m or price < -2.5m)"),
    ("price in [0.10m, -0.20m,3m, 1, 'm']", "price in [0.1m,-0.2m,3m,1,\"m\"]"),
    ("not price not in [1e-3m]", "price in [0.001m]"),
    ("rows array-contains [1m, [2.5m]]", "rows array-contains [1m,[2.5m]]"),
    ("rows array-contains-any [[0.5m],'5m', []]", "rows array-contains-any [[0.5m],\"5m\",[]]"),
    (
      "m = {'5m': -0.5m}", "m = {\"5m\":{\"$numberDecimal\":\"-0.5\"}}"
    ),
    (#"kind in ['a', "b's"]"#, #"kind in ["a","b's"]"#),
    (#"name = 'say "온돌", \'방\' \n'"#, #"name = "say \"온돌\", '방' \n""#),
    (
      #"name starts-with '한' and not (m = {'x': ['}', "'"]})"#,
      #"(name starts-with "한" and m != {"x":["}","'"]})"#
    ),
    (
      "name folded = 'Élan' and not b~natural < \"a2\"",
      "(name folded = \"Élan\" and b natural >= \"a2\")"
    ),
    (
      "text = \"a ) or ( \\\" b\" and map = {\"x\": [1, {\"y\": \"]\"}]}",
      "(text = \"a ) or ( \\\" b\" and map = {\"x\":[1,{\"y\":\"]\"}]})"
    ),
  ])
  func `It is read as it is meant`(text: String, printed: String) throws {
    let expression = try WhereExpression(text)
    #expect("\(expression)" == printed)
    #expect(try WhereExpression(printed) == expression)
  }

  @Test(arguments: [
    ("", 0, "a field is missing"), ("price", 5, "operator"), ("price >=", 8, "a value is missing"),
    ("price >= ten", 9, "quotes"), ("price >= 1x", 10, "not a value"),
    ("(a = 1", 6, "\")\""), ("a = 1)", 5, "must follow"), ("a = 1 b = 2", 6, "must follow"),
    ("and = 1", 0, "backquotes"), ("a in 1", 5, "array"), ("a not 1", 6, "\"in\""),
    ("`a = 1", 0, "not closed"), ("a. = 1", 2, "name"), ("a starts-with 1", 14, "text"),
    ("x = 1 and not a array-contains 1", 10, "negated"), ("a = [1, }", 8, "not a value"),
    ("a = \"x", 6, "not a value"), ("a = 'x", 6, "not a value"),
    ("a = 'x\"", 7, "not a value"), ("a ~ 1", 2, "operator"),
    ("a = 1.2.3m", 4, "not a decimal"), ("a in [1m, 1e200m]", 10, "not a decimal"),
    ("a in [1m, 2m 3]", 13, "not a value"), ("a = -m", 5, "not a value"),
    ("a = ['b\\'', \"\\x\"]", 14, "not a value"),
    ("a = 123456789012345678901234567890123456789m", 4, "38 digits"),
    ("a folded contains \"x\"", 9, "does not compare"), ("a folded = 1", 11, "quotes"),
    ("a natural starts-with \"1\"", 10, "does not compare"),
  ])
  func `A mistake is pointed at`(text: String, offset: Int, reason: String) {
    do throws(WhereError) {
      let expression = try WhereExpression(text)
      Issue.record("\(text) was read as \(expression)")
    } catch {
      #expect(error.offset == offset, "\(error)")
      #expect(error.reason.contains(reason), "\(error)")
    }
  }

  @Test func `The mark is below the place, also after wide characters`() {
    let error = #expect(throws: WhereError.self) { try WhereExpression("한글 = x") }
    #expect(error?.description.hasSuffix("\n  한글 = x\n         ^") == true)
  }

  @Test func `Deep nesting is refused, not followed`() {
    let text = String(repeating: "(", count: 100_000)
    #expect(throws: WhereError.self) { try WhereExpression(text) }
    let negations = String(repeating: "not ", count: 100_000) + "a = 1"
    #expect(throws: WhereError.self) { try WhereExpression(negations) }
  }

  @Test(arguments: Seeds.first(4))
  func `A printed expression reads back as the same`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<500 {
      let expression = Self.expression(&random, depth: 4)
      let text = "\(expression)"
      #expect(try WhereExpression(text) == expression, "seed \(seed): \(text)")
    }
  }

  @Test(arguments: Seeds.first(4)) func `Any bytes are read or refused`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let pieces = [
      "a", "`", ".", " ", "(", ")", "and", "or", "not", "in", "=", "<", "\"", "\\", "[", "]", "{",
      "}", ",", "1", "한", "array-contains", "\u{0}", "null",
    ]
    for _ in 0..<2_000 {
      let count = Int.random(in: 0...20, using: &random)
      let text = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }
        .joined(separator: Bool.random(using: &random) ? " " : "")
      guard let expression = try? WhereExpression(text) else { continue }
      #expect((try? WhereExpression("\(expression)")) == expression, "seed \(seed): \(text)")
    }
  }

  @Test func `Orders and fields are lists`() throws {
    let orders = try WhereParser.orders("price desc, `a b`.c asc,name")
    #expect(orders.map(\.isDescending) == [true, false, false])
    #expect(orders.map { "\($0.field)" } == ["price", "`a b`.c", "name"])
    let compared = try WhereParser.orders("name folded desc, b Natural, c~caseInsensitive asc")
    #expect(compared.map(\.comparison) == [.folded, .natural, .caseInsensitive])
    #expect(compared.map(\.isDescending) == [true, false, false])
    #expect(try WhereParser.orders("`folded` folded").map { "\($0.field)" } == ["folded"])
    #expect(
      try WhereParser.indexFields("a, name folded desc, b natural, tags[]")
        == ["a", "-name~folded", "b~natural", "tags[]"])
    #expect(throws: WhereError.self) { try WhereParser.orders("name~accents") }
    #expect(try WhereParser.fields("a , b.c").map { "\($0)" } == ["a", "b.c"])
    #expect(throws: WhereError.self) { try WhereParser.orders("price up") }
    #expect(throws: WhereError.self) { try WhereParser.fields("a,") }
  }

  @Test(arguments: [
    ("n >= 10 and n < 13", ["10", "11", "12"]), ("n = 3 or n = 5", ["3", "5"]),
    ("not n in [0,1] and n <= 3", ["2", "3"]), ("tags array-contains \"t7\"", ["17", "7"]),
    ("name starts-with \"name 1\" and not n != 1", ["1"]),
    ("inner.x = null and n > 17", ["18", "19"]),
    ("name folded in ['NAME 3', 'Náme 4'] or name natural > 'NAME 018'", ["19", "3", "4"]),
    ("__name__ in [\"4\", \"none\"]", ["4"]),
  ])
  func `A condition finds the described documents`(text: String, ids: [String]) async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for n in 0..<20 {
      let inner: [String: (any FieldContent)?] = ["x": nil]
      try await items.document("\(n)").setData([
        "n": n, "name": "name \(n)", "tags": ["t\(n % 10)"], "inner": inner,
      ])
    }
    let found = try await items.whereFilter(try WhereExpression(text).filter).getDocuments()
    #expect(found.documents.map(\.documentID).sorted() == ids)
    try await database.close()
  }

  // MARK: - Random expressions

  private static func expression(
    _ random: inout SeededRandom, depth: Int
  ) -> WhereExpression {
    if depth > 0, Bool.random(using: &random) {
      let left = expression(&random, depth: depth - 1)
      let right = expression(&random, depth: depth - 1)
      return Bool.random(using: &random) ? .and(left, right) : .or(left, right)
    }
    let names = ["a", "and", "NOT", "a b", "5", "한", "`", "a.b", "\\", "in", "desc"]
    let count = Int.random(in: 1...3, using: &random)
    let field = FieldPath((0..<count).map { _ in names.randomElement(using: &random) ?? "a" })
    let comparison = WhereExpression.Comparison.allCases.randomElement(using: &random) ?? .equal
    let operand: Value =
      switch comparison {
      case .isIn, .notIn, .arrayContainsAny:
        .array((0..<Int.random(in: 0...3, using: &random)).map { _ in value(&random) })
      case .startsWith, .contains, .equalIgnoringCase, .startsWithIgnoringCase,
        .containsIgnoringCase:
        .string("(\"한\\")
      default: value(&random)
      }
    return .field(field, comparison, operand)
  }

  private static func value(_ random: inout SeededRandom) -> Value {
    let all: [Value] = [
      .null, .boolean(true), .integer(-5), .integer(.max), .double(-0.5), .double(1e300),
      .string(""), .string("a \" ) or ( \\ \n 한"), .array([.integer(1), .string("]")]),
      .map(["x": .map(["}": .array([])])]), decimal(random.below(2_000) - 1_000),
      .array([.array([decimal(random.below(9)), .string("5m")]), .map(["5m": decimal(-5)])]),
    ]
    return all.randomElement(using: &random) ?? .null
  }

  /// A number of hundredths.
  private static func decimal(_ hundredths: Int) -> Value {
    DecimalValue("\(hundredths)e-2").map { .decimal($0) } ?? .null
  }
}
