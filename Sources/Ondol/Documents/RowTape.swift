// A document on its way into the bytes of its row, in the order in which Codable hands it over.
// Containers may be filled in turns, and a map's table has another order than a type's properties.
// So the tape records values as they come, each as its final bytes, with notes of what belongs
// where. At the end it assembles the row in one pass of copying.
//
// The row has the same bytes as encoding the same fields would give (ValueEncoder). The tape
// refuses everything that is not plain or that needs an error message, and gives no reason. The
// document's fields are then encoded instead, by code that knows all rules. The tape refuses names
// that are new to the collection, forms of values that the catalog has not recorded for it,
// instructions, contents, fields written twice, places that were never written, and nesting that is
// too deep.

internal import OndolEngine

/// The parts of one document.
struct RowTape {
  /// Why a document cannot become a row here.
  enum Refusal {
    /// A name, or the fact that documents have such values, is not in the catalog.
    case name
    /// The document contains something that the tape does not handle.
    case form
  }

  /// The content of a place.
  private enum Content {
    /// Not written yet.
    case nothing
    /// A value that fits into a slot.
    case code(Int)
    /// The bytes of a value.
    case bytes(Range<Int>)
    case container(Int)
  }

  /// A field, an element, or the document itself.
  private struct Place {
    /// The number of a field's name.
    var symbol: UInt32
    var content: Content
    /// The next place of the container, or -1.
    var next = -1
  }

  private struct Container {
    var isMap: Bool
    var first = -1
    var last = -1
    var count = 0
  }

  /// The document's own place.
  static let root = 0

  private(set) var refusal: Refusal?
  private var places: [Place] = []
  private var containers: [Container] = []
  /// The bytes of the values.
  private var values = ValueEncoder(SymbolTable())
  /// Assembles the row.
  private var output: ValueEncoder
  /// Places in the order of the tables they belong to, those of the innermost container last.
  private var order: [Int] = []

  init(_ symbols: SymbolTable) {
    output = ValueEncoder(symbols)
  }

  /// Discards the previous document.
  mutating func begin() {
    refusal = nil
    places.removeAll(keepingCapacity: true)
    containers.removeAll(keepingCapacity: true)
    values.bytes.removeAll(keepingCapacity: true)
    places.append(Place(symbol: 0, content: .nothing))
  }

  mutating func refuse() {
    refusal = .form
  }

  // MARK: - Places

  /// A new field; nil when its name is not known.
  mutating func field(_ name: String, in container: Int) -> Int? {
    guard let symbol = output.symbol(of: name) else {
      refusal = refusal ?? .name
      return nil
    }
    return place(symbol, in: container)
  }

  /// A new element after the others.
  mutating func element(of container: Int) -> Int { place(0, in: container) }

  func count(of container: Int) -> Int { containers[container].count }

  private mutating func place(_ symbol: UInt32, in container: Int) -> Int {
    let place = places.count
    places.append(Place(symbol: symbol, content: .nothing))
    let last = containers[container].last
    if last < 0 { containers[container].first = place } else { places[last].next = place }
    containers[container].last = place
    containers[container].count += 1
    return place
  }

  /// The container at a place, which may already exist.
  mutating func container(at place: Int, isMap: Bool) -> Int {
    switch places[place].content {
    case .container(let container) where containers[container].isMap == isMap: return container
    case .nothing:
      containers.append(Container(isMap: isMap))
      places[place].content = .container(containers.count - 1)
    default:
      refuse()
      containers.append(Container(isMap: isMap))
    }
    return containers.count - 1
  }

  // MARK: - Values

  mutating func put(_ text: String, at place: Int) {
    let start = values.bytes.count
    values.append(text: text)
    settle(.bytes(start..<values.bytes.count), at: place)
  }

  mutating func put(_ texts: [String], at place: Int) {
    let list = container(at: place, isMap: false)
    for text in texts { put(text, at: element(of: list)) }
  }

