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
    if bytes > 0 { try context.keep(bytes, in: stage) }
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
      try context.keep(bytes, in: stage)
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

  // MARK: - The end

  func finish() throws(DatabaseError) {
    for place in groups.keys.indices {
      var fields = [String: Value](minimumCapacity: groupNames.count + columnNames.count)
      for (name, value) in zip(groupNames, groups.keys[place]) { fields[name] = value }
      for (name, column) in zip(columnNames, groups.columns) {
        fields[name] = column.result(of: place)
      }
      guard try next.take(PipelineRow(fields)) else { break }
    }
    try next.finish()
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
