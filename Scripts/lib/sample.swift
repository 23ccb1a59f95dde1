// An app's release build with texts of all lengths: it compares keys, fields, indexes and queries
// with a dictionary, before and after the database is reopened. Tests are built with the compiler's
// checks; this is built as apps are.

import Ondol

struct Word: Codable, Sendable, Equatable, Identifiable {
  var id: String
  var text: String
  var number: Int
}

/// Texts inside the string itself, texts in separate storage, and texts of every length of UTF-8.
func text(_ number: Int) -> String {
  let piece = ["a", "é", "한", "😀", "fifteen letters", "라탄 조명"][number % 6]
  return String(repeating: piece, count: number % 7) + "\(number)"
}

let words = (0..<3_000).map { Word(id: "id \(text($0 * 31))", text: text($0 % 97), number: $0) }

func check(_ database: Database) async throws {
  let stored = try database.collection("words", of: Word.self)
  for number in stride(from: 0, to: 97, by: 5) {
    let wanted = words.filter { $0.text == text(number) }.map(\.number)
    let found = try await stored.where(\.text == text(number)).getDocuments().map(\.number)
    guard found.sorted() == wanted else { fatalError("\(number): \(found), not \(wanted)") }
  }
  for word in words where word.number % 50 == 0 {
    guard try await stored.document(word.id).getDocument() == word else { fatalError(word.id) }
  }
  let (count, sum) = (try await stored.count(), try await stored.sum(\.number))
  guard count == words.count, sum == words.reduce(0, { $0 + $1.number }) else {
    fatalError("\(count) documents with a sum of \(sum)")
  }
}

let path = CommandLine.arguments[1]
var database = try await Database.open(at: path)
let collection = try database.collection("words", of: Word.self)
for start in stride(from: 0, to: words.count, by: 500) {
  let batch = database.batch()
  for word in words[start..<start + 500] {
    try batch.setData(word, forDocument: collection.document(of: word))
  }
  try await batch.commit()
}
try await check(database)
try await collection.createIndex(on: .ascending(\.text), .descending(\.number))
try await check(database)
try await database.close()
database = try await Database.open(at: path)
try await check(database)
let findings = try await database.verify(depth: .full)
guard findings.isEmpty else { fatalError("\(findings)") }
try await database.close()
print("right")
