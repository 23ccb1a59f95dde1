// A commit of this device on its way to the server: its writes, as the app meant them, and the
// states of documents that they rely on. The entry is a row of the commit itself, so both survive a
// crash or neither does.
//
//   writes     array of bytes: each write as a message of the protocol
//   reliances  array, one for each write: null for none; the server's time of the document's last
//              update; the name of the entry that made the state; false for no document
//   merging    array of integers: the places of writes that a merge may change, if there are any
//   footprints text: what a transaction has read by queries, if it has (QueryFootprint)
//   held       map, code, message and time: why the server refused an entry that waits to be
//              merged, and as of when, if it has said that
//   delayed    boolean: whether later entries may be sent before it, as it relies on one that waits
//              to be merged
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

    /// A state that the server never has, so that it refuses what relies on it.
    static let impossible = Reliance.updated(.minimum)
  }

  /// A commit that the server does not have, or that this device has not seen come back.
  struct OutboxEntry: Sendable {
    struct Write: Sendable {
      var write: ClientWrite
      var reliance = Reliance.none
      /// Whether the write is merged with the server's state when it no longer relies on it.
      var mayMerge = false
    }

    /// Why the server refused it.
    struct Refusal: Sendable {
      var reason: DatabaseError
      /// The server's time of the newest commit that it knew; nil when it has not said that.
      var time: Timestamp?
    }

    /// What the server said.
    struct Answer: Sendable {
      /// When it was committed.
      var time: Timestamp
      /// When each write's document was last updated; nil for one that does not exist.
      var updates: [Timestamp?]
    }

    var name: String
    var writes: [Write]
    var session: String
    var time: Timestamp
    var order: Int64
    var answer: Answer?
    /// What a transaction has read by queries, with stored names.
    var footprints: [QueryFootprint] = []
    /// Why the server refused it, while it waits to be merged.
    var held: Refusal?
    /// Whether later entries may be sent before it, because it relies on one that waits to be
    /// merged. When it can be sent, it takes a place after all that may have been sent: the server
    /// knows a device by the order of its entries.
    var isDelayed = false

    /// The documents that it is about, each once, in the order of their first writes.
    var paths: [DocumentPath] {
      var seen: Set<DocumentPath> = []
      return writes.map(\.write.path).filter { seen.insert($0).inserted }
    }

    /// The names of the entries that must be answered first.
    var reliedOn: [String] {
      writes.compactMap { if case .after(let name) = $0.reliance { name } else { nil } }
    }

    /// Whether it must be refused when another entry is.
    func standsOrFalls(with name: String) -> Bool {
      writes.contains { !$0.mayMerge && $0.reliance == .after(name) }
    }

    /// Whether the state in which the entry leaves a document follows from the state that this
    /// device shows. Otherwise it also contains what others have written before it.
    func determines(_ path: DocumentPath) -> Bool {
      let own = writes.filter { $0.write.path == path }
      if own.first?.reliance != Reliance.none { return true }
      return own.contains { one in
        switch one.write.change {
        case .replace, .delete: true
        case .patch, .verify: false
        }
      }
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

  extension OutboxEntry {
    /// The documents that a merge may change.
    var mergedPaths: [DocumentPath] {
      var seen: Set<DocumentPath> = []
      return writes.filter(\.mayMerge).map(\.write.path).filter { seen.insert($0).inserted }
    }
  }

  // MARK: - As a row

  extension OutboxEntry {
    /// The names that stored messages have. What is sent has the server's.
    static let stored = ValueMapping(database: DatabaseName(project: "device", id: "(default)"))

    private enum Field {
      static let writes = "writes"
      static let reliances = "reliances"
      static let merging = "merging"
      static let footprints = "footprints"
      static let held = "held"
      static let delayed = "delayed"
      static let code = "code"
      static let message = "message"
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
      if case .array(let places)? = fields[Field.merging] {
        for case .integer(let place) in places {
          guard let index = Int(exactly: place), self.writes.indices.contains(index) else {
            throw damaged
          }
          self.writes[index].mayMerge = true
        }
      }
      if case .string(let text)? = fields[Field.footprints] {
        footprints = try QueryFootprint.footprints(in: text)
      }
      isDelayed = fields[Field.delayed] == .boolean(true)
      if case .map(let held)? = fields[Field.held], case .integer(let code)? = held[Field.code],
        case .string(let message)? = held[Field.message]
      {
        let reason = DatabaseError(
          DatabaseError.Code(rawValue: Int(clamping: code)) ?? .unknown, message)
        self.held = Refusal(reason: reason)
        if case .timestamp(let time)? = held[Field.time] { self.held?.time = time }
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
    /// - Parameter isNew: whether the entry takes a new place, which is then the row's version.
    func fields(isNew: Bool = false) throws(DatabaseError) -> (fields: [String: Value], bytes: Int)
    {
      var (messages, bytes): ([Value], Int) = ([], 0)
      for write in writes {
        guard let message: [UInt8] = try? Self.stored.wire(write.write).serializedBytes() else {
          throw DatabaseError(
            .invalidArgument, "the write cannot be sent to a server", path: "\(write.write.path)")
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
      let merging = writes.indices.filter { writes[$0].mayMerge }
      if !merging.isEmpty { fields[Field.merging] = .array(merging.map { .integer(Int64($0)) }) }
      if !footprints.isEmpty {
        let text = try QueryFootprint.text(of: footprints)
        bytes += text.utf8.count
        fields[Field.footprints] = .string(text)
      }
      if isDelayed { fields[Field.delayed] = .boolean(true) }
      if let held {
        var map: [String: Value] = [
          Field.code: .integer(Int64(held.reason.code.rawValue)),
          Field.message: .string(held.reason.message),
        ]
        map[Field.time] = held.time.map { .timestamp($0) }
        fields[Field.held] = .map(map)
      }
      if let answer {
        fields[Field.answered] = .timestamp(answer.time)
        fields[Field.results] = .array(answer.updates.map { $0.map { .timestamp($0) } ?? .null })
      }
      return (fields, bytes)
    }
  }

  extension OutboxEntry {
    /// An entry to send, and its place among all.
    struct Place: Sendable, Hashable, Comparable {
      let order: Int64
      let name: String

      static func < (left: Place, right: Place) -> Bool {
        (left.order, left.name) < (right.order, right.name)
      }
    }

    /// Its place among all.
    var place: Place { Place(order: order, name: name) }

    /// The place of a row's entry, without its writes; nil when it has an answer, or waits to be
    /// merged.
    static func openPlace(_ row: DocumentSnapshot) -> Place? {
      let answered: Value? = row[FieldPath(Field.answered)]
      let held: Value? = row[FieldPath(Field.held)]
      guard answered == nil, held == nil else { return nil }
      let order: Int64? = row[FieldPath(Field.order)]
      return Place(order: order ?? Int64(clamping: row.version.rawValue), name: row.documentID)
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
