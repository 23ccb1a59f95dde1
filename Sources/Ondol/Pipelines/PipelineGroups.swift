// Aggregates of groups as rows add up. Most rows belong to a group whose values have the same
// stored bytes, so a group is found by these bytes, and values are decoded only when the bytes are
// new. A column of aggregates has one entry for each group and only the arrays that its kind needs:
// half a million counts are four megabytes.

internal import OndolEngine

/// One aggregate of every group.
struct AggregateColumn: Sendable {
  enum Kind: String, Sendable {
    case count, countIf = "count_if", countDistinct = "count_distinct", sum, average, minimum
    case maximum, first, last, arrayAgg = "array_agg", arrayAggDistinct = "array_agg_distinct"
  }

  let kind: Kind
  /// Whether rows are counted whatever their values.
  let countsRows: Bool
  private let field: AggregateField
  private let fresh: Aggregator
  private var counts: [Int] = []
  private var numbers: [Aggregator] = []
  private var lists: [[Value]] = []
  private var sets: [Set<Value>] = []

  init(_ kind: Kind, countsRows: Bool) {
    self.kind = kind
    self.countsRows = countsRows
    // The path only names what is aggregated; values come from expressions.
    let path = FieldPath(kind.rawValue)
    field =
      switch kind {
      case .average: .average(path)
      case .minimum: .minimum(path)
      case .maximum: .maximum(path)
      default: .sum(path)
      }
    fresh = Aggregator(field)
  }

  /// Bytes of a new group.
  var bytesOfGroup: Int {
    switch kind {
    case .count, .countIf: MemoryLayout<Int>.stride
    case .sum, .average, .minimum, .maximum: MemoryLayout<Aggregator>.stride + 32
    default: 64
    }
  }

  mutating func addGroup() {
    switch kind {
    case .count, .countIf: counts.append(0)
    case .sum, .average, .minimum, .maximum: numbers.append(fresh)
    case .first, .last, .arrayAgg: lists.append([])
    case .countDistinct: sets.append([])
    case .arrayAggDistinct:
      sets.append([])
      lists.append([])
    }
  }

  /// Adds a row to a group; returns the bytes that are kept of it.
  mutating func add(_ value: Value?, to group: Int) -> Int {
    switch kind {
    case .count: if countsRows || value.map({ !$0.isNull }) ?? false { counts[group] += 1 }
    case .countIf: if value == .boolean(true) { counts[group] += 1 }
    case .sum, .average, .minimum, .maximum: numbers[group].add(value)
    case .first: if lists[group].isEmpty { return keep(value ?? .null, in: group) }
    case .last:
      lists[group].removeAll(keepingCapacity: true)
      lists[group].append(value ?? .null)
    case .arrayAgg: return keep(value ?? .null, in: group)
    case .countDistinct:
      guard let value, !value.isNull else { return 0 }
      return sets[group].insert(value).inserted ? value.memoryBytes + 40 : 0
    case .arrayAggDistinct:
      let value = value ?? .null
      guard sets[group].insert(value).inserted else { return 0 }
      return keep(value, in: group) + value.memoryBytes + 40
    }
    return 0
  }

  /// Appends what was added to a group, for `merge(_:into:)`.
  mutating func write(_ group: Int, to record: inout RecordWriter) {
    switch kind {
    case .count, .countIf: record.append(count: counts[group])
    case .sum, .average, .minimum, .maximum: numbers[group].write(to: &record)
    case .first, .last, .arrayAgg, .arrayAggDistinct:
      record.append(count: lists[group].count)
      for value in lists[group] { record.append(value) }
    case .countDistinct:
      record.append(count: sets[group].count)
      for value in sets[group] { record.append(value) }
    }
  }

  /// Adds what `write(_:to:)` has written of later rows to a group; returns the bytes that are kept
  /// of it.
  mutating func merge(
    _ record: inout RecordReader, into group: Int
  ) throws(MalformedBytes) -> Int {
    switch kind {
    case .count, .countIf: counts[group] += try record.count()
    case .sum, .average, .minimum, .maximum:
      numbers[group].add(try Aggregator(field, &record))
    case .first, .last, .countDistinct, .arrayAgg, .arrayAggDistinct:
      var bytes = 0
      for _ in 0..<(try record.countOfThings()) {
        bytes += add(try record.value(), to: group)
      }
      return bytes
    }
    return 0
  }

