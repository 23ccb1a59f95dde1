// Xapian, through functions of CPeers, because it only has a C++ interface.

#if PEER_XAPIAN
  import CPeers

  /// `@unchecked`: only one task at a time uses it.
  package final class XapianStore: SearchStore, @unchecked Sendable {
    package static let name = "Xapian"
    package static let settings =
      "glass, DB_NO_SYNC, BM25 with the constants of the others, positions, pairs of Hangul"
    package static let findsWords = true

    private let peer: OpaquePointer

    private init(_ peer: OpaquePointer) {
      self.peer = peer
    }

    private static func check(_ message: UnsafeMutablePointer<CChar>?, _ call: String) throws {
      guard let message else { return }
      defer { peer_free(message) }
      throw PeerError(name, call, String(cString: message))
    }

    package static func open(_ directory: String) throws -> XapianStore {
      var peer: OpaquePointer?
      try check(xapian_peer_open(directory + "/index", &peer), "open")
      guard let peer else { throw PeerError(name, "open", "nothing") }
      return XapianStore(peer)
    }

    package func put(_ texts: [SearchedText]) throws {
      for text in texts {
        try Self.check(xapian_peer_put(peer, UInt32(text.id) + 1, text.text), "put")
      }
      try Self.check(xapian_peer_commit(peer), "commit")
    }

    private func find(_ question: SearchQuestion, limit: Int) throws -> (count: Int, bytes: Int) {
      var (count, bytes) = (0, 0)
      let (form, text) =
        switch question {
        case .words(let words): (XAPIAN_ANY, words.joined(separator: " "))
        case .phrase(let words): (XAPIAN_PHRASE, words.joined(separator: " "))
        case .prefix(let start): (XAPIAN_PREFIX, start)
        case .syllables(let text): (XAPIAN_ANY, text)
        }
      try Self.check(xapian_peer_find(peer, form, text, limit, &count, &bytes), "find")
      return (count, bytes)
    }

    package func top(_ questions: [SearchQuestion]) throws -> Int {
      try questions.reduce(0) { $0 + (try find($1, limit: 10).bytes) }
    }

    package func count(_ question: SearchQuestion) throws -> Int {
      try find(question, limit: 0).count
    }

    package func close() throws {
      xapian_peer_close(peer)
    }
  }
#endif
