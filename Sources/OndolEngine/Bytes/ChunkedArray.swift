// The segments of a run in the manifest's state. A large run has tens of thousands. Edits insert
// and remove some at any position, and views continue to use old states. With a single array, each
// edit would move or copy everything after it, and replaying a manifest would take quadratic time.
// So the elements are divided into chunks: a change moves one chunk's elements and updates the
// starts of the chunks after it, and a copied list shares all chunks except the changed one.

/// A list with cheap changes in the middle.
struct ChunkedArray<Element: Sendable & Equatable>: Sendable {
  /// The most elements in a chunk.
  static var chunkLength: Int { 128 }

  private var chunks: [[Element]] = []
  /// The number of elements before each chunk.
  private var starts: [Int] = []
  private(set) var count = 0

  /// - Complexity: O(count)
  init(_ elements: some Sequence<Element>) {
    for element in elements { insert(element, at: count) }
  }

  /// The number of leading elements that satisfy `isBefore`. No element after the first that does
  /// not satisfy it may satisfy it.
  ///
  /// - Complexity: O(log count)
  func partition(_ isBefore: (Element) -> Bool) -> Int {
    // The last element tells whether the whole chunk comes before.
    let chunk = Self.partition(chunks.count) { isBefore(chunks[$0][chunks[$0].count - 1]) }
    guard chunk < chunks.count else { return count }
    return starts[chunk] + Self.partition(chunks[chunk].count) { isBefore(chunks[chunk][$0]) }
  }

  /// - Complexity: O(chunk + chunks); O(1) at the end.
  mutating func insert(_ element: Element, at position: Int) {
    precondition((0...count).contains(position), "a place beyond the end")
    count += 1
    if position == count - 1 { return append(element) }
    let chunk = chunk(of: position)
    chunks[chunk].insert(element, at: position - starts[chunk])
    if chunks[chunk].count > Self.chunkLength {
      let middle = Self.chunkLength / 2
      let upper = Array(chunks[chunk][middle...])
      chunks[chunk].removeSubrange(middle...)
      chunks.insert(upper, at: chunk + 1)
      starts.insert(starts[chunk], at: chunk + 1)
    }
    recount(from: chunk + 1)
  }

  private mutating func append(_ element: Element) {
    if let last = chunks.indices.last, chunks[last].count < Self.chunkLength {
      chunks[last].append(element)
    } else {
      chunks.append([element])
      starts.append(count - 1)
    }
  }

  /// - Complexity: O(chunk + chunks)
  @discardableResult
  mutating func remove(at position: Int) -> Element {
    precondition(indices.contains(position), "a place beyond the end")
    count -= 1
    let chunk = chunk(of: position)
    let element = chunks[chunk].remove(at: position - starts[chunk])
    if chunks[chunk].isEmpty {
      chunks.remove(at: chunk)
      starts.remove(at: chunk)
      recount(from: chunk)
    } else {
      recount(from: chunk + 1)
    }
    return element
  }

  private mutating func recount(from first: Int) {
    for chunk in first..<chunks.count {
      starts[chunk] = chunk == 0 ? 0 : starts[chunk - 1] + chunks[chunk - 1].count
    }
  }

  private func chunk(of position: Int) -> Int {
    Self.partition(chunks.count) { starts[$0] <= position } - 1
  }

  private static func partition(_ count: Int, _ isBefore: (Int) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if isBefore(middle) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension ChunkedArray: RandomAccessCollection {
  var startIndex: Int { 0 }
  var endIndex: Int { count }

  subscript(position: Int) -> Element {
    precondition(indices.contains(position), "a place beyond the end")
    let chunk = chunk(of: position)
    return chunks[chunk][position - starts[chunk]]
  }

  func makeIterator() -> FlattenSequence<[[Element]]>.Iterator {
    chunks.joined().makeIterator()
  }
}

extension ChunkedArray: Equatable {
  /// The chunk boundaries depend on how a list was built, and are not part of its value.
  static func == (left: Self, right: Self) -> Bool {
    left.count == right.count && left.elementsEqual(right)
  }
}
