// The groups of writes that a device sends in a stream, one after the other, each of which is
// committed once. A device that got no answer cannot know whether the group was committed, and
// sends it again, perhaps much later and to another process. So the commit of a group also records
// its number (WriteStreamRows), and a group that is recorded is answered and not committed.
//
// A device that names its groups gets more: the record keeps the last names. A group that was
// refused is recorded as well, so that a late copy of it cannot be committed after its device has
// gone on. And a number that comes again with an unknown name is from another device, which took
// over the first one's identity with a copy of its database.

internal import OndolEngine

/// A group of writes by its place in a stream.
package struct WriteGroup: Sendable {
  let stream: String
  let number: Int64
  /// Tells the group from all others of the stream; nil when the device does not name them.
  let name: String?

  private static let day: Int64 = 86_400_000_000
  private static let longestName = 64

  /// Nil when a stream cannot have this name or the number is below 1.
  ///
  /// - Parameters:
  ///   - stream: the stream's name: what a document's id can be.
  ///   - number: the first group of a stream has 1.
  ///   - name: up to 64 bytes.
  package init?(stream: String, number: Int64, name: String? = nil) {
    guard ResourceName.problem(withID: stream) == nil, number > 0 else { return nil }
    if let name {
      guard !name.isEmpty, name.utf8.count <= Self.longestName else { return nil }
    }
    self.stream = stream
    self.number = number
    self.name = name
  }

  var path: DocumentPath { WriteStreamRows.document(stream) }

  /// The place of the record among a commit's writes, for those that queue by documents.
  var place: DocumentWrite { DocumentWrite(path: path, intent: WriteIntent(change: .keep)) }

  /// The write that records the group as committed, or as refused. The record lives for 30 days and
  /// what is left of the present one, so that most commits leave the index of ends as it is.
  func write(
    at now: Int64, after record: WriteStreamRecord?, refusedFor error: DatabaseError? = nil
  ) -> DocumentWrite {
    var fields: [String: Value] = [WriteStreamRows.Field.group: .integer(number)]
    let days = now / Self.day + 31
    let (end, isTooLate) = days.multipliedReportingOverflow(by: Self.day)
    if !isTooLate, let ends = try? Timestamp(microsecondsSince1970: end) {
      fields[WriteStreamRows.Field.ends] = .timestamp(ends)
    }
    if let name {
      let known = (record?.names ?? []).suffix(WriteStreamRecord.mostNames - 1)
      // The last one's time is the record's own.
      let last = WriteStreamRecord.Name(name: name, time: nil, error: error)
      fields[WriteStreamRows.Field.names] = .bytes(WriteStreamRecord.Name.bytes(known + [last]))
    }
    return DocumentWrite(path: path, intent: WriteIntent(change: .replace(fields: fields)))
  }
}

/// What is recorded of a stream.
struct WriteStreamRecord: Sendable {
  /// Groups that a device may have sent without having written down their answers.
  static let mostNames = 64

  /// What is known of a named group.
  struct Name: Sendable {
    let name: String
    /// When it was committed or refused; nil in the record that is to be written.
    let time: Timestamp?
    /// Why it was refused; nil when it is committed.
    let error: DatabaseError?
  }

  /// The number of the last group.
  let last: Int64
  /// The last groups.
  let names: [Name]
  /// When it was recorded.
  let time: Timestamp

  fileprivate init?(_ contents: DocumentSnapshot.Contents) {
    guard let last = contents.value(at: [WriteStreamRows.Field.group])?.integer else { return nil }
    self.last = last
    time = contents.stamps.updateTime
    names =
      switch contents.value(at: [WriteStreamRows.Field.names]) {
      case .bytes(let bytes)?: Name.names(in: bytes, at: time)
      case .array(let values)?: values.compactMap { [time] value in Name(value, at: time) }
      default: []
      }
  }

  /// What is known of a group.
  enum Knowledge: Sendable {
    case new
    /// It was committed at this time, or before it when it has no name.
    case committed(Timestamp)
    case refused(DatabaseError)
    /// Another device has sent groups in this stream.
    case foreign
  }

  func knowledge(of group: WriteGroup) -> Knowledge {
    guard let name = group.name else { return last >= group.number ? .committed(time) : .new }
    if let known = names.last(where: { isSame($0.name, name) }) {
      return known.error.map { .refused($0) } ?? .committed(known.time ?? time)
    }
    return last >= group.number ? .foreign : .new
  }
}

