// The keys for comparing texts: shown by examples, and numbers compared with a naive comparison.
// The tables are frozen, so the bytes of some keys are here and must never change.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct TextKeyTests {
  @Test(arguments: [
    (TextComparison.caseInsensitive, "Apple", "APPLE"), (.caseInsensitive, "straße", "STRASSE"),
    (.caseInsensitive, "ΣΊΣΥΦΟΣ", "σίσυφος"), (.caseInsensitive, "Привет", "ПРИВЕТ"),
    (.folded, "Élan", "elan"), (.folded, "e\u{301}lan", "ELAN"), (.folded, "ＡＢＣ１", "abc1"),
    (.folded, "Ａ！", "a!"), (.folded, "a\u{3000}b", "A B"), (.folded, "Ñandú", "nandu"),
    (.folded, "\u{1112}\u{1161}\u{11ab}", "\u{d55c}"), (.folded, "ｶﾞｷﾞ", "ガギ"),
    (.folded, "は\u{3099}", "ば"), (.folded, "ﬁn", "FIN"), (.folded, "a\u{ad}b", "ab"),
    (.natural, "Track 007", "track 7"), (.natural, "０１２", "12"), (.natural, "É10", "e0010"),
    (.natural, "0", "000"),
  ])
  func `Some texts are the same`(comparison: TextComparison, left: String, right: String) {
    #expect(comparison.key(of: left).utf8.elementsEqual(comparison.key(of: right).utf8))
  }

  @Test(arguments: [
    (TextComparison.caseInsensitive, "e", "é"), (.caseInsensitive, "e\u{301}", "é"),
    (.caseInsensitive, "a", "ａ"), (.folded, "apple", "apples"), (.folded, "Zoo", "zoo 1"),
    (.natural, "Apple 2", "apple 10"), (.natural, "1.9", "1.10"), (.natural, "", "0"),
    (.natural, "a", "a1"), (.natural, "0", "1"), (.natural, "9", "a"), (.natural, "-", "1"),
    (.natural, "a9b", "A10"), (.natural, "x9", "X\(String(repeating: "1", count: 200))"),
  ])
  func `Others are in order`(
    comparison: TextComparison, left: String, right: String
  ) {
    let keys = [left, right].map(comparison.key)
    #expect(!keys[0].utf8.elementsEqual(keys[1].utf8))
    #expect(ValueOrder.compare(keys[0], keys[1]) < 0)
  }

  @Test func `Keys have the bytes that rows of indexes have`() {
    #expect(TextComparison.caseInsensitive.key(of: "ÄẞΣ0\u{0}") == "ässσ0\u{0}")
    #expect(TextComparison.folded.key(of: "ÄẞΣ0") == "assσ0")
    #expect(TextComparison.natural.key(of: "A007b0c") == "a0\"7b0!c")
    let long = String(repeating: "1", count: 181)
    #expect(TextComparison.natural.key(of: "0\(long)") == "0~~\"\(long)")
    #expect(TextComparison.allCases.map(\.code) == [1, 2, 3])
  }

  /// Texts of letters and digits, compared run by run.
  private func isBefore(_ left: String, _ right: String) -> Bool {
    func parts(_ text: String) -> [(number: [UInt8]?, letter: UInt8)] {
      var parts: [(number: [UInt8]?, letter: UInt8)] = []
      var digits: [UInt8]?
      for octet in text.utf8 {
        if (0x30...0x39).contains(octet) {
          digits = (digits ?? []) + [octet]
          continue
        }
        if let run = digits { parts.append((Array(run.drop { $0 == 0x30 }), 0x30)) }
        digits = nil
        parts.append((nil, octet))
      }
      if let run = digits { parts.append((Array(run.drop { $0 == 0x30 }), 0x30)) }
      return parts
    }
    let (own, other) = (parts(left), parts(right))
    for (one, two) in zip(own, other) {
      if one.letter != two.letter { return one.letter < two.letter }
      guard let first = one.number, let second = two.number else { continue }
      if first.count != second.count { return first.count < second.count }
      for (left, right) in zip(first, second) where left != right { return left < right }
    }
    return own.count < other.count
  }

  @Test(arguments: Seeds.first(20))
  func `Numbers count by their value, however long they are`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var texts: [String] = []
    for _ in 0..<60 {
      var text = ""
      for _ in 0..<random.below(4) {
        switch random.below(4) {
        case 0: text += random.pick(["a", "b", "-", " ", "~"])
        case 1: text += String(repeating: "0", count: random.below(3))
        case 2: text += String(random.below(200))
        default:
          let digit = String(random.below(10))
          text += String(repeating: digit, count: random.pick([88, 89, 90, 91, 179, 180, 200]))
        }
      }
      texts.append(text)
    }
    for left in texts {
      for right in texts {
        let order = ValueOrder.compare(
          TextComparison.natural.key(of: left), TextComparison.natural.key(of: right))
        #expect((order < 0) == isBefore(left, right), "\(left) and \(right), SEED=\(seed)")
      }
    }
  }

  @Test func `Every character has a key that is a text, and one that is its own key`() {
    for comparison in [TextComparison.caseInsensitive, .folded] {
      for number in UInt32(0)..<0x20000 {
        guard let scalar = Unicode.Scalar(number) else { continue }
        let key = comparison.key(of: Array(String(Character(scalar)).utf8))
        guard let text = String(validating: key, as: UTF8.self) else {
          Issue.record("\(comparison) makes no text of \(number)")
          return
        }
        if comparison == .caseInsensitive, comparison.key(of: Array(text.utf8)) != key {
          Issue.record("the key of \(number) has another key")
        }
      }
    }
  }
}
