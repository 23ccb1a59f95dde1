// Parses the text that people type as a search:
//
//   온돌 방          either word; documents with both score more
//   "온돌 방"        consecutive words
//   온돌*            words that begin with this
//   +온돌 -방        required; excluded. NOT 방 is -방
//   NEAR(온돌 방, 5) both within five words, in any order
//
// Text that can be understood is never an error: an unclosed quote ends with the text. The
// tokenizer decides what a word becomes: an optional word of several syllables scores for each pair
// of them, and a required one is a phrase of them, with or without the particle at its end.

/// A part of the typed text.
private struct SearchClause {
  enum Demand { case optional, required, excluded }

  var demand: Demand
  var unit: Form

  enum Form {
    case word(String)
    case prefix(String)
    case phrase(String)
    case near([String], Int)
  }
}

/// A search that was parsed and tokenized.
struct ParsedSearch: Sendable, Hashable {
  var units: [SearchUnit] = []
  /// Nil when there is nothing to search for.
  var node: SearchNode?

  /// - Parameter matchesAll: whether words without a sign are required.
  init(_ text: String, matchesAll: Bool, _ tokenizer: Tokenizer) {
    var required: [SearchNode] = []
    var optional: [SearchNode] = []
    var excluded: [SearchNode] = []
    for clause in SearchTextReader(text).clauses() {
      let isRequired = clause.demand == .required || clause.demand == .optional && matchesAll
      let isWhole = isRequired || clause.demand == .excluded
      guard let node = node(of: clause.unit, isWhole: isWhole, tokenizer) else { continue }
      switch clause.demand {
      case .excluded: excluded.append(node)
      case .required: required.append(node)
      case .optional: if isRequired { required.append(node) } else { optional.append(node) }
      }
    }
    var found: SearchNode?
    if !required.isEmpty {
      let demanded = SearchNode.all(required)
      found = optional.isEmpty ? demanded : .bonus(demanded, .any(optional))
    } else if !optional.isEmpty {
      found = .any(optional)
    }
    if let node = found, !excluded.isEmpty { found = .without(node, .any(excluded)) }
    self.node = found
  }

  private mutating func unit(_ unit: SearchUnit) -> SearchNode {
    if let known = units.firstIndex(of: unit) { return .unit(known) }
    units.append(unit)
    return .unit(units.count - 1)
  }

  private mutating func node(
    of form: SearchClause.Form, isWhole: Bool, _ tokenizer: Tokenizer
  ) -> SearchNode? {
    switch form {
    case .word(let text):
      let places = Self.places(of: text, tokenizer)
      guard !places.isEmpty else { return nil }
      if !isWhole {
        return .any(places.map { unit(SearchUnit(form: .phrase, places: [$0], text: text)) })
      }
      let whole = unit(SearchUnit(form: .phrase, places: places, text: text))
      guard tokenizer.knowsParticles, let stem = Particles.stem(of: text) else { return whole }
      let shorter = Self.places(of: stem, tokenizer)
      guard !shorter.isEmpty else { return whole }
      return .any([whole, unit(SearchUnit(form: .phrase, places: shorter, text: stem))])
    case .phrase(let text):
      let places = Self.places(of: text, tokenizer)
      guard !places.isEmpty else { return nil }
      return unit(SearchUnit(form: .phrase, places: places, text: text))
    case .prefix(let text):
      var places = Self.places(of: text, tokenizer)
      guard let last = places.popLast() else { return nil }
      // Pairs are prefixes already: more syllables come after them.
      let list = tokenizer.beginnings(of: text)
      let isPair = list.tokens.last.map { $0.kind != .word && !$0.isAlone } ?? false
      places.append(isPair ? last : Self.beginning(list.term(list.tokens.count - 1), last))
      return unit(SearchUnit(form: .phrase, places: places, text: text + "*"))
    case .near(let words, let distance):
      let places = words.flatMap { Self.places(of: $0, tokenizer) }
      guard !places.isEmpty else { return nil }
      return unit(
        SearchUnit(form: .near(distance), places: places, text: words.joined(separator: " ")))
    }
  }

  /// Terms with this prefix, and whole terms without it: `heating*` also matches `heat`, the stem
  /// of the typed word.
  private static func beginning(_ term: [UInt8], _ whole: SearchPlace) -> SearchPlace {
    [.prefix(term)] + whole.filter { !$0.bytes.starts(with: term) }
  }

