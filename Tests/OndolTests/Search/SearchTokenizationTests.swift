// Indexes of English stems and indexes with the app's own tokenizer: what they find, where in the
// original text, and what happens without the tokenizer.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Part numbers such as AB-1200 are one word; hostile about everything else.
private struct PartNumbers: SearchTokenizer {
  let name = "parts"
  var version = 1

  func tokens(of text: String) -> [SearchToken] {
    var tokens = text.split(separator: " ").map { word in
      SearchToken(
        version == 1 ? word.lowercased() : word.uppercased(), at: word.startIndex..<word.endIndex,
        in: text)
    }
    if text.contains("odd") {
      tokens.append(SearchToken("", at: 0..<1))
      tokens.append(SearchToken("before", at: -7 ..< -3))
      tokens.append(SearchToken("behind", at: 5_000..<6_000))
      tokens.append(SearchToken(String(repeating: "é", count: 100), at: 0..<1))
    }
    return tokens
  }
}

@Suite struct SearchTokenizationTests {
  @Test(arguments: [
    ("consistency", "consist"), ("consignment", "consign"), ("knackeries", "knackeri"),
    ("relational", "relat"), ("conditional", "condit"), ("happy", "happi"), ("cries", "cri"),
    ("ties", "tie"), ("gas", "gas"), ("gaps", "gap"), ("agreed", "agre"), ("feed", "feed"),
    ("plastered", "plaster"), ("motoring", "motor"), ("sing", "sing"), ("hopping", "hop"),
    ("hoping", "hope"), ("luxuriated", "luxuri"), ("falling", "fall"), ("sized", "size"),
    ("say", "say"), ("by", "by"), ("generous", "generous"), ("generate", "generat"),
    ("communism", "communism"), ("skies", "sky"), ("dying", "die"), ("only", "onli"),
    ("herrings", "herring"), ("proceeding", "proceed"), ("analogous", "analog"),
    ("geologies", "geolog"), ("formative", "format"), ("adoption", "adopt"), ("rate", "rate"),
    ("controlling", "control"), ("yielding", "yield"), ("toys", "toy"), ("boxes", "box"),
    ("addresses", "address"), ("electricity", "electr"), ("abilities", "abil"), ("é", "é"),
    ("lampß", "lampß"), ("a", "a"), ("", ""), ("2026s", "2026s"),
  ])
  func `English words have the stems of Porter's second stemmer`(word: String, stem: String) {
    #expect(EnglishStemmer.stem(word) == stem)
  }

  /// The rules are frozen: an index keeps the rules of its creation forever.
  @Test func `The stems are as they were`() {
    let beginnings = ["gener", "hop", "tro", "fly", "aw", "seiz", "bott", "univers", "y", "ski"]
    let endings = [
      "", "s", "es", "ies", "ed", "ing", "edly", "eed", "y", "ly", "li", "ational", "ization",
      "ousness", "bility", "ogist", "ative", "icate", "ement", "sion", "able", "e", "lle", "ll",
    ]
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for beginning in beginnings {
      for ending in endings {
        for byte in Array(EnglishStemmer.stem(beginning + ending).utf8) + [0] {
          hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
        }
      }
    }
    #expect(hash == 4_904_527_435_435_072_546)
  }

  private func notes(
    _ texts: [(String, String)], _ tokenization: SearchTokenization,
    options: Database.Options = Database.Options()
  ) async throws -> CollectionReference {
    let notes = try await Database.underTest(options: options).collection("notes")
    try await notes.createSearchIndex(on: ["body"], tokenization: tokenization)
    for (id, body) in texts { try await notes.document(id).setData(["body": body]) }
    return notes
  }

  private func ids(_ search: SearchQuery) async throws -> Set<String> {
    Set(try await search.getMatches().map(\.document.documentID))
  }

