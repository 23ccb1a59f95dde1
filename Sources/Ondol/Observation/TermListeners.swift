// The listeners to searches, by a word of each: part of the predicate index. A changed text is
// split into words once, however many listeners there are. One lookup in a small table rules out
// most of its words.

internal import OndolEngine

/// A field's text, and how terms are made of it.
struct ListenedText: Hashable, Sendable {
  var field: QueryField
  var tokenizer: Tokenizer
}

/// The listeners of one field's words.
struct TermListeners: Sendable {
  private struct Listened: Sendable {
    var term: [UInt8]
    var listener: any CommitListener
  }

  private static let slots = 1 << 16

  /// By the hash of the term.
  private var exact: [UInt64: [Listened]] = [:]
  /// The number of terms by the lowest bits of their hashes; a counter that reaches its maximum
  /// stays there.
  private var counts: [UInt8] = []
  /// The listeners to prefixes.
  private var beginnings = IntervalTree<any CommitListener>()

  private let tokenizer: Tokenizer

  init(_ tokenizer: Tokenizer) {
    self.tokenizer = tokenizer
  }

  var isEmpty: Bool { exact.isEmpty && beginnings.isEmpty }

  /// Shows the listeners to a word of the texts, some perhaps several times.
  ///
  /// - Complexity: O(n) in the texts.
  func visit(
    _ before: String?, _ after: String?, _ body: (any CommitListener) -> Void
  ) {
    if let before { visit(before, body) }
    if let after, before.map({ $0.compareBytes(after) != 0 }) ?? true { visit(after, body) }
  }

  private func visit(_ text: String, _ body: (any CommitListener) -> Void) {
    let list = tokenizer.tokens(of: text)
    for token in list.tokens {
      if !exact.isEmpty {
        var hash = TermFilter.seed
        for place in token.term { TermFilter.add(list.bytes[place], to: &hash) }
        hash = TermFilter.mix(hash)
        if counts[Self.slot(hash)] > 0, let found = exact[hash] {
          for listened in found where listened.term[...] == list.bytes[token.term] {
            body(listened.listener)
          }
        }
      }
      guard !beginnings.isEmpty else { continue }
      for listener in beginnings.elements(containing: Array(list.bytes[token.term])) {
        body(listener)
      }
    }
  }

  /// Shows every listener, some perhaps several times.
  func visitAll(_ body: (any CommitListener) -> Void) {
    for listened in exact.values.joined() { body(listened.listener) }
    beginnings.visit(body)
  }

  private static func slot(_ hash: UInt64) -> Int {
    Int(truncatingIfNeeded: hash) & (slots - 1)
  }

  mutating func insert(_ listener: any CommitListener, _ term: SearchTerm) {
    switch term {
    case .exact(let bytes):
      if counts.isEmpty { counts = [UInt8](repeating: 0, count: Self.slots) }
      let hash = TermFilter.hash(bytes)
      let slot = Self.slot(hash)
      if counts[slot] < .max { counts[slot] += 1 }
      exact[hash, default: []].append(Listened(term: bytes, listener: listener))
    case .prefix(let bytes): beginnings.insert(listener, KeyRange(prefix: bytes))
    }
  }

  mutating func remove(_ listener: any CommitListener, _ term: SearchTerm) {
    switch term {
    case .exact(let bytes):
      let hash = TermFilter.hash(bytes)
      let slot = Self.slot(hash)
      let before = exact[hash]?.count ?? 0
      exact[hash]?.removeAll { $0.listener === listener && $0.term == bytes }
      let removed = before - (exact[hash]?.count ?? 0)
      if exact[hash]?.isEmpty == true { exact[hash] = nil }
      if !counts.isEmpty, counts[slot] < .max { counts[slot] -= UInt8(clamping: removed) }
    case .prefix(let bytes):
      beginnings.remove(KeyRange(prefix: bytes)) { $0 === listener }
    }
  }
}