  /// The places of a text's terms. In a script that is searched in pairs, a single letter may be
  /// the first half of a pair.
  private static func places(of text: String, _ tokenizer: Tokenizer) -> [SearchPlace] {
    let list = tokenizer.tokens(of: text)
    return list.tokens.indices.map { place in
      let token = list.tokens[place]
      let term = list.term(place)
      return token.kind != .word && token.isAlone ? [.prefix(term)] : [.exact(term)]
    }
  }
}

/// Syllables at the end of Korean words that mark the word's role in its sentence.
enum Particles {
  private static let all = [
    "에서는", "에서도", "으로는", "으로도", "이라는", "에서", "에게", "으로", "까지", "부터", "처럼",
    "보다", "라는", "이나", "이랑", "한테", "은", "는", "이", "가", "을", "를", "에", "의", "와", "과",
    "도", "로", "만", "나", "랑",
  ]

  /// A Hangul word without the particle at its end; nil when there is none, or when fewer than two
  /// syllables are left.
  static func stem(of word: String) -> String? {
    let scalars = Array(word.unicodeScalars)
    guard scalars.allSatisfy({ (0xac00...0xd7a3).contains($0.value) }) else { return nil }
    for particle in all {
      let end = Array(particle.unicodeScalars)
      guard scalars.count >= end.count + 2, scalars.suffix(end.count).elementsEqual(end) else {
        continue
      }
      var stem = String.UnicodeScalarView()
      stem.append(contentsOf: scalars.dropLast(end.count))
      return String(stem)
    }
    return nil
  }
}

/// Splits the typed text into parts.
private struct SearchTextReader {
  private let scalars: [Unicode.Scalar]
  private var offset = 0

  init(_ text: String) {
    scalars = Array(text.unicodeScalars)
  }

  /// The parts of the text.
  func clauses() -> [SearchClause] {
    var reader = self
    var clauses: [SearchClause] = []
    while let clause = reader.next() { clauses.append(clause) }
    return clauses
  }

  private var current: Unicode.Scalar? { offset < scalars.count ? scalars[offset] : nil }

  private mutating func next() -> SearchClause? {
    skipBlanks()
    guard let first = current else { return nil }
    var demand = SearchClause.Demand.optional
    if first == "+" || first == "-" {
      demand = first == "+" ? .required : .excluded
      offset += 1
    }
    guard current != "\"" else { return SearchClause(demand: demand, unit: .phrase(quoted())) }
    let word = word()
    if word == "NOT", demand == .optional, current != nil {
      guard var clause = next() else { return nil }
      clause.demand = .excluded
      return clause
    }
    if word.hasPrefix("NEAR("), let near = near(word.dropFirst(5)) {
      return SearchClause(demand: demand, unit: near)
    }
    if word.count > 1, word.hasSuffix("*") {
      return SearchClause(demand: demand, unit: .prefix(String(word.dropLast())))
    }
    return SearchClause(demand: demand, unit: .word(word))
  }

  private mutating func skipBlanks() {
    while let scalar = current, scalar.properties.isWhitespace { offset += 1 }
  }

  private mutating func quoted() -> String {
    offset += 1
    let text = text { $0 == "\"" }
    offset += 1
    return text
  }

  private mutating func word() -> String {
    text { $0.properties.isWhitespace || $0 == "\"" }
  }

  private mutating func text(until isEnd: (Unicode.Scalar) -> Bool) -> String {
    var text = String.UnicodeScalarView()
    while let scalar = current, !isEnd(scalar) {
      text.append(scalar)
      offset += 1
    }
    return String(text)
  }

  /// The form after `NEAR(`; nil when it is not closed.
  private mutating func near(_ first: Substring) -> SearchClause.Form? {
    var inner = String(first)
    if !inner.contains(")") {
      guard scalars[min(offset, scalars.count)...].contains(")") else { return nil }
      inner += text { $0 == ")" }
      offset += 1
    } else {
      inner = String(inner.prefix { $0 != ")" })
    }
    let parts = inner.split(separator: ",", maxSplits: 1)
    guard let words = parts.first?.split(whereSeparator: \.isWhitespace), !words.isEmpty else {
      return nil
    }
    let distance = parts.count > 1 ? Int(parts[1].filter { !$0.isWhitespace }) : nil
    return .near(words.map(String.init), max(1, distance ?? 10))
  }
}
