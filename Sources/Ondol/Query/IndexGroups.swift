// Counts groups by the rows of an index. Documents that agree have rows with equal components, so a
// group is a contiguous run of rows. Only the first document of each group is read, for its values.
// Aggregates use this instead of a walk over all documents.

internal import OndolEngine

extension GroupedAggregateQuery {
  /// The number of documents in each group; nil when anything else is requested, or when no index
  /// has the fields.
  ///
  /// The query in the groups' order is planned like any other. An index that answers it exactly has
  /// a row for each document that has the fields.
  ///
  /// - Complexity: O(rows of the index in question), and a lookup for each group; for a large group
  ///   mostly O(log n).
  func countsByIndex(_ executor: Executor) throws(DatabaseError) -> [[Value]: Int]? {
    var shape = executor.shape
    guard executor.query.isWhole, shape.orders.isEmpty, shape.start == nil, shape.end == nil,
      !groupFields.isEmpty, comparison == nil, aggregate.fields.allSatisfy({ $0.kind == .count })
    else { return nil }
    for field in groupFields {
      shape.orders.append(SortOrder(field: try QueryField(field), descending: false))
    }
    let ordered = try Executor(shape, in: aggregate.query.database, executor.rows)
    var counts: [[Value]: Int] = [:]
    for part in ordered.parts {
      guard part.plan.isExact, part.plan.ways.count <= 1 else { return nil }
      guard let way = part.plan.ways.first else { continue }
      guard case .index(let scan) = way, !scan.isRepeating,
        let reader = try GroupReader(groupFields, scan, part),
        try reader.count(in: executor.rows, into: &counts)
      else { return nil }
    }
    return counts
  }
}

/// Reads groups from the rows of an index.
private struct GroupReader {
  private let scan: IndexScan
  private let fields: FieldReader
  private let part: QueryPart
  private static let rowsAtOnce = 256

  /// Returns nil when the index lacks one of the fields.
  init?(
    _ groupFields: [FieldPath], _ scan: IndexScan, _ part: QueryPart
  ) throws(DatabaseError) {
    var wanted: [QueryField] = []
    for field in groupFields { wanted.append(try QueryField(field)) }
    guard
      wanted.allSatisfy({ field in
        scan.index.fields.contains { !$0.isOfElements && $0.field == field }
      })
    else { return nil }
    self.scan = scan
    self.part = part
    fields = FieldReader(wanted, part)
  }

  /// Counts the documents of each group; false when a row does not show its values.
  func count(in rows: Rows, into counts: inout [[Value]: Int]) throws(DatabaseError) -> Bool {
    var walk = RangeWalk(rows, scan.ranges, reversed: scan.isReversed)
    var run = Run()
    func add(_ key: RawSpan, _ value: RawSpan) throws(DatabaseError) {
      // A component shows where it ends, so rows that begin alike have the same components.
      if run.count > 0, key.starts(with: run.components) {
        run.count += 1
      } else if run.isWhole {
        run.flush(into: &counts)
        try begin(&run, key, value, rows)
      }
    }
    // A group that already has many rows is likely to have more.
    var mayLeap = scan.ranges.count == 1 && !scan.isReversed
    while run.isWhole {
      let shown = try walk.show(atMost: Self.rowsAtOnce, add)
      if shown < Self.rowsAtOnce { break }
      guard mayLeap, run.count >= Self.rowsAtOnce else { continue }
      var rest = KeyRange(prefix: run.components).clamped(to: scan.ranges[0])
      rest.lower = walk.cursor.key.array + [0]
      guard let known = try rows.knownCount(of: rest) else {
        mayLeap = false
        continue
      }
      run.count += known
      guard try walk.next(from: rest.upper) else { break }
      try walk.show(add)
    }
    run.flush(into: &counts)
    return run.isWhole
  }

  /// Begins the run of the row.
  private func begin(
    _ run: inout Run, _ key: RawSpan, _ value: RawSpan, _ rows: Rows
  ) throws(DatabaseError) {
    run.count = 1
    run.group = nil
    var document = part.naming.prefix
    do throws(MalformedBytes) {
      run.components = key.extracting(first: try endOfComponents(of: key)).array
      run.isWhole = try scan.index.read(
        key, value, prefixLength: scan.prefixLength, into: &document)
    } catch {
      throw DatabaseError(
        .dataLoss, "a row of the index '\(scan.index.name)' is damaged: \(error.reason)")
    }
    guard run.isWhole else { return }
    _ = try rows.show(document) { (key, row) throws(DatabaseError) in
      let view = try DocumentShaper.view(row, key, part.naming)
      let values = try fields.values(view, key)
      let group = values.compactMap(\.self)
      if group.count == values.count { run.group = group }
    }
  }

  /// Bytes of the row up to the end of its last component.
  private func endOfComponents(of key: RawSpan) throws(MalformedBytes) -> Int {
    var reader = KeyReader(key)
    try reader.skip(raw: scan.prefixLength)
    for field in scan.index.fields where try !reader.skipMissing(descending: field.descending) {
      try reader.skip(descending: field.descending)
    }
    return reader.offset
  }
}

/// Consecutive rows with the same components.
private struct Run {
  var components: [UInt8] = []
  var count = 0
  /// The group they belong to; nil when they belong to none.
  var group: [Value]?
  /// Whether no component was cut.
  var isWhole = true

  mutating func flush(into counts: inout [[Value]: Int]) {
    if let group { counts[group, default: 0] += count }
    count = 0
  }
}
