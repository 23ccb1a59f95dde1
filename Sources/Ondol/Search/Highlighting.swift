// The matches of a search in a text: what an app shows in bold, and the part of a long text that
// shows most of them. The text is tokenized again, which costs less than storing the positions of
// tokens.

extension ParsedSearch {
  /// The matches in the text: ranges of its UTF-8, in order and not overlapping.
  func ranges(in text: String, _ tokenizer: Tokenizer) -> [Range<Int>] {
    guard let node else { return [] }
    let list = tokenizer.tokens(of: text)
    var found: Set<Int> = []
    for number in Set(node.positiveUnits) {
      let unit = units[number]
      let places = unit.places.map { place in
        list.tokens.indices.filter { position in
          let term = list.bytes[list.tokens[position].term]
          return place.contains { $0.matches(term) }
        }.map { UInt32($0) }[...]
      }
      unit.matches(places) { positions in
        for position in positions { found.insert(Int(position)) }
      }
    }
    var ranges: [Range<Int>] = []
    // An app's own tokenizer may return parts of a text in any order.
    let sources = found.map { list.tokens[$0].source }.filter { !$0.isEmpty }
    for next in sources.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let last = ranges.last, next.lowerBound <= last.upperBound {
        ranges[ranges.count - 1] = last.lowerBound..<max(last.upperBound, next.upperBound)
      } else {
        ranges.append(next)
      }
    }
    return ranges
  }
}

/// A part of a text.
enum Snippet {
  /// The part of about `length` characters that contains most of the ranges, cut between characters
  /// and, if possible, between words.
  static func part(
    of text: String, around ranges: [Range<Int>], length: Int
  ) -> Range<String.Index> {
    let characters = Array(text.indices)
    guard characters.count > length, length > 0 else { return text.startIndex..<text.endIndex }
    let places = ranges.compactMap { range in
      place(of: range.lowerBound, in: text, characters)
    }
    var best = (start: 0, count: -1)
    for (number, place) in places.enumerated() {
      let count = places[number...].prefix { $0 < place + length }.count
      if count > best.count { best = (place, count) }
    }
    let width = best.count > 0 ? length / 4 : 0
    var start = min(max(0, best.start - width), characters.count - length)
    if start > 0,
      let blank = characters[start..<max(start, best.start)].firstIndex(where: {
        text[$0].isWhitespace
      })
    {
      start = blank + 1
    }
    let end = min(characters.count, start + length)
    return characters[start]..<(end < characters.count ? characters[end] : text.endIndex)
  }

  /// The number of the character that contains a byte.
  private static func place(of byte: Int, in text: String, _ characters: [String.Index]) -> Int? {
    guard byte <= text.utf8.count else { return nil }
    let index = text.utf8.index(text.utf8.startIndex, offsetBy: byte)
    var (low, high) = (0, characters.count)
    while low < high {
      let middle = (low + high) / 2
      if characters[middle] <= index { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? low - 1 : nil
  }
}