extension WriteStreamRecord.Name {
  /// Stands for the time of the record that is to be written.
  private static let recordsOwn = Int64.min

  /// Names as one value: each commit of a device writes all of them.
  fileprivate static func bytes(_ names: some Sequence<Self>) -> [UInt8] {
    var writer = RecordWriter()
    for name in names {
      writer.append(text: name.name)
      writer.append(
        word: UInt64(bitPattern: name.time?.microsecondsSince1970 ?? Self.recordsOwn))
      writer.append(flag: name.error != nil)
      guard let error = name.error else { continue }
      writer.append(count: error.code.rawValue)
      writer.append(text: error.message)
    }
    return writer.take()
  }

  /// Reads what `bytes(_:)` has made, up to a place that is damaged.
  fileprivate static func names(in bytes: [UInt8], at recorded: Timestamp) -> [Self] {
    var reader = RecordReader(bytes)
    var names: [Self] = []
    do throws(MalformedBytes) {
      while !reader.isAtEnd {
        let name = try reader.text()
        let time = Int64(bitPattern: try reader.word())
        var error: DatabaseError?
        if try reader.flag() {
          let code = DatabaseError.Code(rawValue: try reader.count()) ?? .unknown
          error = DatabaseError(code, try reader.text())
        }
        let known = try? Timestamp(microsecondsSince1970: time)
        names.append(Self(name: name, time: known ?? recorded, error: error))
      }
    } catch {}
    return names
  }

  /// Reads the form that records had before; nil for anything else. It can go once no record of
  /// that form can be alive.
  fileprivate init?(_ value: Value, at recorded: Timestamp) {
    guard case .array(let parts) = value, parts.count == 2 || parts.count == 4,
      case .string(let name) = parts[0]
    else { return nil }
    var error: DatabaseError?
    if parts.count == 4, case .integer(let code) = parts[2], case .string(let message) = parts[3] {
      error = DatabaseError(DatabaseError.Code(rawValue: Int(clamping: code)) ?? .unknown, message)
    }
    let time = if case .timestamp(let time) = parts[1] { time } else { recorded }
    self.init(name: name, time: time, error: error)
  }
}

extension Rows {
  /// What is recorded of a group's stream; nil when nothing is.
  func record(of group: WriteGroup) throws(DatabaseError) -> WriteStreamRecord? {
    try DocumentReader(rows: self).contents(of: group.path).flatMap { WriteStreamRecord($0) }
  }
}

/// Two devices send groups in one stream.
package enum ForeignGroup {
  private static let message = "another device has sent its writes under this one's identity"

  static var error: DatabaseError { DatabaseError(.aborted, message) }

  /// Whether an error says so.
  package static func isReason(of error: DatabaseError) -> Bool {
    error.code == .aborted && error.message == message
  }
}

extension Database {
  /// Has records of streams removed after their end. To be called before the first group is
  /// committed; all calls but the first find nothing to do.
  ///
  /// - Throws: as `CollectionReference.setTimeToLive(field:)`.
  /// - Complexity: O(1) lookups; the first time one commit.
  package func prepareForWriteGroups() async throws(DatabaseError) {
    try await expire([WriteStreamRows.Field.ends], of: WriteStreamRows.pattern)
  }

  /// Records that a group with a name was refused, so that it is never committed. Does nothing when
  /// anything is recorded of the group already.
  ///
  /// - Throws: as `DocumentReference.setData(_:merge:returning:ifVersion:durability:)`.
  package func refuse(_ group: WriteGroup, for error: DatabaseError) async throws(DatabaseError) {
    _ = try await commit(.documents([group.place]), durability: nil) {
      (snapshot) throws(DatabaseError) in
      let moment = now()
      let prepared = try await read(snapshot, asOf: moment) { (rows) throws(DatabaseError) in
        let record = try rows.record(of: group)
        if let record {
          guard case .new = record.knowledge(of: group) else { return PreparedCommit?.none }
        }
        return try WritePreparation.prepare(
          [group.write(at: moment, after: record, refusedFor: error)], in: rows)
      }
      return prepared.map { Derivation($0) } ?? Derivation(outcome: [], batch: Batch())
    }
  }
}
