// The calls that a measured full-text index must support. Each call is a loop inside the adapter
// over arguments that exist before the clock starts. The loop reads the whole text of each document
// that it finds.

/// A text and its number.
package struct SearchedText: Sendable {
  package var id: Int
  package var text: String

  package init(id: Int, text: String) {
    self.id = id
    self.text = text
  }
}

/// A search.
package enum SearchQuestion: Sendable {
  /// Any of the words. Texts with more of them are better.
  case words([String])
  /// The words in direct succession.
  case phrase([String])
  /// Words with this beginning.
  case prefix(String)
  /// Two syllables of Hangul anywhere in a word.
  case syllables(String)
}

/// A measured index of words, open in a directory of its own.
package protocol SearchStore: AnyObject, Sendable {
  static var name: String { get }
  /// The important settings in one line, for the reader of the table.
  static var settings: String { get }
  /// Whether it finds whole words, so that counts can be compared.
  static var findsWords: Bool { get }

  /// Opens the index in the existing directory. Commits survive the kill of the process.
  static func open(_ directory: String) async throws -> Self
  /// Puts the texts in one commit.
  func put(_ texts: [SearchedText]) async throws
  /// Waits for background work.
  func settle() async throws
  /// Whether the engine can answer such questions.
  func canAnswer(_ question: SearchQuestion) -> Bool
  /// Reads the ten best results of each question. Returns the bytes read.
  func top(_ questions: [SearchQuestion]) async throws -> Int
  /// Returns the total number of matching documents.
  func count(_ question: SearchQuestion) async throws -> Int
  func close() async throws
}

extension SearchStore {
  package func settle() async throws {}
  package func canAnswer(_ question: SearchQuestion) -> Bool { true }
}
