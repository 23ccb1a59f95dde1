// A stream of single elements over a source of pages.

/// Where pages come from: a value that is at one of them.
protocol PageSource: Sendable {
  associatedtype Element: Sendable

  /// What is behind the next page, and that page; empty at the end.
  func next() async throws(DatabaseError) -> (Self, [Element])
}

/// Gives what is in pages one by one.
struct PagedReading<Pages: PageSource>: Sendable {
  private(set) var pages: Pages
  /// What is left of the page, backwards: the next is moved out of its end and not copied.
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
