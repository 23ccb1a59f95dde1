// From a text to the terms of an index. Pure and frozen: rows of an index are made with it at a
// write and must be the same when they are made again years later. Tokenizer 1:
//
//   words     Latin, Greek, Cyrillic, digits and whatever has blanks between its words: one token a
//             word, without case, accents and width
//   Hangul    letters composed to syllables, then two syllables a token, overlapping; a run of one
//             syllable is a token of one
//   paired    Han, Kana, Thai and others without blanks: as Hangul
//
// So `온돌방에서` is 온돌 돌방 방에 에서, and is found by 온돌방 without a dictionary that knows
// which syllables are a particle.

/// Makes tokens of texts.
struct Tokenizer: Sendable {
  /// What the catalog knows it by.
  let name: TokenizerName
  private let own: (any SearchTokenizer)?
  private let tables = CharacterTables.first

  /// Tokenizer 1.
  init() {
    name = .plain
    own = nil
  }

  /// Tokenizer 2: as 1, with stems of English words.
  static let english = Tokenizer(.english, nil)

  /// One of an app's own.
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

  /// The tokens of a text whose words may be beginnings of others, and so have no stems.
  func beginnings(of text: String) -> TokenList {
    guard let own else { return words(of: text) }
    var list = TokenList()
    let count = text.utf8.count
    for token in own.tokens(of: text) { list.append(token, inTextOf: count) }
    return list
  }

  /// Whether a word may be found without the Korean particle at its end.
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

/// Puts tokens together from characters.
private struct TokenRun {
  private let tables: CharacterTables
  private(set) var list = TokenList()
  /// What the run consists of; a separator between runs.
  private var kind = CharacterKind.separator
  /// Where the term of the word begins, and its source.
  private var termStart = 0
  private var source = 0..<0
  /// Of a run of pairs: its characters so far, and the last of them.
  private var count = 0
  private var last: UInt32 = 0
  private var lastSource = 0..<0

  init(_ tables: CharacterTables, roomFor bytes: Int) {
    self.tables = tables
    list.bytes.reserveCapacity(bytes + bytes / 2)
    list.tokens.reserveCapacity(bytes / 4)
  }

  /// Adds the letters and digits of ASCII that stand from `offset` on, and passes them: most texts
  /// have few others. False when there are none.
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

  /// A mark belongs to what is before it; over Kana it makes another character.
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
    // The pair is open until it is known that no letter is to be composed with its second half.
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
      // A mark that stood alone folds to nothing.
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
