// The streams that devices write by. A device sends one group of writes after the other and keeps
// each until it is answered. When the connection ends in between, it opens a stream with the last
// token it was given and sends again what has no answer. So a token says which group it follows,
// and the database records with each group that it is committed: what arrives twice is committed
// once, also when the server died in between or the device came to another one.

#if Server
  import Ondol

  /// Which group of writes of which stream was answered last.
  struct WriteStreamToken: Sendable {
    /// The stream's name: what a document's id can be.
    let stream: String
    /// Groups of the stream that were answered.
    private(set) var count: Int64

    /// A new stream's.
    init(newIn database: Database) {
      stream = database.collection("streams").document().documentID
      count = 0
    }

    /// Throws `.invalidArgument` when the bytes are no token's.
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

    /// The group that follows, and the token that answers it.
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
