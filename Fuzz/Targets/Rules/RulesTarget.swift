// Rules files of any text, and patterns on any text. A file is valid, or is refused with a place
// inside it. An explanation decides as the plain evaluation does. A proof for a list holds for a
// document that the list finds. A pattern that matches a whole text also matches a part of it.

#if Server
  @testable import Ondol
  @testable import OndolServer

  enum RulesTarget: FuzzTarget {
    static let name = "rules"

    static func run(_ bytes: [UInt8]) {
      var input = FuzzInput(bytes)
      switch input.below(4) {
      case 0: file(String(decoding: input.rest(), as: UTF8.self))
      case 1: file(around(condition: String(decoding: input.rest(), as: UTF8.self)))
      case 2: tree(String(decoding: input.rest(), as: UTF8.self))
      default: pattern(&input)
      }
    }

    static func seeds() -> [[UInt8]] {
      let condition = """
        request.auth.uid == resource.data.owner && (exists(/databases/$(database)/documents/u/a) \
        || resource.data.tags[0:1].hasAny(['a']) ? 'a'.matches('[a-z]+|(?i)b{2,3}') : \
        request.resource.data.diff(resource.data).affectedKeys().hasOnly(['n']))
        """
      let functions = """
        function f(x) { let y = {'a': [1.5, b'\\x00', null]}; return y.a[0] % 2 is int || x in y; }
        """
      let tree = """
        {"rules": {".read": "auth != null && data.child('a/b').val() === now", // one
        "$user": {".write": "$user == auth.uid ? true : !newData.exists()", ".indexOn": ["a"],
        ".validate": "newData.hasChildren(['a']) && newData.val().matches(/^[a-z]+$/i)"}}}
        """
      return [
        [0] + Array((functions + around(condition: "f(item)")).utf8), [1] + Array(condition.utf8),
        [2] + Array(tree.utf8), [3, 4] + Array("aab(a|b*)*?[^c-d]\\w{2}$".utf8),
      ]
    }

    private static func around(condition: String) -> String {
      """
      service cloud.firestore { match /databases/{database}/documents/items/{item} {
        allow read, write: if \(condition); } }
      """
    }

    // MARK: - Firestore's and Storage's

    private static let fields: [String: RuleValue] = [
      "owner": .string("anna"), "tags": .list([.string("a"), .int(1)]), "n": .float(1.5),
    ]

    private static func file(_ text: String) {
      let rules: RuleSet
      do throws(RuleError) {
        rules = try RuleSet(parsing: text)
      } catch {
        return check(error, in: text)
      }
      guard let time = RuleTimestamp(milliseconds: 1_700_000_000_000) else { return }
      let path = RuleRequest.firestore(["items", "lamp"])
      let document = RuleValue.document(RuleDocument(path: path, data: .map(fields)))
      let auth = RuleValue.map(["uid": .string("anna"), "token": .map([:])])
      var query = RuleQuery(
        collection: "items",
        conditions: fields.map { RuleQuery.Condition(field: [$0], test: .equal($1)) }, time: time)
      query.auth = auth
      let proof = rules.proof(of: query, documents: NoRuleDocuments())
      for method in [RuleMethods.list, .get, .create, .update, .delete] {
        let request = RuleRequest(
          service: .firestore, method: method, path: path, auth: auth, time: time,
          resource: document, newResource: method.isSubset(of: .read) ? .null : document,
          query: query.requestQuery)
        let verdict = rules.verdict(request, documents: NoRuleDocuments())
        let explained = rules.verdict(request, documents: NoRuleDocuments(), explain: true)
        demand(verdict.isAllowed == explained.isAllowed, "\(text): \(verdict) and \(explained)")
        // A limit may end only one of them.
        let isLimited = verdict.considered.contains {
          if case .failed(let failure) = $0.outcome { failure.isFinal } else { false }
        }
        guard method == .list, !isLimited else { continue }
        demand(proof != .proven || verdict.isAllowed, "\(text) is proven: \(explained)")
        demand(proof != .refuted || !verdict.isAllowed, "\(text) is refuted: \(explained)")
      }
    }

    private static func check(_ error: RuleError, in text: String) {
      let lines = text.utf8.count { $0 == UInt8(ascii: "\n") } + 1
      demand((1...lines).contains(error.place.line), "\(text): \(error)")
      demand(!error.message.isEmpty, "\(text): an error without a reason")
    }

    // MARK: - A tree's

    private struct Tree: RuleTree {
      func content(at path: [String]) throws -> RuleTreeContent? {
        path.count < 2 ? .branch : path.count == 2 ? .leaf(.string("a")) : nil
      }

      func priority(at path: [String]) throws -> RuleValue { .int(Int64(path.count)) }

      func childNames(at path: [String]) throws -> [String] { path.count < 2 ? ["a", "b"] : [] }
    }

    private static func tree(_ text: String) {
      let rules: TreeRules
      do throws(RuleError) {
        rules = try TreeRules(parsing: text)
      } catch {
        return check(error, in: text)
      }
      guard let now = RuleTimestamp(milliseconds: 1_700_000_000_000) else { return }
      let auth = RuleValue.map(["uid": .string("a")])
      for path in [[], ["a"], ["a", "b"]] {
        let verdicts = [false, true].map { explain in
          rules.write(
            at: path, before: NoRuleTree(), after: Tree(), auth: auth, now: now, explain: explain)
        }
        demand(verdicts[0].isAllowed == verdicts[1].isAllowed, "\(text): \(verdicts)")
        _ = rules.read(at: path, of: Tree(), auth: auth, now: now)
      }
    }

    // MARK: - Patterns

    private static func pattern(_ input: inout FuzzInput) {
      let text = String(decoding: input.take(input.below(32)), as: UTF8.self)
      guard let pattern = try? RegularExpression(String(decoding: input.rest(), as: UTF8.self))
      else {
        return
      }
      var work = 1_000_000
      let isWhole = pattern.matchesWhole(text, work: &work)
      let isPart = pattern.matchesPart(of: text, work: &work)
      let scalars = text.unicodeScalars.map(\.value)
      let matches = pattern.matches(in: scalars, work: &work)
      guard work >= 0 else { return }
      demand(!isWhole || isPart, "the whole of \(text) matches, and no part")
      demand(isPart == !matches.isEmpty, "\(text) matches, and nothing is found")
      for (match, next) in zip(matches, matches.dropFirst()) {
        demand(match.upperBound <= next.lowerBound, "\(text): \(matches)")
      }
    }
  }
#endif
