// `ondol search`: the documents whose texts contain words, best first.

import ArgumentParser
import Ondol
import OndolJSON

struct SearchCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "search", abstract: "Prints the documents whose texts contain words.",
    discussion: """
      Words without a sign are alternatives that add up; "..." is a phrase, +word demands and \
      -word excludes, word* is a beginning, NEAR(a b, 5) wants both within five words. Words \
      with a - in front stand behind --. The collection needs an index, which \
      `ondol mkindex DIR COLLECTION 'title, body' --search` makes. Status 3 when nothing is found.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, a path such as upload; with --group a collection id.")
  var collection: String

  @Argument(help: "The words, such as '온돌 +방 -마루'.")
  var words: String

  @Option(name: .customLong("in"), help: "Only this field; repeat it for several.")
  var fields: [String] = []

  @Option(help: "The largest number of documents.")
  var limit = 10

  @Flag(help: "Documents must contain all the words.")
  var all = false

  @Flag(help: "All collections with this id, wherever they are.")
  var group = false

  @Flag(help: "Print the parts of each document's score, instead of the documents.")
  var explain = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard limit > 0 else { throw ValidationError("--limit must be at least 1") }
  }

  func run(in database: Database) async throws {
    let searched = try await searchedFields(in: database)
    let query =
      group
      ? database.collectionGroup(collection).query : database.collection(collection).query
    let matches = try await query.limit(to: limit).search(
      words, in: searched.map { FieldPath($0) }, matching: all ? .all : .any
    ).getMatches()
    if explain {
      try tell(matches)
    } else if globals.chosenFormat == .table {
      try show(matches, searched)
    } else {
      var rows = RowWriter(globals, .documents)
      for match in matches { try rows.write(id: name(of: match), match.document.data()) }
      try rows.finish()
    }
    if matches.isEmpty { throw CommandFailure(.notFound, "nothing is found") }
  }

  private func name(of match: SearchMatch) -> String {
    group ? match.document.reference.path : match.document.documentID
  }

  /// The named fields, or those of the index with the most fields.
  private func searchedFields(in database: Database) async throws -> [String] {
    guard fields.isEmpty else { return fields }
    let listed =
      group
      ? try await database.collectionGroup(collection).listIndexes()
      : try await database.collection(collection).listIndexes()
    let widest = listed.filter(\.isSearch).max { $0.fields.count < $1.fields.count }
    guard let widest else {
      throw CommandFailure(
        .failed,
        "there is no index of words of \(collection); `ondol mkindex DIR \(collection) FIELDS"
          + " --search` makes one")
    }
    return widest.fields
  }

  /// For a person: each document's name, and the occurrences of the words in its texts.
  private func show(_ matches: [SearchMatch], _ searched: [String]) throws {
    var output = Output(.table)
    for match in matches {
      try output.print([LinePart(text: name(of: match), isBold: globals.usesColor)])
      for field in searched {
        let snippet = match.snippet(of: FieldPath(field), length: 160)
        guard !snippet.ranges.isEmpty else { continue }
        try output.print(
          [LinePart(text: "  \(field): ")] + Self.parts(of: snippet, globals.usesColor))
      }
    }
    try output.flush()
  }

  /// A snippet on one line, with the search words in bold.
  private static func parts(of snippet: SearchSnippet, _ usesColor: Bool) -> [LinePart] {
    var parts = [LinePart(text: snippet.isCutInFront ? "… " : "")]
    var place = snippet.text.startIndex
    for range in snippet.ranges {
      parts.append(LinePart(text: running(snippet.text[place..<range.lowerBound])))
      parts.append(LinePart(text: running(snippet.text[range]), isBold: usesColor))
      place = range.upperBound
    }
    let end = snippet.isCutBehind ? " …" : ""
    return parts + [LinePart(text: running(snippet.text[place...]) + end)]
  }

  /// A snippet continues across line breaks in the text.
  private static func running(_ text: Substring) -> String {
    String(text.map { $0.isNewline || $0 == "\t" ? " " : $0 })
  }

  private func tell(_ matches: [SearchMatch]) throws {
    var rows = RowWriter(
      globals,
      .report(
        schema: "search/1",
        columns: ["document", "score", "word", "frequency", "documents", "adds"]))
    for match in matches {
      for term in match.terms {
        try rows.write([
          ("document", .string(name(of: match))), ("score", .double(match.score)),
          ("word", .string(term.text)), ("frequency", .double(term.frequency)),
          ("documents", .integer(Int64(term.documents))), ("adds", .double(term.score)),
        ])
      }
    }
    try rows.finish()
  }
}
