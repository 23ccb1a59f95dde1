// The write streams of devices. A device sends one group of writes after another and keeps each
// until it is answered. After a lost connection, it opens a stream with its last token and resends
// the unanswered groups. So a token names the group that it follows, and the database records each
// group's commit. A group that arrives twice is committed once, even if the server died in between
// or the device reached another server.
//
// OndolSync names its groups: with each it sends a token of its own that has the number of the
// group and its name, and what a transaction has read by queries (QueryFootprint). Such a group is
// also recorded when it is refused.

#if Server
  import Ondol
  import OndolMapping

  /// A group that a message announces itself.
  struct NamedGroup: Sendable {
    let group: WriteGroup
    /// The token that answers it.
    let token: WriteStreamToken
    /// What a transaction has read by queries.
    let footprints: [QueryFootprint]
  }

  /// The last answered group of a write stream.
  struct WriteStreamToken: Sendable {
    /// The stream's name, a valid document id.
    let stream: String
    /// The number of answered groups of the stream.
    private(set) var count: Int64

    /// The token of a new stream.
    init(newIn database: Database) {
      stream = database.collection("streams").document().documentID
      count = 0
    }

    /// Throws `.invalidArgument` when the bytes are not a token.
    init(_ bytes: [UInt8]) throws(DatabaseError) {
      let parts = String(decoding: bytes, as: UTF8.self).split(separator: ":")
      guard parts.count == 2, let count = Int64(parts[1]), (0..<Int64.max).contains(count),
        WriteGroup(stream: String(parts[0]), number: count + 1) != nil
      else {
        throw DatabaseError(
          .invalidArgument, "the stream token is none that this server has given")
      }
      self.stream = String(parts[0])
      self.count = count
    }

    var bytes: [UInt8] { Array("\(stream):\(count)".utf8) }

    /// The group that a message announces itself; nil for a message with a token of the server's.
    /// Throws `.invalidArgument` for a group of another stream.
    func named(_ bytes: [UInt8]) throws(DatabaseError) -> NamedGroup? {
      let parts = String(decoding: bytes, as: UTF8.self)
        .split(separator: ":", omittingEmptySubsequences: false).map { String($0) }
      guard (3...4).contains(parts.count) else { return nil }
      var token = self
      guard parts[0].utf8.elementsEqual(stream.utf8), let number = Int64(parts[1]),
        let group = WriteGroup(stream: stream, number: number, name: parts[2])
      else {
        throw DatabaseError(.invalidArgument, "the stream token names no group of this stream")
      }
      token.count = number
      let footprints =
        parts.count == 4 ? try QueryFootprint.footprints(in: parts[3]) : []
      return NamedGroup(group: group, token: token, footprints: footprints)
    }

    /// The next group, and the token that answers it.
    func next() throws(DatabaseError) -> (group: WriteGroup, token: WriteStreamToken) {
      let (number, isTooMany) = count.addingReportingOverflow(1)
      guard !isTooMany, let group = WriteGroup(stream: stream, number: number) else {
        throw DatabaseError(.outOfRange, "the stream of writes has had too many groups")
      }
      var token = self
      token.count = number
      return (group, token)
    }
  }
#endif
