// Lists that are proven, and lists that are not. A wrong "proven" shows documents to people who
// must not see them, so the tests combine random rules, queries and documents.

#if Server
  import OndolTestKit
  import Testing

  @testable import OndolServer

  /// A rule, the conditions of a query, and the result of the proof.
  struct RuleProofRow: Sendable, CustomTestStringConvertible {
    let rule: String
    let conditions: [RuleQuery.Condition]
    let proof: RuleProof

    init(_ rule: String, _ conditions: [RuleQuery.Condition], _ proof: RuleProof) {
      self.rule = rule
      self.conditions = conditions
      self.proof = proof
    }

    var testDescription: String { rule }
  }

  @Suite struct RuleProofTests {
    private typealias Condition = RuleQuery.Condition

    private static func field(_ name: String, _ test: Condition.Test) -> Condition {
      Condition(field: name.split(separator: ".").map(String.init), test: test)
    }

    private static let own = field("owner", .equal(.string("anna")))
    private static let mine = "resource.data.owner == request.auth.uid"

    static let rows = [
      RuleProofRow("true", [], .proven),
      RuleProofRow("false", [], .refuted),
      RuleProofRow("request.auth != null", [], .proven),
      RuleProofRow("request.auth.uid == 'ben'", [], .refuted),
      RuleProofRow(mine, [], .notProven),
      RuleProofRow(mine, [own], .proven),
      RuleProofRow(mine, [field("owner", .equal(.string("ben")))], .refuted),
      RuleProofRow(mine, [field("author", .equal(.string("anna")))], .notProven),
      RuleProofRow("\(mine) || resource.data.public", [own], .proven),
      RuleProofRow("\(mine) && resource.data.public", [own], .notProven),
      RuleProofRow("\(mine) && false", [], .refuted),
      RuleProofRow("!(resource.data.owner == 'ben')", [own], .proven),
      RuleProofRow("resource.data.owner in ['anna', 'ben']", [own], .proven),
      RuleProofRow(
        "resource.data.owner in ['anna', 'ben']",
        [field("owner", .oneOf([.string("ben"), .string("anna")]))], .proven),
      RuleProofRow(
        "resource.data.owner in ['anna']",
        [field("owner", .oneOf([.string("ben"), .string("anna")]))], .notProven),
      RuleProofRow("resource.data.age >= 18", [field("age", .greaterOrEqual(.int(18)))], .proven),
      RuleProofRow("resource.data.age > 18", [field("age", .greaterOrEqual(.int(18)))], .notProven),
      RuleProofRow("18 < resource.data.age", [field("age", .greater(.int(18)))], .proven),
      RuleProofRow("resource.data.age < 18", [field("age", .greater(.int(18)))], .refuted),
      RuleProofRow("resource.data.age != 17", [field("age", .greater(.int(17)))], .proven),
      // A query finds NaN below 18, but a rule does not.
      RuleProofRow("resource.data.age < 18", [field("age", .less(.int(18)))], .notProven),
      RuleProofRow(
        "resource.data.age < 18", [field("age", .less(.int(18))), field("age", .greater(.int(0)))],
        .proven),
      RuleProofRow("resource.data.name < 'n'", [field("name", .less(.string("m")))], .proven),
      RuleProofRow("resource.data.age < 18", [field("age", .less(.string("x")))], .notProven),
      RuleProofRow("resource.data.age == 5", [field("age", .equal(.int(5)))], .proven),
      RuleProofRow("resource.data.age is int", [field("age", .equal(.int(5)))], .notProven),
      RuleProofRow("resource.data.age is number", [field("age", .equal(.int(5)))], .proven),
      RuleProofRow("resource.data.age / 2 == 2", [field("age", .equal(.int(5)))], .notProven),
      RuleProofRow("resource.data.owner is string", [own], .proven),
      RuleProofRow("resource.data.owner.size() == 4", [own], .proven),
      RuleProofRow("'owner' in resource.data", [own], .proven),
      RuleProofRow("'other' in resource.data", [own], .notProven),
      RuleProofRow("resource.data.get('owner', '') == 'anna'", [own], .proven),
      RuleProofRow("resource.data.get('other', 1) == 1", [own], .notProven),
      RuleProofRow(
        "'red' in resource.data.tags", [field("tags", .contains(.string("red")))], .proven),
      RuleProofRow(
        "'blue' in resource.data.tags", [field("tags", .contains(.string("red")))], .notProven),
      RuleProofRow(
        "resource.data.tags.hasAny(['red', 'blue'])",
        [field("tags", .containsAny([.string("blue"), .string("red")]))], .proven),
      RuleProofRow(
        "resource.data.tags.hasAny(['red'])",
        [field("tags", .containsAny([.string("blue"), .string("red")]))], .notProven),
      RuleProofRow(
        "resource.data.tags.hasAll(['red'])", [field("tags", .contains(.string("red")))], .proven),
      RuleProofRow(
        "resource.data.address.city == 'Ulm'", [field("address.city", .equal(.string("Ulm")))],
        .proven),
      RuleProofRow(
        "resource.data.address is map", [field("address.city", .equal(.string("Ulm")))], .proven),
      RuleProofRow("resource.data.gone != 1", [field("gone", .notEqual(.int(1)))], .proven),
      RuleProofRow("resource.data.gone == null", [field("gone", .equal(.null))], .proven),
      RuleProofRow("resource != null", [], .proven),
      RuleProofRow("resource.data != null", [], .proven),
      RuleProofRow("request.query.limit <= 20", [], .proven),
      RuleProofRow("request.query.limit <= 5", [], .refuted),
      RuleProofRow("request.query.offset == 0", [], .refuted),
      RuleProofRow("item == 'lamp'", [], .notProven),
      RuleProofRow("resource.id == 'lamp'", [], .notProven),
      RuleProofRow("request.path[3] == 'items'", [], .notProven),
      RuleProofRow("request.method == 'list'", [], .proven),
      RuleProofRow("get(/databases/(default)/documents/users/$(item)).data.x", [], .notProven),
      RuleProofRow(
        "get(/databases/(default)/documents/users/$(request.auth.uid)).data.role == 'admin'", [],
        .proven),
      RuleProofRow("[resource.data.owner] == ['anna']", [], .notProven),
      RuleProofRow("resource.data.x ? true : true", [], .notProven),
      RuleProofRow("!('path' in request)", [], .notProven),
      RuleProofRow("resource.data.__name__ == 1", [field("__name__", .equal(.int(1)))], .notProven),
      RuleProofRow("resource.data.x == resource.data.x", [], .notProven),
    ]

    @Test(arguments: rows)
    func `A list is proven by its query's conditions`(row: RuleProofRow) throws {
      let rules = try RuleSet(parsing: RuleStage.file(row.rule))
      var query = RuleQuery(
        collection: "items", conditions: row.conditions, time: try #require(RuleStage.now))
      query.auth = RuleStage.anna
      query.limit = 10
      #expect(rules.proof(of: query, documents: RuleStage.documents) == row.proof)
    }

    /// A block, a parent, a collection, whether it is a group, and the result of the proof.
    static let places: [(String, String, String?, Bool, RuleProof)] = [
      ("match /items/{id} { allow list; }", "", "items", false, .proven),
      ("match /items/{id} { allow get; }", "", "items", false, .refuted),
      ("match /items/{id} { allow list; }", "", "others", false, .refuted),
      ("match /items/{id} { allow list; }", "", "items", true, .notProven),
      ("match /items/lamp { allow list; }", "", "items", false, .notProven),
      ("match /{all=**} { allow list; }", "", "items", true, .proven),
      ("match /{path=**}/items/{id} { allow list; }", "", "items", true, .proven),
      ("match /{path=**}/items/{id} { allow list; }", "", "others", true, .notProven),
      ("match /{path=**}/items/{id} { allow list; }", "", nil, true, .notProven),
      ("match /{all=**} { allow list; }", "", nil, true, .proven),
      (
        "match /rooms/{r}/items/{id} { allow list: if r == 'a'; }", "rooms/a", "items", false,
        .proven
      ),
      (
        "match /rooms/{r}/items/{id} { allow list: if r == 'a'; }", "rooms/b", "items", false,
        .refuted
      ),
      (
        "match /rooms/{r}/items/{id} { allow list: if r == 'a'; }", "rooms/a", "items", true,
        .notProven
      ),
      ("match /rooms/{r}/{x=**} { allow list: if r == 'a'; }", "rooms/a", "items", true, .proven),
      (
        "match /rooms/{r}/{x=**} { allow list: if x == /a/b; }", "rooms/a", "items", true,
        .notProven
      ),
    ]

    @Test(arguments: places)
    func `A list is proven if a block matches all of its documents`(
      block: String, parent: String, collection: String?, isGroup: Bool, proof: RuleProof
    ) throws {
      let text =
        "rules_version = '2'; service cloud.firestore { "
        + "match /databases/{database}/documents { \(block) } }"
      let query = RuleQuery(
        parent: parent.split(separator: "/").map(String.init), collection: collection,
        isGroup: isGroup, time: try #require(RuleStage.now))
      let found = try RuleSet(parsing: text).proof(of: query, documents: NoRuleDocuments())
      #expect(found == proof)
    }

    @Test(arguments: Seeds.first(20))
    func `A proof holds for every document of the answer`(seed: UInt64) throws {
      var random = SeededRandom(seed: seed)
      var proven = 0
      for _ in 0..<120 {
        let conditions = (0..<random.below(4)).map { _ in RandomRules.condition(&random) }
        let rule = RandomRules.expression(&random, conditions, depth: 3)
        let rules = try RuleSet(parsing: RuleStage.file(rule))
        var query = RuleQuery(
          collection: "items", conditions: conditions, time: try #require(RuleStage.now))
        query.auth = RuleStage.anna
        let proof = rules.proof(of: query, documents: NoRuleDocuments())
        if proof == .proven { proven += 1 }
        for _ in 0..<40 {
          let fields = RandomRules.document(&random, conditions)
          guard conditions.allSatisfy({ RandomRules.holds($0, fields) }) else { continue }
          var request = try RuleStage.request(.list)
          request.resource = .document(RuleDocument(path: request.path, data: .map(fields)))
          request.query = query.requestQuery
          let isAllowed = rules.verdict(request, documents: NoRuleDocuments()).isAllowed
          let isRight = proof == .notProven || isAllowed == (proof == .proven)
          #expect(
            isRight, "ONDOL_SEED=\(seed): \(rule) with \(conditions) on \(RuleValue.map(fields))")
        }
      }
      #expect(proven > 0)
    }
  }
#endif