  private mutating func keep(_ value: Value, in group: Int) -> Int {
    lists[group].append(value)
    return value.memoryBytes + Value.inlineBytes
  }

  /// Adds a row by a field in a document's bytes. Only for counts and numbers.
  mutating func add(
    _ field: ValueView?, to group: Int, _ symbols: SymbolTable
  ) throws(MalformedBytes) {
    switch kind {
    // Null is stored as code 0.
    case .count: if let field, field.code != 0 { counts[group] += 1 }
    default: try numbers[group].add(field, symbols)
    }
  }

  /// Counts a row.
  mutating func count(in group: Int) { counts[group] += 1 }

  /// Whether a row can be added by a field in a document's bytes.
  var readsFields: Bool {
    switch kind {
    case .count, .sum, .average, .minimum, .maximum: true
    default: false
    }
  }

  func result(of group: Int) -> Value {
    switch kind {
    case .count, .countIf: .integer(Int64(counts[group]))
    case .sum, .average, .minimum, .maximum: numbers[group].result ?? .null
    case .first, .last: lists[group].first ?? .null
    case .countDistinct: .integer(Int64(sets[group].count))
    case .arrayAgg, .arrayAggDistinct: .array(lists[group])
    }
  }
}

/// The groups of an `aggregate` or a `distinct`.
struct PipelineGroups {
  private(set) var columns: [AggregateColumn]
  private(set) var keys: [[Value]] = []
  private var places: [[Value]: Int] = [:]
  /// The places of groups by the bytes of their values, for each part of a query, because the same
  /// bytes in maps mean other names in another part.
  private var placesOfBytes: [[[UInt8]: Int]] = []

  init(_ columns: [AggregateColumn]) {
    self.columns = columns
  }

  /// The place of a group, which is new when the key is, and the bytes that are kept of it.
  mutating func place(of key: [Value]) -> (place: Int, bytes: Int) {
    if let place = places[key] { return (place, 0) }
    let place = keys.count
    places[key] = place
    keys.append(key)
    var bytes = PipelineContext.overhead
    for value in key { bytes += value.memoryBytes + Value.inlineBytes }
    for index in columns.indices {
      columns[index].addGroup()
      bytes += columns[index].bytesOfGroup
    }
    return (place, bytes)
  }

  /// The place of the group with these stored bytes, if it is known.
  func place(ofBytes bytes: [UInt8], part: Int) -> Int? {
    part < placesOfBytes.count ? placesOfBytes[part][bytes] : nil
  }

  /// Notes that these stored bytes lead to a group; returns the bytes that are kept for it.
  mutating func note(_ bytes: [UInt8], part: Int, leadTo place: Int) -> Int {
    while placesOfBytes.count <= part { placesOfBytes.append([:]) }
    placesOfBytes[part][bytes] = place
    return bytes.count + 64
  }

  /// The places of the groups in the order of their keys.
  var sortedPlaces: [Int] {
    let order = RowOrder(descending: Array(repeating: false, count: keys.first?.count ?? 0))
    return keys.indices.sorted { order.compare(keys[$0], keys[$1]) < 0 }
  }

  /// Appends what was added to a group, for `merge(_:into:)`.
  mutating func write(_ place: Int, to record: inout RecordWriter) {
    for index in columns.indices { columns[index].write(place, to: &record) }
  }

  /// Adds what `write(_:to:)` has written to a group; returns the bytes that are kept of it.
  mutating func merge(
    _ record: inout RecordReader, into place: Int
  ) throws(MalformedBytes) -> Int {
    var bytes = 0
    for index in columns.indices { bytes += try columns[index].merge(&record, into: place) }
    return bytes
  }

  /// Adds a row to a group by the values of the columns; returns the bytes that are kept of it.
  mutating func add(_ values: [Value?], to place: Int) -> Int {
    var bytes = 0
    for index in columns.indices { bytes += columns[index].add(values[index], to: place) }
    return bytes
  }

  /// Counts a row in a column that counts rows.
  mutating func count(column index: Int, in place: Int) { columns[index].count(in: place) }

  /// Changes one column.
  mutating func withColumn(
    _ index: Int, _ body: (inout AggregateColumn) throws(MalformedBytes) -> Void
  ) throws(MalformedBytes) {
    try body(&columns[index])
  }
}
