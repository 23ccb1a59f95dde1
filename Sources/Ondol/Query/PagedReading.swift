// A stream of single elements over a source of pages.

/// A source of pages: a value positioned before one of them.
protocol PageSource: Sendable {
  associatedtype Element: Sendable

  /// The source after the next page, and that page; an empty page at the end.
  func next() async throws(DatabaseError) -> (Self, [Element])
}

/// Gives the elements of pages one by one.
struct PagedReading<Pages: PageSource>: Sendable {
  private(set) var pages: Pages
  /// The rest of the page, reversed: the next element is moved from its end and not copied.
  private var rest: [Pages.Element] = []

  init(_ pages: Pages) {
    self.pages = pages
  }

  /// The next element; nil at the end.
  mutating func next() async throws(DatabaseError) -> Pages.Element? {
    if rest.isEmpty {
      try refuseWhenCancelled("the rest is not read")
      (pages, rest) = try await pages.next()
      rest.reverse()
    }
    return rest.popLast()
  }
}
