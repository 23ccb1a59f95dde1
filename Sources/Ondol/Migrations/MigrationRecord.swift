// The record of a migration in a database: a document of a root collection that apps cannot name,
// so that transactions write it in their commits, and it is kept, checked, dumped and saved like
// documents.
//
//   __migrations__/<name>
//     number     place in the order in which they were begun
//     begun      timestamp
//     finished   timestamp, once its last step is done
//     steps      array of maps:
//       kind     transform, renameField, renameCollection, run
//       in       array of the collection ids of the pattern
//       from, to arrays of names: of a field, or of a collection's pattern
//       since    the commit after which documents have the step's result; for a renamed
//                collection: the newest commit before the renaming, absent if there was none
//       done     whether it is
//       failed   how many documents could not be changed
//       failing  array of maps with path and reason: the first of those, but for documents in
//                collections with keys of their own
//
// A step records `since` before it changes anything. From then on a document must be changed when
// the commit that wrote it is not after that one. Changing it is a later commit, so it is changed
// only once.

internal import OndolEngine

/// The record of one migration.
struct MigrationRecord: Sendable, Hashable {
  struct Step: Sendable, Hashable {
    var form: MigrationStep.Form
    /// Documents of later commits have the step's result; nil before it has begun, and for steps
    /// that change no documents. A renamed collection had its old name then.
    var since: UInt64?
    var isDone = false
    var failureCount = 0
    var failures: [MigrationFailure] = []

    init(_ form: MigrationStep.Form) {
      self.form = form
    }
  }

  var name: String
  var number: Int
  var begun: Timestamp
  var finished: Timestamp?
  var steps: [Step]

  var isFinished: Bool { finished != nil }
  var failureCount: Int { steps.reduce(0) { $0 + $1.failureCount } }
  var failures: [MigrationFailure] { steps.flatMap(\.failures) }
}

// MARK: - As documents

extension MigrationRecord {
  /// The fields of the document.
  var fields: [String: Value] {
    var fields: [String: Value] = [
      "number": .integer(Int64(number)), "begun": .timestamp(begun),
      "steps": .array(steps.map { .map($0.fields) }),
    ]
    if let finished { fields["finished"] = .timestamp(finished) }
    return fields
  }

  /// Returns nil when the fields are not those of a record.
  init?(name: String, _ fields: [String: Value]) {
    guard let number = fields["number"]?.integer.flatMap(Int.init(exactly:)),
      let begun = fields["begun"]?.timestamp, let list = fields["steps"]?.array
    else { return nil }
    var steps: [Step] = []
    for value in list {
      guard let step = value.map.flatMap({ Step($0) }) else { return nil }
      steps.append(step)
    }
    self.init(
      name: name, number: number, begun: begun, finished: fields["finished"]?.timestamp,
      steps: steps)
  }

  /// The write of the record, to be made part of a commit.
  var write: DocumentWrite {
    DocumentWrite(
      path: MigrationRows.document(name), intent: WriteIntent(change: .replace(fields: fields)))
  }
}

extension MigrationRecord.Step {
  fileprivate var fields: [String: Value] {
    var fields: [String: Value] = ["done": .boolean(isDone)]
    switch form {
    case .transform(let pattern):
      fields["kind"] = "transform"
      fields["in"] = .texts(pattern.collectionIDs)
    case .renameField(let pattern, let renaming):
      fields["kind"] = "renameField"
      fields["in"] = .texts(pattern.collectionIDs)
      fields["from"] = .texts(renaming.field)
      fields["to"] = .texts(renaming.target)
    case .renameCollection(let renaming):
      fields["kind"] = "renameCollection"
      fields["from"] = .texts(renaming.pattern.collectionIDs)
      fields["to"] = .texts(renaming.target.collectionIDs)
    case .run: fields["kind"] = "run"
    }
    if let since { fields["since"] = .integer(Int64(since)) }
    if failureCount > 0 {
      fields["failed"] = .integer(Int64(failureCount))
      fields["failing"] = .array(
        failures.map { .map(["path": .string($0.path), "reason": .string($0.reason)]) })
    }
    return fields
  }

  fileprivate init?(_ fields: [String: Value]) {
    func texts(_ name: String) -> [String]? {
      guard let texts = fields[name]?.array?.map(\.string), !texts.isEmpty,
        !texts.contains(nil)
      else { return nil }
      return texts.compactMap(\.self)
    }
    func pattern(_ name: String) -> CollectionPattern? { texts(name).map(CollectionPattern.init) }
    switch fields["kind"]?.string {
    case "transform"?:
      guard let pattern = pattern("in") else { return nil }
      form = .transform(pattern)
    case "renameField"?:
      guard let pattern = pattern("in"), let from = texts("from"), let to = texts("to"),
        let renaming = try? FieldRenaming(from, to)
      else { return nil }
      form = .renameField(pattern, renaming)
    case "renameCollection"?:
      guard let from = pattern("from"), let to = pattern("to"),
        let renaming = try? CollectionRenaming(from, to)
      else { return nil }
      form = .renameCollection(renaming)
    case "run"?: form = .run
    default: return nil
    }
    since = fields["since"]?.integer.flatMap(UInt64.init(exactly:))
    isDone = fields["done"]?.boolean ?? false
    failureCount = fields["failed"]?.integer.flatMap(Int.init(exactly:)) ?? 0
    for failure in fields["failing"]?.array ?? [] {
      guard let path = failure.map?["path"]?.string, let reason = failure.map?["reason"]?.string
      else { return nil }
      failures.append(MigrationFailure(path: path, reason: reason))
    }
  }
}

extension Value {
  fileprivate static func texts(_ texts: [String]) -> Value { .array(texts.map { .string($0) }) }
}

// MARK: - Reading

extension Rows {
  /// All records, in the order in which their migrations were begun.
  func migrationRecords() throws(DatabaseError) -> [MigrationRecord] {
    guard let entry = try entry(of: MigrationRows.pattern) else { return [] }
    let naming = DocumentNaming(MigrationRows.pattern, entry.keyspace, collection: nil)
    var records: [MigrationRecord] = []
    var walk = RangeWalk(self, [KeyRange(prefix: entry.keyspace.prefix)])
    while try walk.next() {
      let path = try naming.path(of: walk.cursor.key)
      let row = try walk.value
      let fields: [String: Value]
      do throws(MalformedBytes) {
        fields = try DocumentView(row).fields(entry.symbols)
      } catch {
        throw DatabaseError(error, documentAt: path)
      }
      guard let record = MigrationRecord(name: path.documentID, fields) else {
        throw DatabaseError(
          .unimplemented,
          "what the database records of the migration \"\(path.documentID)\" was written by a newer"
            + " version; open the database with that version")
      }
      records.append(record)
    }
    return records.sorted { $0.number < $1.number }
  }
}

extension Database {
  /// All records, in the order in which their migrations were begun.
  func migrationRecords() async throws(DatabaseError) -> [MigrationRecord] {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.migrationRecords()
    }
  }
}
