// `aggregate` and `distinct`: the last rows that most reports see. It takes rows of other stages,
// and documents straight from a scan: then groups and numbers are read from the documents' bytes,
// and nothing is decoded that is only counted or compared.

internal import OndolEngine

/// Groups rows by expressions and computes aggregates of each group.
final class AggregateOperator: RowSink, DocumentSink {
  private let stage: StaticString
  private let context: PipelineContext
  private let groupNames: [String]
  private let columnNames: [String]
  /// The groups' expressions, then the columns'.
  private let expressions: StageExpressions
  private var groups: PipelineGroups
  private let columns: [AggregateColumn]
  /// Bytes that the groups keep.
  private var kept = 0
  /// Groups that were written to the scratch file, and how many they were.
  private var spilled: SortedRows<GroupState>?
  private var spilledCount = 0
  private let next: any RowSink
  /// How the expressions are read from documents' bytes; nil when one must be computed.
  private let sources: DocumentSources?
  private var readers: [FieldsOfPart] = []
  private var bytes: [UInt8] = []
  private var previous: (part: Int, place: Int)?
  private var previousBytes: [UInt8] = []
  /// Bytes of new groups of the document that is being added.
  private var pendingBytes = 0

  convenience init(
    _ aggregates: [AliasedAggregate], groups: [AliasedExpression], _ context: PipelineContext,
    _ next: any RowSink
  ) throws(DatabaseError) {
    guard !aggregates.isEmpty else {
      throw DatabaseError(
        .invalidArgument,
        "the stage aggregate requires at least one accumulator; distinct gives groups alone")
    }
    try self.init("aggregate", aggregates, groups, context, next)
  }

  /// Groups without aggregates.
  convenience init(
    distinct groups: [AliasedExpression], _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    try self.init("distinct", [], groups, context, next)
  }

  private init(
    _ stage: StaticString, _ aggregates: [AliasedAggregate], _ groups: [AliasedExpression],
    _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    var columns: [AggregateColumn] = []
    for aggregate in aggregates { columns.append(try AggregateColumn(aggregate.aggregate)) }
    let operands = aggregates.map { $0.aggregate.argument ?? PipelineExpression(.null) }
    expressions = try StageExpressions(
      groups.map(\.expression) + operands, of: stage, context)
    self.stage = stage
    self.context = context
    self.next = next
    groupNames = groups.map(\.name)
    columnNames = aggregates.map(\.name)
    self.columns = columns
    self.groups = PipelineGroups(columns)
    sources = DocumentSources(expressions, groupCount: groups.count, columns)
    // Without groups there is one result even of no rows.
    if groups.isEmpty { _ = self.groups.place(of: []) }
  }

