// Aggregates of groups, computed from documents in their encoded rows. Most documents belong to a
// known group with the same bytes, so a group is found by the bytes of the values that its
// documents share. Values are decoded only when their bytes are new. Values that are equal but
// stored differently, as 1 and 1.0, belong to one group.

internal import OndolEngine

/// The aggregates of groups as the documents add up.
struct GroupTable: Sendable {
  private let fresh: [Aggregator]
  /// How the texts in group keys are compared; nil when by their bytes.
  private let comparison: TextComparison?
  /// Of texts that are equal in the comparison, a group's key has the first by its bytes.
  private(set) var groups: [(key: [Value], aggregators: [Aggregator])] = []
  private var places: [[Value]: Int] = [:]
  /// The places of groups by the bytes of values in rows. Each part of the query has its own table,
  /// because the same bytes in maps mean other names.
  private var placesOfBytes: [[[UInt8]: Int]]
  private var bytes: [UInt8] = []
  /// The previous document's group, and the bytes by which it was found.
  private var previous: (part: Int, place: Int)?
  private var previousBytes: [UInt8] = []

  /// - Parameter parts: the number of the query's parts.
  init(_ fields: [AggregateField], comparing comparison: TextComparison?, parts: Int) {
    fresh = fields.map { Aggregator($0) }
    self.comparison = comparison
    placesOfBytes = Array(repeating: [:], count: parts)
  }

  /// Adds a document by the values of the aggregates' fields and of the group's fields. A document
  /// that lacks one of the latter is in no group.
  mutating func add(_ values: [Value?], _ keys: [Value?]) {
    let key = keys.compactMap(\.self)
    guard key.count == keys.count else { return }
    let place = place(of: key)
    for index in fresh.indices { groups[place].aggregators[index].add(values[index]) }
  }

  /// Adds the document of the row. A document that lacks one of the group's fields is in no group.
  mutating func add(
    _ view: borrowing DocumentView, _ key: RawSpan, of part: Int, _ reader: GroupFields
  ) throws(DatabaseError) {
    bytes.removeAll(keepingCapacity: true)
    guard try reader.grouped.append(view, key, to: &bytes) else { return }
    let place: Int
    if let previous, previous.part == part, previousBytes == bytes {
      place = previous.place
    } else {
      if let known = placesOfBytes[part][bytes] {
        place = known
      } else {
        place = self.place(of: try reader.grouped.values(view, key).compactMap(\.self))
        placesOfBytes[part][bytes] = place
      }
      previous = (part, place)
      swap(&previousBytes, &bytes)
    }
    try reader.aggregated.add(view, key, to: &groups[place].aggregators)
  }

  /// Adds the contents of another table, of later documents.
  mutating func add(_ other: GroupTable) {
    for (key, aggregators) in other.groups {
      let place = place(of: key)
      for index in fresh.indices { groups[place].aggregators[index].add(aggregators[index]) }
    }
  }

  /// The place of the group, which is new when the key is.
  private mutating func place(of key: [Value]) -> Int {
    let compared = comparison.map { key.map($0.value) } ?? key
    if let place = places[compared] {
      if comparison != nil { groups[place].key.replaceGreater(by: key) }
      return place
    }
    places[compared] = groups.count
    groups.append((key, fresh))
    return groups.count - 1
  }
}

extension [Value] {
  /// Replaces each value with the other list's value when that one is less.
  fileprivate mutating func replaceGreater(by others: [Value]) {
    for index in indices where ValueOrder.compare(others[index], self[index]) < 0 {
      self[index] = others[index]
    }
  }
}

/// Reads the fields that a table of groups needs from the documents of one part of a query. A
/// class, like `QueryPart`.
final class GroupFields {
  /// The fields of the aggregates, nil for counts.
  let aggregated: FieldReader
  /// The fields in which the documents of a group agree.
  let grouped: FieldReader

  init(_ aggregated: [QueryField?], _ grouped: [QueryField], _ part: QueryPart) {
    self.aggregated = FieldReader(aggregated, part)
    self.grouped = FieldReader(grouped, part)
  }
}

/// Reads a few fields of documents of one part of a query.
struct FieldReader {
  private enum Content: BitwiseCopyable {
    case nothing
    case name
    case field
  }

  private let fields: [(content: Content, path: ResolvedPath)]
  private let symbols: SymbolTable
  private let naming: DocumentNaming

  init(_ fields: [QueryField?], _ part: QueryPart) {
    let symbols = part.matcher.symbols
    self.symbols = symbols
    naming = part.naming
    self.fields = fields.map { field in
      switch field {
      case nil: (.nothing, ResolvedPath([], in: symbols))
      case .documentID: (.name, ResolvedPath([], in: symbols))
      // The table and the aggregates compare texts, after they are read.
      case .field(let names), .compared(let names, _): (.field, ResolvedPath(names, in: symbols))
      }
    }
  }

  /// The fields' values; nil for a field that the document lacks.
  func values(
    _ view: borrowing DocumentView, _ key: RawSpan
  ) throws(DatabaseError) -> [Value?] {
    var values: [Value?] = []
    values.reserveCapacity(fields.count)
    for index in fields.indices {
      switch fields[index].content {
      case .nothing: values.append(nil)
      case .name: values.append(try naming.name(of: key))
      case .field:
        do throws(MalformedBytes) {
          values.append(try view.field(fields[index].path)?.value(symbols))
        } catch {
          throw DatabaseError(error, documentAt: try naming.path(of: key))
        }
      }
    }
    return values
  }

  /// Adds the document to aggregates, one for each of the fields.
  func add(
    _ view: borrowing DocumentView, _ key: RawSpan, to aggregators: inout [Aggregator]
  ) throws(DatabaseError) {
    for index in fields.indices {
      switch fields[index].content {
      case .nothing: aggregators[index].add(nil)
      case .name: aggregators[index].add(try naming.name(of: key))
      case .field:
        do throws(MalformedBytes) {
          try aggregators[index].add(view.field(fields[index].path), symbols)
        } catch {
          throw DatabaseError(error, documentAt: try naming.path(of: key))
        }
      }
    }
  }

  /// Appends the stored bytes of the fields, so that the same bytes mean equal values. Returns
  /// false when the document lacks one of them.
  func append(
    _ view: borrowing DocumentView, _ key: RawSpan, to bytes: inout [UInt8]
  ) throws(DatabaseError) -> Bool {
    for index in fields.indices {
      guard fields[index].content == .field else {
        bytes.append(contentsOf: key.array)
        continue
      }
      do throws(MalformedBytes) {
        guard let field = try view.field(fields[index].path) else { return false }
        try field.append(to: &bytes, symbols)
      } catch {
        throw DatabaseError(error, documentAt: try naming.path(of: key))
      }
    }
    return true
  }
}
