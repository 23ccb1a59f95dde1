// The task that fetches contents before anybody reads them, for apps that want to have all of them
// without a network. What it has fetched is stored, so a restart looks once for what is missing.

#if Sync
  import Ondol
  import OndolEngine

  /// Contents to fetch, each once, in the order in which they were named.
  struct FetchQueue: Sendable {
    private var queue: ArraySlice<ExchangedContent> = []
    private var names: Set<ExchangedContent> = []

    var isEmpty: Bool { queue.isEmpty }
    var first: ExchangedContent? { queue.first }

    mutating func append(_ contents: some Sequence<ExchangedContent>) {
      for content in contents where names.insert(content).inserted { queue.append(content) }
    }

    mutating func removeFirst() {
      if let first = queue.popFirst() { names.remove(first) }
    }
  }

  extension SyncEngine {
    /// Contents that are looked at together.
    private static let stretch = 1_000

    /// Notes the contents of documents that have arrived.
    func expectContents(of moment: ServerMoment) {
      guard isEager else { return }
      for (_, change) in moment.changes.sorted(by: { $0.key < $1.key }) {
        guard case .shown(let document) = change.state else { continue }
        awaited.append(document.fields.exchangedContents)
      }
      if !awaited.isEmpty { contentBell.ring() }
    }

    /// Fetches until the task is cancelled.
    func fetchContents() async {
      var backoff = Backoff()
      var hasLooked = false
      while !Task.isCancelled {
        do {
          if !hasLooked { try await lookForContents() }
          hasLooked = true
          guard let next = awaited.first else {
            await contentBell.wait()
            continue
          }
          try await fetch(next)
          awaited.removeFirst()
          backoff.reset()
        } catch {
          guard !Task.isCancelled else { return }
          await contentBell.wait(atMost: backoff.pause(environment), in: environment)
        }
      }
    }

    private func fetch(_ content: ExchangedContent) async throws(DatabaseError) {
      do throws(DatabaseError) {
        try await exchange.fetch(content.digest, length: content.length)
      } catch {
        guard
          ![.unavailable, .unauthenticated, .cancelled, .resourceExhausted].contains(error.code)
        else { throw error }
        // A reader gets the error. The next opening tries again.
      }
    }

    private func lookForContents() async throws(DatabaseError) {
      var last: BlobDigest?
      repeat {
        let found = try await database.contentsAway(after: last, atMost: Self.stretch)
        awaited.append(found.contents)
        last = found.last
      } while last != nil
    }
  }
#endif
