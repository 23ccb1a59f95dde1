// The way to a string's bytes on Apple's older systems, tested here, where no code needs it: it
// must give the same results as the standard library's own ways.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct `Bytes of strings and arrays` {
  /// Empty, inside the string itself, in separate storage, and of every length of UTF-8.
  private static let texts = [
    "", "a", "fifteen letters", "sixteen letters!", "라탄 조명", "é", "e\u{301}", "😀", "\u{0}",
    String(repeating: "한글 and ASCII ", count: 40),
  ]

  @Test(arguments: texts)
  func `A string lends its bytes`(_ text: String) {
    let expected = Array(text.utf8)
    #expect(text.withUTF8Bytes { $0.array } == expected)
    // A piece of another string has no storage of its own.
    let piece = String(("<" + text + ">").dropFirst().dropLast())
    #expect(piece.withUTF8Bytes { $0.array } == expected)
  }

  @Test func `Strings are in the order of their bytes`() {
    for left in Self.texts {
      for right in Self.texts {
        let order = left.compareBytes(right)
        let bytes = (Array(left.utf8), Array(right.utf8))
        #expect((order < 0) == bytes.0.lexicographicallyPrecedes(bytes.1), "\(left) \(right)")
        #expect((order == 0) == (bytes.0 == bytes.1), "\(left) \(right)")
      }
    }
  }

  /// Returns everything that the code finds out about `bytes`, and the standard library's answer.
  private func check(_ bytes: [UInt8]) {
    let expected = String(validating: bytes, as: UTF8.self)
    let texts = [String(utf8: bytes.bytes), String(repairing: bytes.bytes)]
    for text in texts where text.map({ Array($0.utf8) }) != expected.map({ Array($0.utf8) }) {
      Issue.record("\(bytes): \(text ?? "nil")")
    }
    if bytes.bytes.isUTF8 != (expected != nil) { Issue.record("\(bytes)") }
  }

  @Test func `Bytes are a string in both ways or in none`() {
    // Each kind of byte that UTF-8 distinguishes, from its first to its last.
    let edges: [UInt8] = [
      0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC,
      0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
    ]
    check([])
    for first in edges {
      check([first])
      for second in edges {
        check([first, second])
        for third in edges {
          check([first, second, third])
        }
      }
    }
    for first in edges where first >= 0xF0 {
      for second in edges {
        for third in edges {
          for fourth: UInt8 in [0x7F, 0x80, 0xBF, 0xC0] { check([first, second, third, fourth]) }
        }
      }
    }
  }

  @Test func `The replacement for invalid UTF-8 is valid UTF-8`() {
    check(Array("\u{FFFD}".utf8))
    check(Array("라\u{FFFD}탄".utf8) + [0x80])
  }

  @Test func `A long string with one wrong byte is none`() {
    let whole = Array(String(repeating: "라탄 lamp ", count: 9).utf8)
    for place in whole.indices {
      for byte: UInt8 in [0x80, 0xC0, 0xFF] {
        var bytes = whole
        bytes[place] = byte
        check(bytes)
      }
    }
  }

  @Test func `An array lends its elements wherever it keeps them`() {
    func copy(_ elements: Span<Int>) -> [Int] { elements.indices.map { elements[$0] } }
    #expect(copy([Int]().elements) == [])
    var numbers = [1]
    numbers.reserveCapacity(100)
    for next in 2...200 {
      numbers.append(next)
      #expect(copy(numbers.elements) == numbers)
    }
    // Two arrays share one memory until one is changed.
    let before = numbers
    numbers[0] = 9
    #expect(copy(before.elements) == Array(1...200))
    #expect(copy(numbers.elements) == [9] + Array(2...200))
    #expect(copy(Array(before[50...]).elements) == Array(51...200))
  }

  @Test func `An array that nothing names later lives as long as its bytes are read`() {
    func sum(_ bytes: RawSpan) -> Int { bytes.array.reduce(0) { $0 + Int($1) } }
    for count in 0..<64 {
      #expect(sum([UInt8](repeating: 3, count: count).bytes) == 3 * count)
    }
  }
}
