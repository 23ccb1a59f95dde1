// Turns a text into the terms of an index. Pure and frozen: a write makes rows of an index with it,
// and they must be the same when they are made again years later. Tokenizer 1:
//
//   words     Latin, Greek, Cyrillic, digits and every script with spaces between words: one token
//             for each word, without case, accents and width
//   Hangul    letters composed to syllables, then overlapping tokens of two syllables; a run of one
//             syllable is a token of one
//   paired    Han, Kana, Thai and others without spaces: as Hangul
//
// So `온돌방에서` is 온돌 돌방 방에 에서, and a search for 온돌방 finds it without a dictionary that knows which
// syllables are a particle.

/// Makes tokens from texts.
struct Tokenizer: Sendable {
  /// The name by which the catalog identifies it.
  let name: TokenizerName
  private let own: (any SearchTokenizer)?
  private let tables = CharacterTables.first

  /// Tokenizer 1.
  init() {
    name = .plain
    own = nil
  }

  /// Tokenizer 2: like 1, with stems of English words.
  static let english = Tokenizer(.english, nil)

  /// A tokenizer that the app provides.
  init(_ own: any SearchTokenizer) {
    self.init(.own(own.name, version: own.version), own)
  }

  private init(_ name: TokenizerName, _ own: (any SearchTokenizer)?) {
    self.name = name
    self.own = own
  }

  /// The tokens of a text.
  ///
  /// - Complexity: O(n) in the bytes.
  func tokens(of text: String) -> TokenList {
    var list = beginnings(of: text)
    if name == .english { list.stem() }
    return list
  }

  /// The tokens of a text whose words may be prefixes of others, and so are not stemmed.
  func beginnings(of text: String) -> TokenList {
    guard let own else { return words(of: text) }
    var list = TokenList()
    let count = text.utf8.count
    for token in own.tokens(of: text) { list.append(token, inTextOf: count) }
    return list
  }

  /// Whether a word may match without the Korean particle at its end.
  var knowsParticles: Bool { own == nil }

  private func words(of text: String) -> TokenList {
    let bytes = Array(text.utf8)
    var run = TokenRun(tables, roomFor: bytes.count)
    var offset = 0
    while offset < bytes.count {
      if run.addLetters(of: bytes, from: &offset) { continue }
      let start = offset
      let character = CharacterTables.character(in: bytes, at: &offset)
      run.add(character, start..<offset)
    }
    run.finish()
    return run.list
  }
}

extension Tokenizer: Hashable {
  static func == (left: Tokenizer, right: Tokenizer) -> Bool { left.name == right.name }

  func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// Assembles tokens from characters.
private struct TokenRun {
  private let tables: CharacterTables
  private(set) var list = TokenList()
  /// The kind of characters in the run; a separator between runs.
  private var kind = CharacterKind.separator
  /// Where the word's term begins, and its source.
  private var termStart = 0
  private var source = 0..<0
  /// In a run of pairs: its characters so far, and the last of them.
  private var count = 0
  private var last: UInt32 = 0
  private var lastSource = 0..<0

  init(_ tables: CharacterTables, roomFor bytes: Int) {
    self.tables = tables
    list.bytes.reserveCapacity(bytes + bytes / 2)
    list.tokens.reserveCapacity(bytes / 4)
  }

  /// Adds the ASCII letters and digits at `offset` and moves past them: most texts have few other
  /// characters. Returns false when there are none.
  @inline(__always)
  mutating func addLetters(of bytes: [UInt8], from offset: inout Int) -> Bool {
    let start = offset
    guard tables.letters[Int(bytes[start])] != 0 else { return false }
    if kind != .word {
      finish()
      kind = .word
      termStart = list.bytes.count
      source = start..<start
    }
    while offset < bytes.count {
      let letter = tables.letters[Int(bytes[offset])]
      if letter == 0 { break }
      list.bytes.append(letter)
      offset += 1
    }
    source = source.lowerBound..<offset
    return true
  }

  @inline(__always)
  mutating func add(_ character: UInt32, _ place: Range<Int>) {
    let next = tables.kind(of: character)
    if next == .word, kind == .word {
      tables.fold(character, into: &list.bytes)
      source = source.lowerBound..<place.upperBound
      return
    }
    addOther(character, next, place)
  }

  private mutating func addOther(
    _ character: UInt32, _ next: CharacterKind, _ place: Range<Int>
  ) {
    if next == .mark || next == .paired && (character == 0x3099 || character == 0x309a) {
      guard kind != .separator else { return }
      addMark(character, place)
    } else if next == kind, kind == .hangul || kind == .paired {
      addNext(character, place)
    } else {
      finish()
      kind = next
      guard kind != .separator else { return }
      begin(character, place)
    }
  }

  private mutating func begin(_ character: UInt32, _ place: Range<Int>) {
    source = place
    if kind == .word {
      termStart = list.bytes.count
      tables.fold(character, into: &list.bytes)
    } else {
      (last, lastSource, count) = (character, place, 1)
    }
  }

  /// A mark belongs to the character before it; over Kana it makes another character.
  private mutating func addMark(_ character: UInt32, _ place: Range<Int>) {
    source = source.lowerBound..<place.upperBound
    guard kind != .word else { return }
    lastSource = lastSource.lowerBound..<place.upperBound
    last = Kana.voiced(last, by: character) ?? last
  }

  /// Another character of a run of pairs.
  private mutating func addNext(_ character: UInt32, _ place: Range<Int>) {
    if kind == .hangul, let composed = Hangul.compose(last, character) {
      last = composed
      lastSource = lastSource.lowerBound..<place.upperBound
      return
    }
    if count > 1 { endPair() }
    // The pair stays open until it is certain that no letter will be composed with its second half.
    source = lastSource.lowerBound..<place.upperBound
    termStart = list.bytes.count
    tables.fold(last, into: &list.bytes)
    (last, lastSource) = (character, place)
    count += 1
  }

  private mutating func endPair() {
    tables.fold(last, into: &list.bytes)
    add(isAlone: false, source.lowerBound..<lastSource.upperBound)
  }

  private mutating func add(isAlone: Bool, _ source: Range<Int>) {
    guard list.tokens.count < TokenList.mostTokens else {
      list.bytes.removeLast(list.bytes.count - termStart)
      return
    }
    list.cutTerm(from: termStart)
    list.tokens.append(
      Token(term: termStart..<list.bytes.count, source: source, kind: kind, isAlone: isAlone))
  }

  /// Ends the run.
  mutating func finish() {
    switch kind {
    case .separator, .mark: return
    case .word:
      // A single mark folds to nothing.
      if list.bytes.count > termStart { add(isAlone: true, source) }
    case .hangul, .paired:
      if count > 1 {
        endPair()
      } else {
        termStart = list.bytes.count
        tables.fold(last, into: &list.bytes)
        add(isAlone: true, lastSource)
      }
    }
    kind = .separator
  }
}