  // MARK: - Rows

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    expressions.load(row)
    try addLoaded()
    return true
  }

  /// Adds the row that is loaded.
  private func addLoaded() throws(DatabaseError) {
    var key: [Value] = []
    key.reserveCapacity(groupNames.count)
    for index in groupNames.indices { key.append(try expressions.value(index) ?? .null) }
    let (place, kept) = groups.place(of: key)
    var bytes = kept
    var values: [Value?] = []
    values.reserveCapacity(columnNames.count)
    for index in columnNames.indices {
      // Aggregates pass over values that cannot be computed.
      values.append(try? expressions.value(groupNames.count + index))
    }
    bytes += groups.add(values, to: place)
    if bytes > 0 { try keep(bytes) }
  }

  // MARK: - Documents

  var needsKeys: Bool { expressions.fields.contains { $0.form == .name } }

  func begin(_ parts: [QueryPart]) {
    readers = parts.map { FieldsOfPart(expressions.fields, $0) }
  }

  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool {
    guard let sources else {
      try readers[part].load(view, key, into: expressions.frame)
      try addLoaded()
      return true
    }
    do throws(MalformedBytes) {
      let place = try place(of: view, part, sources)
      for index in sources.columns.indices {
        try add(view, part, index, sources.columns[index], to: place)
      }
    } catch {
      throw DatabaseError(error, documentAt: try readers[part].path(of: key))
    }
    if pendingBytes > 0 {
      let bytes = pendingBytes
      pendingBytes = 0
      try keep(bytes)
    }
    return true
  }

  private func add(
    _ view: borrowing DocumentView, _ part: Int, _ index: Int, _ slot: Int?, to place: Int
  ) throws(MalformedBytes) {
    guard let slot else { return groups.count(column: index, in: place) }
    let reader = readers[part]
    try groups.withColumn(index) { (column) throws(MalformedBytes) in
      try column.add(view.field(reader.paths[slot]), to: place, reader.symbols)
    }
  }

  /// The place of the document's group.
  private func place(
    of view: borrowing DocumentView, _ part: Int, _ sources: DocumentSources
  ) throws(MalformedBytes) -> Int {
    guard !sources.groups.isEmpty else { return 0 }
    let reader = readers[part]
    bytes.removeAll(keepingCapacity: true)
    for slot in sources.groups {
      guard let field = try view.field(reader.paths[slot]) else {
        // A document that lacks the field is in the group of null.
        bytes.append(0xf0)
        bytes.append(0)
        continue
      }
      try field.append(to: &bytes, reader.symbols)
    }
    if let previous, previous.part == part, previousBytes == bytes { return previous.place }
    let place: Int
    if let known = groups.place(ofBytes: bytes, part: part) {
      place = known
    } else {
      var key: [Value] = []
      for slot in sources.groups {
        key.append(try view.field(reader.paths[slot])?.value(reader.symbols) ?? .null)
      }
      let (found, kept) = groups.place(of: key)
      place = found
      pendingBytes += kept + groups.note(bytes, part: part, leadTo: place)
    }
    previous = (part, place)
    swap(&previousBytes, &bytes)
    return place
  }

  // MARK: - Groups beyond the memory

  /// Notes that the groups keep more bytes. Writes all of them to the scratch file when there is no
  /// room.
  private func keep(_ bytes: Int) throws(DatabaseError) {
    let hasRoom = context.hasRoom(for: bytes)
    context.keep(bytes)
    kept += bytes
    if !hasRoom, kept >= context.worthSpilling { try spill() }
  }

  /// Writes what was added to each group, and begins again without any.
  private func spill() throws(DatabaseError) {
    var old = PipelineGroups(columns)
    swap(&old, &groups)
    var sorter =
      spilled
      ?? SortedRows(
        RowOrder(descending: groupNames.map { _ in false }), limit: .max, in: stage, context)
    try sorter.add(
      run: old.sortedPlaces.lazy.map { [spilledCount] place in
        var record = RecordWriter()
        old.write(place, to: &record)
        return SortedRow(
          keys: old.keys[place], place: spilledCount + place,
          payload: GroupState(bytes: record.take()))
      })
    spilled = sorter
    spilledCount += old.keys.count
    previous = nil
    context.release(kept)
    kept = 0
    if groupNames.isEmpty { _ = groups.place(of: []) }
  }

  /// Puts the written groups together again, and passes them on in the order in which they came.
  private func passSpilled(_ sorter: SortedRows<GroupState>) throws(DatabaseError) {
    var sorter = sorter
    var written = try sorter.finish()
    let order = RowOrder(descending: groupNames.map { _ in false })
    var results = SortedRows<PipelineRow>(
      RowOrder(descending: []), limit: .max, in: stage, context)
    var first: (keys: [Value?], place: Int)?
    while let row = try written.next() {
      if let known = first, order.compare(known.keys, row.keys) != 0 {
        try results.add(takeResult(at: known.place))
        first = nil
      }
      if first == nil { first = (row.keys, row.place) }
      let (place, bytes) = groups.place(of: row.keys.map { $0 ?? .null })
      var record = RecordReader(row.payload.bytes)
      let more: Int
      do throws(MalformedBytes) {
        more = try groups.merge(&record, into: place)
      } catch {
        throw DatabaseError(.dataLoss, error.reason)
      }
      kept += bytes + more
      try results.makeRoom(for: bytes + more)
      try context.keep(bytes + more, in: stage)
    }
    if let first { try results.add(takeResult(at: first.place)) }
    var sorted = try results.finish()
    while let row = try sorted.next() { guard try next.take(row.payload) else { break } }
  }

  /// The result of the only group, which is dropped.
  private func takeResult(at place: Int) -> SortedRow<PipelineRow> {
    let result = result(of: 0)
    groups = PipelineGroups(columns)
    context.release(kept)
    kept = 0
    return SortedRow(keys: [], place: place, payload: result)
  }

  // MARK: - The end

  func finish() throws(DatabaseError) {
    if spilled != nil {
      if !groups.keys.isEmpty { try spill() }
      groups = PipelineGroups(columns)
      if let spilled { try passSpilled(spilled) }
    } else {
      for place in groups.keys.indices {
        try context.step()
        guard try next.take(result(of: place)) else { break }
      }
      groups = PipelineGroups(columns)
      context.release(kept)
    }
    try next.finish()
  }

  private func result(of place: Int) -> PipelineRow {
    var fields = [String: Value](minimumCapacity: groupNames.count + columnNames.count)
    for (name, value) in zip(groupNames, groups.keys[place]) { fields[name] = value }
    for (name, column) in zip(columnNames, groups.columns) {
      fields[name] = column.result(of: place)
    }
    return PipelineRow(fields)
  }
}

/// What was added to one group, as `PipelineGroups` writes it.
private struct GroupState: Spillable {
  let bytes: [UInt8]

  init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  var memoryBytes: Int { bytes.count + 32 }

  func write(to record: inout RecordWriter, _ spill: Spill) { record.append(octets: bytes) }

  init(_ record: inout RecordReader, _ spill: Spill) throws(MalformedBytes) {
    bytes = try record.octets()
  }
}

extension AggregateColumn {
  init(_ aggregate: PipelineAggregate) throws(DatabaseError) {
    guard let kind = Kind(rawValue: aggregate.name) else {
      throw DatabaseError(
        .invalidArgument, "the stage aggregate: there is no aggregate \"\(aggregate.name)\"")
    }
    guard aggregate.argument != nil || kind == .count else {
      throw DatabaseError(
        .invalidArgument, "the stage aggregate: \(aggregate.name) takes 1 argument, and has none")
    }
    self.init(kind, countsRows: aggregate.argument == nil)
  }
}

/// Which slots hold the groups and the columns of an aggregate that only reads fields.
struct DocumentSources: Sendable {
  let groups: [Int]
  /// Nil for a count of rows.
  let columns: [Int?]

  /// Nil when an expression must be computed, or is not a field of documents.
  init?(_ expressions: StageExpressions, groupCount: Int, _ columns: [AggregateColumn]) {
    var slots: [Int?] = []
    for (index, expression) in expressions.compiled.enumerated() {
      if index >= groupCount, columns[index - groupCount].countsRows {
        slots.append(nil)
        continue
      }
      guard let slot = expression.slot, case .names = expressions.fields[slot].form,
        index < groupCount || columns[index - groupCount].readsFields
      else { return nil }
      slots.append(slot)
    }
    groups = slots.prefix(groupCount).compactMap(\.self)
    self.columns = Array(slots.dropFirst(groupCount))
  }
}
