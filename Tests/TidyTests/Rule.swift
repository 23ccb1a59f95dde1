// A rule of the house and the proof that it can fail: every rule has a planted text that breaks it,
// and texts that only look as if they did.

/// A rule that reads sources.
struct Rule: Sendable, CustomStringConvertible {
  /// A sentence that is true of a tidy tree.
  let sentence: String
  /// A file that breaks the rule at `line`.
  let planted: Sample
  /// Files that keep the rule, although a careless check would think otherwise.
  let innocent: [Sample]
  let check: @Sendable (SourceFile, SourceTree) -> [Finding]

  init(
    _ sentence: String, planted: Sample, innocent: [Sample] = [],
    check: @escaping @Sendable (SourceFile, SourceTree) -> [Finding]
  ) {
    self.sentence = sentence
    self.planted = planted
    self.innocent = innocent
    self.check = check
  }

  var description: String { sentence }

  func findings(in tree: SourceTree) -> [Finding] {
    tree.files.flatMap { check($0, tree) }
  }

  /// All rules; each file of rules adds its own.
  static let all = imports + words + purity + shape + documentation + texts + systems

  /// A pattern put together from pieces.
  static func pattern(_ text: String) -> Regex<AnyRegexOutput> {
    do {
      return try Regex(text).wordBoundaryKind(.simple).asciiOnlyWordCharacters()
    } catch {
      preconditionFailure("the rule's pattern is wrong: \(error)")
    }
  }
}

/// A file that exists only for a test.
struct Sample: Sendable {
  let path: String
  let text: String
  /// The line of the expected breach, counted from one; nil if there is none.
  let line: Int?

  init(_ path: String, _ text: String, line: Int? = nil) {
    self.path = path
    self.text = text
    self.line = line
  }

  var tree: SourceTree { SourceTree(files: [SourceFile(path: path, text: text)]) }
}

extension SourceFile {
  /// The lines of code at which `pattern` matches.
  func findings(
    of pattern: Regex<Substring>, _ reason: String
  ) -> [Finding] {
    // The simple boundary, because by Unicode's own `Clock.now` is a single word.
    let pattern = pattern.wordBoundaryKind(.simple).asciiOnlyWordCharacters()
    return code.indices.filter { code[$0].contains(pattern) }.map { finding(line: $0, reason) }
  }
}
