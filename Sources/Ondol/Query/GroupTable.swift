// Aggregates of groups, fed with documents as they lie in their rows. Most documents are of a group
// that was met before with the same bytes, so a group is found by the bytes of what its documents
// agree in. Values are decoded only for bytes that were not met yet; those that are equal and
// written differently, as 1 and 1.0, are of one group.

internal import OndolEngine

/// The aggregates of groups, as they come to be.
struct GroupTable: Sendable {
  private let fresh: [Aggregator]
  /// How texts are compared that documents agree in; nil by their bytes.
  private let comparison: TextComparison?
  /// A group's key has of texts that are the same the first by its bytes.
  private(set) var groups: [(key: [Value], aggregators: [Aggregator])] = []
  private var places: [[Value]: Int] = [:]
  /// The places of groups by the bytes of values in rows; for each part of the query its own, since
  /// in maps the same bytes stand for other names.
  private var placesOfBytes: [[[UInt8]: Int]]
  private var bytes: [UInt8] = []
  /// The group of the document before, and what it was found by.
  private var previous: (part: Int, place: Int)?
  private var previousBytes: [UInt8] = []

  /// - Parameter parts: of the query.
  init(_ fields: [AggregateField], comparing comparison: TextComparison?, parts: Int) {
    fresh = fields.map { Aggregator($0) }
    self.comparison = comparison
    placesOfBytes = Array(repeating: [:], count: parts)
  }

  /// Adds a document by the values of the aggregates' fields and of the groups'; to none when it
  /// lacks one of the latter.
  mutating func add(_ values: [Value?], _ keys: [Value?]) {
    let key = keys.compactMap(\.self)
    guard key.count == keys.count else { return }
    let place = place(of: key)
    for index in fresh.indices { groups[place].aggregators[index].add(values[index]) }
  }

  /// Adds the document of the row; to no group when it lacks one of the groups' fields.
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

  /// Adds what another table has been given, of documents that come behind.
  mutating func add(_ other: GroupTable) {
    for (key, aggregators) in other.groups {
      let place = place(of: key)
      for index in fresh.indices { groups[place].aggregators[index].add(aggregators[index]) }
    }
  }

  /// The place of the group, which begins now when it is new.
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
  /// Puts those of the other values in the place of these that are less.
  fileprivate mutating func replaceGreater(by others: [Value]) {
    for index in indices where ValueOrder.compare(others[index], self[index]) < 0 {
      self[index] = others[index]
    }
  }
}

/// Reads what a table of groups needs of the documents of one part of a query. A class, as
/// `QueryPart` is one.
final class GroupFields {
  /// The fields of the aggregates, nil for counts.
  let aggregated: FieldReader
  /// What the documents of a group agree in.
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
      // The table and the aggregates compare what is read.
      case .field(let names), .compared(let names, _): (.field, ResolvedPath(names, in: symbols))
      }
    }
  }

  /// The fields' values; nil where the document lacks the field.
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

  /// Appends the fields as they are stored, so that the same bytes mean equal values; false when
  /// the document lacks one of them.
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
