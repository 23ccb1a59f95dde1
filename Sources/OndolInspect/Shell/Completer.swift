// The completions of the word at the cursor: commands, then collections, then fields of documents,
// and after a dash the options of the command.

import Ondol

/// Looks names up.
struct Completer {
  /// The number of documents whose fields are examined.
  private static let sample = 50

  let place: String

  private static let own = [
    ".mode", ".limit", ".timer", ".explain", ".output", ".read", ".snapshot", ".help", ".quit",
  ]

  /// The completions of the last word.
  func candidates(_ words: [String]) async -> [String] {
    if let word = words.last, words.count > 1, word.hasPrefix("-") {
      return Main.options(of: words)
    }
    switch words.count {
    case ...1: return Main.commandNames + Self.own
    case 2:
      if let names = Main.subcommands(of: words[0]) { return names }
      return await collections()
    default:
      let collection = Main.subcommands(of: words[0]) == nil ? words[1] : words[2]
      return await fields(of: collection)
    }
  }

  private func collections() async -> [String] {
    await looking { database in
      try await database.listCollections().map(\.path)
    }
  }

  private func fields(of collection: String) async -> [String] {
    await looking { database in
      let documents = try await database.collection(collection).limit(to: Self.sample)
        .getDocuments().documents
      return Set(documents.flatMap { $0.data().keys }).map { "\(FieldPath([$0]))" }
    }
  }

  /// Returns nothing if the database cannot be read: a key press must not end the shell.
  private func looking(_ body: (Database) async throws -> [String]) async -> [String] {
    (try? await DatabaseArgument(at: place).withDatabase(body)) ?? []
  }
}
