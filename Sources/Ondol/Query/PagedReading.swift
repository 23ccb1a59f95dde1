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
  private var page: [Pages.Element] = []
  private var position = 0

  init(_ pages: Pages) {
    self.pages = pages
  }

  /// The next element; nil at the end.
  mutating func next() async throws(DatabaseError) -> Pages.Element? {
    if position == page.count {
      try refuseWhenCancelled("the rest is not read")
      (pages, page) = try await pages.next()
      position = 0
    }
    guard position < page.count else { return nil }
    defer { position += 1 }
    return page[position]
  }
}