  mutating func put(_ value: Value, at place: Int) {
    if let code = ValueCoding.inlineCode(value) { return settle(.code(code), at: place) }
    switch value {
    case .string(let text): return put(text, at: place)
    case .array(let elements):
      let list = container(at: place, isMap: false)
      for element in elements { put(element, at: self.element(of: list)) }
      return
    case .map(let fields): return put(fields, at: place)
    case .blob: return refuse()
    case .timestamp(let moment) where moment.isPending: return refuse()
    case .decimal: guard isKnown(.decimals) else { return }
    default: break
    }
    let start = values.bytes.count
    do throws(DatabaseError) {
      try values.append(value, depth: 0)
    } catch {
      return refuse()
    }
    settle(.bytes(start..<values.bytes.count), at: place)
  }

  mutating func put(_ fields: [String: Value], at place: Int) {
    let map = container(at: place, isMap: true)
    for (name, value) in fields {
      guard let field = field(name, in: map) else { return }
      put(value, at: field)
    }
  }

  private mutating func settle(_ content: Content, at place: Int) {
    guard case .nothing = places[place].content else { return refuse() }
    places[place].content = content
  }

  // MARK: - The row

  /// The document's row; nil when it is refused.
  mutating func row() -> [UInt8]? {
    guard refusal == nil, case .container(let root) = places[Self.root].content,
      containers[root].isMap
    else { return nil }
    output.begin(createTime: nil, expecting: values.bytes.count + 256)
    order.removeAll(keepingCapacity: true)
    guard append(root, values.bytes, depth: 0), output.bytes.count <= ValueCoding.maximumLength
    else {
      if refusal == nil { refuse() }
      return nil
    }
    return output.bytes.bytes.array
  }

  /// Appends a container; false when it must be refused.
  ///
  /// - Parameter written: the bytes of values.
  private mutating func append(_ number: Int, _ written: [UInt8], depth: Int) -> Bool {
    // Counts as ValueCheck does: the document's own map is around the first level.
    guard depth <= ValueForms.plainNesting || isDeepKnown(depth) else { return false }
    let container = containers[number]
    let start = order.count
    var place = container.first
    while place >= 0 {
      order.append(place)
      place = places[place].next
    }
    if container.isMap, !sort(from: start) { return false }
    let lastSymbol = container.count == 0 ? 0 : places[order[order.count - 1]].symbol
    var layout = output.begin(
      ContainerLayout(
        base: output.bytes.count, count: container.count, isMap: container.isMap,
        hasShortSymbols: container.isMap && lastSymbol < 256))
    if container.isMap {
      for index in 0..<container.count {
        output.set(symbol: places[order[start + index]].symbol, at: index, in: layout)
      }
    }
    for index in 0..<container.count {
      let content = places[order[start + index]].content
      if case .code(let code) = content {
        output.set(
          slot: layout.firstInline + code, at: layout.slotsStart + index * layout.slotWidth, layout)
        continue
      }
      output.widenIfNeeded(&layout, names: 0, values: index)
      output.set(
        slot: output.bytes.count - layout.base, at: layout.slotsStart + index * layout.slotWidth,
        layout)
      switch content {
      case .bytes(let range):
        output.bytes.append(written.bytes.extracting(range))
      case .container(let inner):
        guard container.isMap || containers[inner].isMap || isKnown(.nested),
          append(inner, written, depth: depth + 1)
        else { return false }
      case .code, .nothing: return false
      }
    }
    order.removeLast(container.count)
    return true
  }

  /// Whether the catalog records that documents of the collection have such values.
  private mutating func isKnown(_ form: ValueForms) -> Bool {
    if output.symbols.forms.contains(form) { return true }
    refusal = refusal ?? .name
    return false
  }

  private mutating func isDeepKnown(_ depth: Int) -> Bool {
    depth <= ValueCoding.maximumNesting && isKnown(.nested)
  }

  /// Sorts the places from `start` on by their symbols; false when two have the same symbol.
  private mutating func sort(from start: Int) -> Bool {
    if order.count - start > 32 {
      let sorted = order[start...].sorted { places[$0].symbol < places[$1].symbol }
      order.replaceSubrange(start..., with: sorted)
    } else {
      for end in order.indices.dropFirst(start + 1) {
        let place = order[end]
        let symbol = places[place].symbol
        var index = end
        while index > start, places[order[index - 1]].symbol > symbol {
          order[index] = order[index - 1]
          index -= 1
        }
        order[index] = place
      }
    }
    for index in order.indices.dropFirst(start + 1)
    where places[order[index]].symbol == places[order[index - 1]].symbol {
      return false
    }
    return true
  }
}
