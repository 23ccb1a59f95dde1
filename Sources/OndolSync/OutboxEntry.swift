// A commit of this device on its way to the server: its writes, as the app meant them, and the
// states of documents that they rely on. The entry is a row of the commit itself, so both survive a
// crash or neither does.
//
//   writes     array of bytes: each write as a message of the protocol
//   reliances  array, one for each write: null for none; the server's time of the document's last
//              update; the name of the entry that made the state; false for no document
//   session    text: the opening of the database that made it
//   time       timestamp: when it was made, by this device's clock
//   order      integer: its place among all entries, once the row was written again. Before that
//              the row's version is its place.
//   answered   timestamp: when the server committed it
//   contents   array of blobs: the contents that the writes name, which the entry holds until the
//              server has them; missing when there are none
//   results    array: the time of each written document's update on the server, null for no
//              document

#if Sync
  import Foundation
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// The state of a document that a write was made for.
  enum Reliance: Sendable, Hashable {
    case none
    /// As the server last updated it at this time.
    case updated(Timestamp)
    /// As an earlier entry leaves it.
    case after(String)
    case absent
  }

  /// A commit that the server does not have, or that this device has not seen come back.
  struct OutboxEntry: Sendable {
    struct Write: Sendable {
      var write: ClientWrite
      var reliance = Reliance.none
    }

    /// What the server said.
    struct Answer: Sendable {
      /// When it was committed.
      var time: Timestamp
      /// When each write's document was last updated; nil for one that does not exist.
      var updates: [Timestamp?]
    }

    let name: String
    var writes: [Write]
    var session: String
    var time: Timestamp
    var order: Int64
    var answer: Answer?

    /// The documents that it is about, each once, in the order of their first writes.
    var paths: [DocumentPath] {
      var seen: Set<DocumentPath> = []
      return writes.map(\.write.path).filter { seen.insert($0).inserted }
    }

    /// The names of the entries that must be answered first.
    var reliedOn: [String] {
      writes.compactMap { if case .after(let name) = $0.reliance { name } else { nil } }
    }

    /// When the server last updated a document that the entry wrote, as of its commit. Nil when the
    /// entry has no answer.
    func update(of path: DocumentPath) -> Reliance? {
      guard let answer, let last = writes.lastIndex(where: { $0.write.path == path }),
        answer.updates.indices.contains(last)
      else { return nil }
      return answer.updates[last].map { .updated($0) } ?? .absent
    }
  }

  // MARK: - As a row

  extension OutboxEntry {
    /// The names that stored messages have. What is sent has the server's.
    static let stored = ValueMapping(database: DatabaseName(project: "device", id: "(default)"))

    private enum Field {
      static let writes = "writes"
      static let reliances = "reliances"
      static let session = "session"
      static let time = "time"
      static let order = "order"
      static let answered = "answered"
      static let results = "results"
      static let contents = "contents"
    }

    /// Throws `.dataLoss` for a row that is none.
    init(_ row: DocumentSnapshot) throws(DatabaseError) {
      let fields = row.data()
      name = row.documentID
      let damaged = DatabaseError(
        .dataLoss, "the row of a waiting write is damaged", path: row.reference.path)
      guard case .array(let writes)? = fields[Field.writes],
        case .array(let reliances)? = fields[Field.reliances], reliances.count == writes.count,
        case .string(let session)? = fields[Field.session],
        case .timestamp(let time)? = fields[Field.time]
      else { throw damaged }
      self.session = session
      self.time = time
      order = Int64(clamping: row.version.rawValue)
      if case .integer(let known)? = fields[Field.order] { order = known }
      self.writes = []
      for (write, reliance) in zip(writes, reliances) {
        guard case .bytes(let bytes) = write,
          let message = try? WireWrite(serializedBytes: bytes),
          let reliance = Reliance(reliance)
        else { throw damaged }
        self.writes.append(
          Write(write: try Self.stored.write(message), reliance: reliance))
      }
      guard case .timestamp(let answered)? = fields[Field.answered] else { return }
      guard case .array(let results)? = fields[Field.results], results.count == writes.count else {
        throw damaged
      }
      answer = Answer(
        time: answered,
        updates: results.map { if case .timestamp(let time) = $0 { time } else { nil } })
    }

    /// The row's fields, and how many bytes the writes take.
    ///
    /// - Parameter isNew: whether it is the first time; the row's version is then its place.
    func fields(isNew: Bool = false) throws(DatabaseError) -> (fields: [String: Value], bytes: Int)
    {
      var (messages, bytes): ([Value], Int) = ([], 0)
      for write in writes {
        guard let message: [UInt8] = try? Self.stored.wire(write.write).serializedBytes() else {
          throw DatabaseError(
            .invalidArgument, "the write cannot be sent to a server", path: write.write.path.name)
        }
        bytes += message.count
        messages.append(.bytes(message))
      }
      var fields: [String: Value] = [
        Field.writes: .array(messages), Field.reliances: .array(writes.map(\.reliance.value)),
        Field.session: .string(session), Field.time: .timestamp(time),
      ]
      if !isNew { fields[Field.order] = .integer(order) }
      var contents: [Value] = []
      for content in self.contents { contents.append(.blob(try content.reference)) }
      if !contents.isEmpty { fields[Field.contents] = .array(contents) }
      if let answer {
        fields[Field.answered] = .timestamp(answer.time)
        fields[Field.results] = .array(answer.updates.map { $0.map { .timestamp($0) } ?? .null })
      }
      return (fields, bytes)
    }
  }

  extension OutboxEntry {
    /// The field that holds contents.
    static let contentsField = Field.contents

    /// The contents that the writes name, each once.
    var contents: [ExchangedContent] {
      var seen: Set<ExchangedContent> = []
      return writes.flatMap(\.write.contents).filter { seen.insert($0).inserted }
    }
  }

  extension DocumentPath {
    /// The path as text.
    var name: String { segments.joined(separator: "/") }
  }

  extension Reliance {
    init?(_ value: Value) {
      switch value {
      case .null: self = .none
      case .timestamp(let time): self = .updated(time)
      case .string(let name): self = .after(name)
      case .boolean(false): self = .absent
      default: return nil
      }
    }

    var value: Value {
      switch self {
      case .none: .null
      case .updated(let time): .timestamp(time)
      case .after(let name): .string(name)
      case .absent: .boolean(false)
      }
    }
  }
#endif
