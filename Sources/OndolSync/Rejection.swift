// What the server has refused, kept until the app has seen it.
//
//   writes     array of bytes: as in the outbox
//   contents   array of blobs: as in the outbox
//   code       integer: why, as DatabaseError.Code
//   message    text: the server's words
//   reliedOn   text: the entry that was refused before, when that is the reason
//   unmerged   text: the error of the rule for merges, when that is the reason
//   isCopied   boolean: whether the reason is that the database was copied to another device
//   time       timestamp: when the app made the commit, by this device's clock
//   states     array of maps: path, mine and theirs of each document

#if Sync
  public import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// A commit of this device that the server has refused, or that must not be sent. The documents
  /// are back at what the server has, with the other waiting writes on top.
  public struct Rejection: Sendable, Identifiable {
    /// Why a commit was refused.
    public enum Reason: Sendable, Hashable {
      /// The server refused it: rules forbid it, a document is not as a condition demands, or the
      /// write is invalid.
      case server(DatabaseError.Code, String)
      /// It was made for what another commit left, and that one was refused.
      case relied(on: String)
      /// The database is a copy of another device's, which may have sent the commit. Sending it
      /// again could count it twice.
      case copiedDatabase
      /// The rule that the app has given for merges has thrown this error.
      case unmerged(String)
    }

    /// A document of the commit.
    public struct State: Sendable, Hashable {
      /// Where the document is.
      public let path: DocumentPath
      /// Its fields on this device before they were taken back; nil when it did not exist.
      public let mine: [String: Value]?
      /// Its fields on the server, as this device last saw them; nil when it did not exist.
      public let theirs: [String: Value]?
    }

    /// Names the commit.
    public let id: String
    /// Why it was refused.
    public let reason: Reason
    /// When it was made, by this device's clock.
    public let time: Timestamp
    /// The documents it was about.
    public let documents: [State]
    let writes: [ClientWrite]

    private enum Field {
      static let writes = "writes"
      static let code = "code"
      static let message = "message"
      static let reliedOn = "reliedOn"
      static let isCopied = "isCopied"
      static let unmerged = "unmerged"
      static let time = "time"
      static let states = "states"
      static let path = "path"
      static let mine = "mine"
      static let theirs = "theirs"
    }

    /// Nil for a row that is none.
    init?(_ row: DocumentSnapshot) {
      let fields = row.data()
      id = row.documentID
      guard case .timestamp(let time)? = fields[Field.time],
        case .array(let writes)? = fields[Field.writes],
        case .array(let states)? = fields[Field.states]
      else { return nil }
      self.time = time
      self.writes = writes.compactMap { write in
        guard case .bytes(let bytes) = write, let wire = try? WireWrite(serializedBytes: bytes)
        else { return nil }
        return try? OutboxEntry.stored.write(wire)
      }
      documents = states.compactMap { state in
        guard case .map(let state) = state, case .reference(let path)? = state[Field.path] else {
          return nil
        }
        return State(path: path, mine: state[Field.mine]?.map, theirs: state[Field.theirs]?.map)
      }
      if fields[Field.isCopied] == .boolean(true) {
        reason = .copiedDatabase
      } else if case .string(let error)? = fields[Field.unmerged] {
        reason = .unmerged(error)
      } else if case .string(let name)? = fields[Field.reliedOn] {
        reason = .relied(on: name)
      } else if case .integer(let code)? = fields[Field.code],
        case .string(let message)? = fields[Field.message]
      {
        reason = .server(DatabaseError.Code(rawValue: Int(clamping: code)) ?? .unknown, message)
      } else {
        return nil
      }
    }

    static func fields(
      of entry: OutboxEntry, _ reason: Reason, _ states: [State]
    ) throws(DatabaseError) -> [String: Value] {
      let kept = [Field.writes, OutboxEntry.contentsField]
      var fields = try entry.fields().fields.filter { kept.contains($0.key) }
      fields[Field.time] = .timestamp(entry.time)
      fields[Field.states] = .array(
        states.map { state in
          var map: [String: Value] = [Field.path: .reference(state.path)]
          map[Field.mine] = state.mine.map { .map($0) }
          map[Field.theirs] = state.theirs.map { .map($0) }
          return .map(map)
        })
      switch reason {
      case .server(let code, let message):
        fields[Field.code] = .integer(Int64(code.rawValue))
        fields[Field.message] = .string(message)
      case .relied(let name): fields[Field.reliedOn] = .string(name)
      case .copiedDatabase: fields[Field.isCopied] = .boolean(true)
      case .unmerged(let error): fields[Field.unmerged] = .string(error)
      }
      return fields
    }
  }

  /// Rejections as they come; see ``Sync/rejections``.
  public struct Rejections: AsyncSequence, Sendable {
    /// A rejection.
    public typealias Element = Rejection
    /// The errors of listening.
    public typealias Failure = DatabaseError

    let rows: Updates<QuerySnapshot>

    /// Begins with those that were not dismissed.
    public func makeAsyncIterator() -> Iterator {
      Iterator(changes: rows.makeAsyncIterator())
    }

    /// Goes through the rejections.
    public struct Iterator: AsyncIteratorProtocol {
      var changes: Updates<QuerySnapshot>.Iterator
      private var waiting: [Rejection] = []

      init(changes: Updates<QuerySnapshot>.Iterator) {
        self.changes = changes
      }

      /// The next rejection; nil when the task is cancelled or the database is closed.
      ///
      /// - Throws: `.unavailable` when commits cannot be followed any more.
      public mutating func next(
        isolation actor: isolated (any Actor)? = #isolation
      ) async throws(DatabaseError) -> Rejection? {
        while waiting.isEmpty {
          guard let snapshot = try await changes.next(isolation: actor) else { return nil }
          waiting = snapshot.documentChanges.filter { $0.type == .added }
            .compactMap { Rejection($0.document) }
        }
        return waiting.removeFirst()
      }
    }
  }
#endif
