// Patterns against a naive reference that tries everything, and against texts that are made to be
// slow.

#if Server
  import Ondol
  import OndolTestKit
  import Testing

  @testable import OndolServer

  /// A pattern as a tree that prints itself and matches by trying every way.
  private indirect enum Sample {
    case letter(Character)
    case any
    case oneOf([Character], isNegated: Bool)
    case sequence([Sample])
    case choice([Sample])
    case repeated(Sample, least: Int, most: Int?)

    static func random(_ random: inout SeededRandom, depth: Int) -> Sample {
      switch random.below(depth == 0 ? 3 : 7) {
      case 0: return .letter(random.pick(["a", "b", "c"]))
      case 1: return random.chance(1, in: 2) ? .any : .letter("a")
      case 2:
        return .oneOf(
          random.pick([["a"], ["a", "b"], ["b", "c"]]), isNegated: random.chance(1, in: 3))
      case 3, 4:
        return .sequence((0..<random.below(4)).map { _ in .random(&random, depth: depth - 1) })
      case 5:
        return .choice((0..<2 + random.below(2)).map { _ in .random(&random, depth: depth - 1) })
      default:
        let least = random.below(3)
        let most = random.pick([nil, least, least + 1, least + 2])
        return .repeated(.random(&random, depth: depth - 1), least: least, most: most)
      }
    }

    var text: String {
      switch self {
      case .letter(let letter): String(letter)
      case .any: "."
      case .oneOf(let letters, let isNegated): "[\(isNegated ? "^" : "")\(String(letters))]"
      case .sequence(let items): "(?:" + items.map(\.text).joined() + ")"
      case .choice(let ways): "(" + ways.map(\.text).joined(separator: "|") + ")"
      case .repeated(let item, let least, let most):
        switch (least, most) {
        case (0, nil): "(?:\(item.text))*"
        case (1, nil): "(?:\(item.text))+"
        case (0, 1): "(?:\(item.text))?"
        case (let least, let most?): "(?:\(item.text)){\(least),\(most)}"
        case (let least, nil): "(?:\(item.text)){\(least),}"
        }
      }
    }

    /// All possible ends of a match that begins at `start`.
    func ends(_ text: [Character], from start: Int) -> Set<Int> {
      switch self {
      case .letter(let letter):
        return start < text.count && text[start] == letter ? [start + 1] : []
      case .any: return start < text.count ? [start + 1] : []
      case .oneOf(let letters, let isNegated):
        return start < text.count && letters.contains(text[start]) != isNegated ? [start + 1] : []
      case .sequence(let items):
        return items.reduce([start]) { ends, item in
          Set(ends.flatMap { item.ends(text, from: $0) })
        }
      case .choice(let ways): return Set(ways.flatMap { $0.ends(text, from: start) })
      case .repeated(let item, let least, let most):
        var all: Set<Int> = least == 0 ? [start] : []
        var ends: Set<Int> = [start]
        for count in 1...(most ?? max(least, text.count + 1)) + 1 where count <= most ?? .max {
          ends = Set(ends.flatMap { item.ends(text, from: $0) })
          if count >= least { all.formUnion(ends) }
        }
        return all
      }
    }
  }

  @Suite struct RegularExpressionTests {
    private func whole(_ pattern: String, _ text: String) throws -> Bool {
      var work = 1_000_000
      return try RegularExpression(pattern).matchesWhole(text, work: &work)
    }

    @Test(arguments: Seeds.first(20))
    func `A pattern matches what trying every way matches`(seed: UInt64) throws {
      var random = SeededRandom(seed: seed)
      for _ in 0..<100 {
        let sample = Sample.random(&random, depth: 3)
        let pattern = try RegularExpression(sample.text)
        for _ in 0..<10 {
          let text = String((0..<random.below(8)).map { _ in random.pick(["a", "b", "c"]) })
          let letters = Array(text)
          var work = 1_000_000
          let matches = pattern.matchesWhole(text, work: &work)
          #expect(
            matches == sample.ends(letters, from: 0).contains(letters.count),
            "ONDOL_SEED=\(seed): \(sample.text) on \(text)")
          let isSomewhere = (0...letters.count).contains {
            !sample.ends(letters, from: $0).isEmpty
          }
          #expect(
            pattern.matchesPart(of: text, work: &work) == isSomewhere,
            "ONDOL_SEED=\(seed): \(sample.text) in \(text)")
        }
      }
    }

    @Test(arguments: Seeds.first(10))
    func `Found matches are leftmost, valid, and without overlaps`(seed: UInt64) throws {
      var random = SeededRandom(seed: seed)
      for _ in 0..<300 {
        let sample = Sample.random(&random, depth: 2)
        // An alternative that also matches nothing may prefer that to an earlier beginning.
        if !sample.ends([], from: 0).isEmpty { continue }
        let letters = (0..<random.below(12)).map { _ in random.pick(["a", "b", "c"] as [Character])
        }
        var work = 1_000_000
        let found = try RegularExpression(sample.text)
          .matches(in: letters.flatMap(\.unicodeScalars).map(\.value), work: &work)
        var start = 0
        for match in found {
          #expect(sample.ends(letters, from: match.lowerBound).contains(match.upperBound))
          #expect(match.lowerBound >= start)
          // Nothing begins before it.
          for earlier in start..<max(start, match.lowerBound) {
            #expect(
              sample.ends(letters, from: earlier).isEmpty,
              "ONDOL_SEED=\(seed): \(sample.text) in \(String(letters))")
          }
          start = match.upperBound
        }
      }
    }

    @Test(arguments: [
      ("a|ab", "ab", 0..<1), ("ab|a", "ab", 0..<2), ("a*", "aab", 0..<2), ("a*?b", "aab", 0..<3),
      ("a+?", "aa", 0..<1), ("b", "aab", 2..<3), ("a{1,2}?", "aa", 0..<1),
    ])
    func `Of several matches the pattern's preference counts`(
      pattern: String, text: String, range: Range<Int>
    ) throws {
      var work = 1_000
      let scalars = text.unicodeScalars.map(\.value)
      #expect(try RegularExpression(pattern).matches(in: scalars, work: &work).first == range)
    }

    @Test(arguments: [
      ("\\Aab\\z", "ab", true), ("(?m)^b$", "b", true), ("a\\b.b", "a-b", true),
      ("a\\Bb", "ab", true), ("a\\bb", "ab", false), ("(?s).", "\n", true), (".", "\n", false),
      ("[[:alpha:]]+", "abC", true), ("[[:^digit:]]", "7", false), ("[\\]a-]+", "]-a", true),
      ("[]a]", "]", true), ("\\x41\\x{1F600}", "A😀", true), ("(?i)[a-z]É", "Qé", true),
      ("(?i:a)b", "Ab", true), ("(?i:a)b", "AB", false), ("(?P<x>a)", "a", true),
      ("a{,2}", "a{,2}", true),
      ("x{2}y{0}", "xx", true), ("\\pN+", "12½", true), ("[^\\W_]+", "ab1", true),
      ("[^\\W_]+", "a_", false),
      ("", "", true), ("", "a", false), ("()*", "", true), ("(a*)*b", "aab", true),
    ])
    func `The syntax is RE2's`(pattern: String, text: String, matches: Bool) throws {
      #expect(try whole(pattern, text) == matches)
    }

    @Test(arguments: [
      "(", ")", "[", "a**", "*a", "a{2,1}", "a{1001}", "(?=a)", "(?!a)", "(?<=a)", "\\1", "\\k",
      "[b-a]", "\\p{Greek}", "\\x4", "(?P<a", "[[:nope:]]", "\\", "(?z)",
    ])
    func `Text outside of the syntax is refused`(pattern: String) {
      #expect(throws: RegularExpressionError.self) { try RegularExpression(pattern) }
    }

    @Test(arguments: [
      "((a{1000}){1000}){1000}", "(((){1000}){1000}){1000}", "(((a?){100}){100}){100}",
      String(repeating: "(", count: 5_000), String(repeating: "a", count: 5_000),
      String(repeating: "(?:", count: 200) + String(repeating: ")", count: 200),
    ])
    func `A pattern that would be large is refused soon`(pattern: String) {
      let start = ContinuousClock.now
      #expect(throws: RegularExpressionError.self) { try RegularExpression(pattern) }
      #expect(ContinuousClock.now - start < .seconds(1))
    }

    @Test func `A pattern that makes backtracking exponential takes linear time`() throws {
      let pattern = try RegularExpression("(a+)+(a+)+b")
      var costs: [Int] = []
      for count in [1_000, 2_000, 4_000] {
        var work = 10_000_000
        #expect(!pattern.matchesWhole(String(repeating: "a", count: count), work: &work))
        costs.append(10_000_000 - work)
      }
      #expect(costs[2] < costs[0] * 5)
    }

    @Test func `A text beyond the work is given up`() throws {
      var work = 100
      let pattern = try RegularExpression("(a|b|c)*")
      #expect(!pattern.matchesWhole(String(repeating: "a", count: 1_000), work: &work))
      #expect(work < 0)
    }
  }
#endif