  @Test func `An English index finds other forms of a word, and shows them as they are`()
    async throws
  {
    let notes = try await notes(
      [
        ("a", "The Lamps were lit, and heating began."), ("b", "a lamp heated the 온돌방"),
        ("c", "lampooned universities"),
      ], .english)
    #expect(try await notes.listIndexes().map(\.name) == ["body search english"])
    for _ in 0..<2 {
      #expect(try await ids(notes.query.search("lamp", in: "body")) == ["a", "b"])
      #expect(try await ids(notes.query.search("+heats -lit", in: "body")) == ["b"])
      #expect(try await ids(notes.query.search("\"lamps heat\"", in: "body")) == ["b"])
      #expect(try await ids(notes.query.search("NEAR(heat lamp, 5)", in: "body")) == ["a", "b"])
      #expect(try await ids(notes.query.search("lamp*", in: "body")) == ["a", "b", "c"])
      // The typed text is not the beginning of a stem, but a form of one.
      #expect(try await ids(notes.query.search("heating*", in: "body")) == ["a", "b"])
      #expect(try await ids(notes.query.search("온돌방은", in: "body", matching: .all)) == ["b"])
      // A common word is a word like any other.
      #expect(try await ids(notes.query.search("+the", in: "body")) == ["a", "b"])
      try await notes.database.gatherSearchIndexes(of: "notes")
    }
    let match = try #require(
      await notes.query.search("heats lamp", in: "body").getMatches().first {
        $0.document.documentID == "a"
      })
    let text = try #require(match.document["body"] as String?)
    #expect(match.ranges(in: "body").map { String(text[$0]) } == ["Lamps", "heating"])
    let snippet = match.snippet(of: "body", length: 16)
    #expect(snippet.ranges.map { String(snippet.text[$0]) } == ["Lamps"])
    let suggestions = try await notes.query.searchSuggestions(for: "univ", in: "body")
    #expect(suggestions.map(\.term) == ["univers"])
    #expect(try await notes.database.verify().isEmpty)
    try await notes.database.close()
  }

  @Test func `A listener is woken by the terms of the index that serves it`() async throws {
    let notes = try await notes([("a", "a lamp")], .english)
    let database = notes.database
    var listener = notes.query.search("lamps", in: "body").snapshots.makeAsyncIterator()
    #expect(try await listener.next()?.map(\.document.documentID) == ["a"])
    try await notes.document("b").setData(["body": "heating"])
    #expect(database.observers.pendingCount == 0)
    try await notes.document("c").setData(["body": "the lamp's light"])
    // A store reports commits a moment later.
    #expect(TestedStore.current != .memory || database.observers.pendingCount == 1)
    #expect(try await Set(listener.next()?.map(\.document.documentID) ?? []) == ["a", "c"])
    // With another index it has other terms.
    try await notes.createSearchIndex(on: ["body"])
    try await notes.dropIndex(named: "body search english")
    #expect(try await listener.next()?.isEmpty == true)
    try await notes.document("d").setData(["body": "lamps"])
    #expect(try await listener.next()?.map(\.document.documentID) == ["d"])
    try await database.close()
  }

  @Test func `An app's own tokenizer decides the words and their places`() async throws {
    let notes = try await notes(
      [
        ("a", "bolt AB-1200 odd"), ("b", "nut AB-1201 bolt"), ("c", "온돌방은 따뜻하다"),
      ], .custom(named: "parts"), options: Database.Options(tokenizers: [PartNumbers()]))
    #expect(try await notes.listIndexes().map(\.name) == ["body search tokenizer parts 1"])
    for _ in 0..<2 {
      #expect(try await ids(notes.query.search("ab-1200", in: "body")) == ["a"])
      #expect(try await ids(notes.query.search("ab-12*", in: "body")) == ["a", "b"])
      #expect(try await ids(notes.query.search("\"AB-1201 bolt\"", in: "body")) == ["b"])
      #expect(try await ids(notes.query.search("1200", in: "body")).isEmpty)
      // Only it knows what a particle is.
      #expect(try await ids(notes.query.search("+온돌방이", in: "body")).isEmpty)
      try await notes.database.gatherSearchIndexes(of: "notes")
    }
    let odd = try #require(
      await notes.query.search("ab-1200 behind before odd", in: "body").getMatches().first)
    let text = try #require(odd.document["body"] as String?)
    #expect(odd.ranges(in: "body").map { String(text[$0]) } == ["b", "AB-1200", "odd"])
    #expect(try await notes.database.verify().isEmpty)
    try await notes.database.close()
  }

  @Test func `Tokenizers that no index can name are refused`() async throws {
    struct Named: SearchTokenizer {
      var name: String
      var version: Int
      func tokens(of text: String) -> [SearchToken] { [] }
    }
    for tokenizers: [any SearchTokenizer] in [
      [Named(name: "", version: 1)], [Named(name: "two words", version: 1)],
      [Named(name: "x", version: 0)], [PartNumbers(), PartNumbers()],
    ] {
      let error = await #expect(throws: DatabaseError.self) {
        _ = try await Database.inMemory(options: Database.Options(tokenizers: tokenizers))
      }
      #expect(error?.code == .invalidArgument)
    }
    let database = try await Database.underTest()
    let error = await #expect(throws: DatabaseError.self) {
      try await database.collection("notes").createSearchIndex(
        on: ["body"], tokenization: .custom(named: "parts"))
    }
    #expect(error?.code == .invalidArgument && error?.message.contains("'parts'") == true)
    try await database.close()
  }

  @Test func `Without its tokenizer an index is neither searched nor written`() async throws {
    let world = Environment.memory()
    func open(_ tokenizers: [any SearchTokenizer]) async throws -> CollectionReference {
      try await Database.open(
        at: "db", options: Database.Options(tokenizers: tokenizers), environment: world
      ).collection("notes")
    }
    var notes = try await open([PartNumbers()])
    try await notes.createSearchIndex(on: ["body"], tokenization: .custom(named: "parts"))
    try await notes.document("a").setData(["body": "bolt AB-1200", "n": 1])
    try await notes.database.close()

    for tokenizers: [any SearchTokenizer] in [[], [PartNumbers(version: 2)]] {
      notes = try await open(tokenizers)
      #expect(try await notes.document("a").getDocument()["n"] as Int? == 1)
      let errors = [
        await #expect(throws: DatabaseError.self) {
          _ = try await notes.query.search("bolt", in: "body").getMatches()
        },
        await #expect(throws: DatabaseError.self) {
          try await notes.document("a").setData(["body": "nut"])
        },
      ]
      for error in errors {
        #expect(error?.code == .failedPrecondition)
        #expect(error?.message.contains("tokenizer parts 1") == true, "\(error?.message ?? "")")
      }
      // A change that leaves the words alone is written as usual.
      try await notes.document("a").updateData(["n": 1])
      let findings = try await notes.database.verify()
      #expect(findings.count == 1 && findings.allSatisfy { $0.severity == .warning })
      try await notes.database.close()
    }

    // The new version makes another index, and the old one goes.
    notes = try await open([PartNumbers(), PartNumbers(version: 2)])
    try await notes.createSearchIndex(on: ["body"], tokenization: .custom(named: "parts"))
    try await notes.dropIndex(named: "body search tokenizer parts 1")
    #expect(try await notes.listIndexes().map(\.name) == ["body search tokenizer parts 2"])
    #expect(try await ids(notes.query.search("ab-1200", in: "body")) == ["a"])
    try await notes.database.close()

    // Recovery does not know the tokenizer: the index waits for the app.
    let report = try await Database.salvage(from: "db", to: "saved", environment: world)
    #expect(report.losses.isEmpty)
    let saved = try await Database.open(
      at: "saved", options: Database.Options(tokenizers: [PartNumbers(version: 2)]),
      environment: world
    ).collection("notes")
    while try await saved.listIndexes().contains(where: { $0.state != .ready }) {
      await Task.yield()
    }
    #expect(try await ids(saved.query.search("ab-1200", in: "body")) == ["a"])
    #expect(try await saved.database.verify().isEmpty)
    try await saved.database.close()
  }

  @Test func `A group is searched by terms that all its collections have`() async throws {
    let database = try await Database.underTest()
    let (first, second) = (database.collection("a/b/notes"), database.collection("notes"))
    try await first.document("x").setData(["body": "lamps"])
    try await second.document("y").setData(["body": "a lamp"])
    let group = database.collectionGroup("notes")
    try await group.createSearchIndex(on: ["body"], tokenization: .english)
    #expect(try await ids(group.query.search("lamp", in: "body")) == ["x", "y"])
    try await database.close()
  }
}
