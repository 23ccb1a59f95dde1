// Regular expressions as automata give the answers of the simulation of threads.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Automata of regular expressions` {
  private static func pattern(_ random: inout SeededRandom, depth: Int) -> String {
    switch random.below(depth == 0 ? 6 : 11) {
    case 0, 1: return random.pick(["a", "b", "c", "é", "한"])
    case 2: return random.pick([".", "[ab]", "[^a]", "\\d", "[^é]"])
    case 3: return random.pick(["^", "$"])
    case 4: return "(?i:B)"
    case 5: return ""
    case 6, 7:
      return (0..<1 + random.below(3)).map { _ in pattern(&random, depth: depth - 1) }.joined()
    case 8:
      return "(?:\(pattern(&random, depth: depth - 1))|\(pattern(&random, depth: depth - 1)))"
    default:
      return "(?:\(pattern(&random, depth: depth - 1)))" + random.pick(["*", "+", "?", "{1,3}"])
    }
  }

  @Test(arguments: Seeds.first(12))
  func `They match what the simulation of threads matches`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var matches = 0
    for _ in 0..<200 {
      let text = Self.pattern(&random, depth: 3)
      guard let pattern = try? RegularExpression(text) else { continue }
      var part = try #require(RegularExpressionAutomaton(pattern, isWhole: false))
      var whole = try #require(RegularExpressionAutomaton(pattern, isWhole: true))
      for _ in 0..<20 {
        let sample = (0..<random.below(7)).map { _ in
          random.pick(["a", "b", "c", "B", "é", "한", "\n", "7"])
        }.joined()
        var work = Int.max
        let isPart = pattern.matchesPart(of: sample, work: &work)
        if isPart { matches += 1 }
        let name = "seed \(seed): \(text) in \"\(sample)\""
        let foundPart = sample.withUTF8Bytes { part.matches($0, work: &work) }
        #expect(foundPart == isPart, "\(name)")
        let isWhole = pattern.matchesWhole(sample, work: &work)
        let foundWhole = sample.withUTF8Bytes { whole.matches($0, work: &work) }
        #expect(foundWhole == isWhole, "\(name)")
      }
    }
    #expect(matches > 100, "seed \(seed)")
  }

  @Test func `Very many states are forgotten in time`() throws {
    // The state after a text knows which of its last sixteen letters were a.
    let pattern = try RegularExpression("a.{15}b")
    var automaton = try #require(RegularExpressionAutomaton(pattern, isWhole: false))
    var random = SeededRandom(seed: 1)
    // In a text and from one to the next.
    for length in [Int](repeating: 60, count: 200) + [5_000] {
      let text = (0..<length).map { _ in random.pick(["a", "b", "c"]) }.joined()
      var work = Int.max
      let expected = pattern.matchesPart(of: text, work: &work)
      let found = text.withUTF8Bytes { automaton.matches($0, work: &work) }
      #expect(found == expected, "\(text)")
      #expect(automaton.stateCount < 300)
    }
  }

  @Test func `A text that takes too many steps is no match and says so`() throws {
    let pattern = try RegularExpression("(?:a.{200})+b")
    var automaton = try #require(RegularExpressionAutomaton(pattern, isWhole: false))
    let text = String(repeating: "a", count: 5_000)
    for _ in 0..<2 {
      var work = 100_000
      #expect(!text.withUTF8Bytes { automaton.matches($0, work: &work) })
      #expect(work < 0)
    }
    var work = 100_000
    #expect(!pattern.matchesPart(of: text, work: &work) && work < 0)
  }

  @Test(arguments: ["\\ba", "\\Ba", "(?m)^a"])
  func `Conditions on other places are left to the simulation`(text: String) throws {
    #expect(RegularExpressionAutomaton(try RegularExpression(text), isWhole: false) == nil)
  }
}
