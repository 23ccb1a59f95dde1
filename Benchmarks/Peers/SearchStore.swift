// What a full-text index must do to be measured. Each call is a loop inside the adapter over
// arguments that were made before the clock started; of each document found the whole text is read.

/// A text and its number.
package struct SearchedText: Sendable {
  package var id: Int
  package var text: String

  package init(id: Int, text: String) {
    self.id = id
    self.text = text
  }
}

/// What is looked for.
package enum SearchQuestion: Sendable {
  /// Any of the words; those with more of them are better.
  case words([String])
  /// The words one behind the other.
  case phrase([String])
  /// Words that begin so.
  case prefix(String)
  /// Two syllables of Hangul anywhere in a word.
  case syllables(String)
}

/// An index of words under measurement, open in a directory of its own.
package protocol SearchStore: AnyObject, Sendable {
  static var name: String { get }
  /// The settings that matter, in one line, for the reader of the table.
  static var settings: String { get }
  /// Whether a word is found as a word, so that counts can be compared.
  static var findsWords: Bool { get }

  /// Opens the index in the directory, which exists; commits survive the process being killed.
  static func open(_ directory: String) async throws -> Self
  /// Puts the texts in one commit.
  func put(_ texts: [SearchedText]) async throws
  /// Waits for what goes on in the background.
  func settle() async throws
  /// Whether the engine can answer such questions.
  func canAnswer(_ question: SearchQuestion) -> Bool
  /// Reads the ten best of each question; gives back the bytes read.
  func top(_ questions: [SearchQuestion]) async throws -> Int
  /// How many documents there are in all.
  func count(_ question: SearchQuestion) async throws -> Int
  func close() async throws
}

extension SearchStore {
  package func settle() async throws {}
  package func canAnswer(_ question: SearchQuestion) -> Bool { true }
}
