// The tokenizer, whose tables are frozen, and the bytes of indexes of words.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct TokenizerTests {
  private func terms(_ text: String) -> [String] {
    let list = Tokenizer().tokens(of: text)
    return list.tokens.indices.map { String(decoding: list.term($0), as: UTF8.self) }
  }

  @Test(arguments: [
    ("온돌방에서 잤다", ["온돌", "돌방", "방에", "에서", "잤다"]), ("방", ["방"]),
    ("Café ＦＵＬＬ ﬁne Straße 2026", ["cafe", "full", "fine", "strasse", "2026"]),
    ("温泉に行く", ["温泉", "泉に", "に行", "行く"]), ("mixed한글ABC", ["mixed", "한글", "abc"]),
    ("don't a-b", ["don", "t", "a", "b"]), ("Ωmega Ёлка", ["ωmega", "елка"]), ("…  —", []),
    ("😀 ok", ["ok"]),
  ])
  func `Texts become the terms that indexes have`(text: String, expected: [String]) {
    #expect(terms(text) == expected)
  }

  @Test func `Composed and decomposed texts have the same terms`() {
    let text = "온돌방에서 각설탕 Äpfel が ぱ ヴ"
    #expect(terms(text.decomposedStringWithCanonicalMapping) == terms(text))
  }

  @Test func `The frozen tables are as they were`() {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    let tables = CharacterTables.first
    for character in 0..<UInt32(0x32000) {
      var bytes = [tables.kind(of: character).rawValue]
      tables.fold(character, into: &bytes)
      for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }
    #expect(hash == 4_405_546_479_655_843_771)
  }

  @Test(arguments: Seeds.first(40))
  func `Damaged rows are errors and nothing worse`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var writer = FreshRowWriter()
    writer.addField(Tokenizer().tokens(of: "온돌방 lamp lamp lantern 온돌"))
    writer.addField(nil)
    writer.addField(Tokenizer().tokens(of: "lamp"))
    let row = try #require(writer.row())
    var builder = RunBuilder()
    try builder.add(FreshRow(row), scope: [], 0)
    try builder.add(FreshRow(row), scope: [], 1)
    let chunk = try #require(builder.chunks().first).bytes
    for _ in 0..<500 {
      var (damagedRow, damagedChunk) = (row, chunk)
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: damagedRow.indices, using: &random)
        damagedRow[place] = UInt8.random(in: .min ... .max, using: &random)
        let other = Int.random(in: damagedChunk.indices, using: &random)
        damagedChunk[other] = UInt8.random(in: .min ... .max, using: &random)
      }
      if Bool.random(using: &random) { damagedRow.removeLast(damagedRow.count / 2) }
      do throws(MalformedBytes) {
        let fresh = try FreshRow(damagedRow)
        _ = fresh.mayHave(random.next())
        var terms = fresh.terms()
        while try terms.next() { _ = try terms.readPositions() }
      } catch {}
      do throws(MalformedBytes) {
        var reader = ChunkReader(damagedChunk)
        while try reader.next() {
          var postings = Postings()
          try reader.decode(positions: true, into: &postings)
          var cursor = PositionCursor(postings)
          for place in postings.documents.indices { _ = try cursor.positions(of: place) }
          try reader.forEach { (_, _, _, _) in }
        }
        var other = ChunkReader(damagedChunk)
        if try other.seek([1, 0x6c, 0x61]) { while try other.next() {} }
      } catch {}
      _ = try? SearchState(damagedRow.bytes)
      _ = try? SearchedDocument(damagedRow.bytes)
    }
  }
}
