// Builds keys, component by component. Format and invariants are in KeyCoding.

internal import OndolEngine

/// A key under construction.
struct KeyWriter {
  /// The key so far.
  private(set) var bytes: [UInt8]
  /// Where the commit's time is filled in.
  private(set) var stamps: [(offset: Int, form: StampForm)] = []

  /// Where the component being written began, and where it is cut when a timestamp crosses the
  /// limit.
  private var start = 0
  private var cut: Int?

  /// Begins with the number of a keyspace.
  init(_ keyspace: Keyspace) {
    bytes = []
    bytes.reserveCapacity(72)
    bytes.append(bits: UInt64(keyspace.rawValue.byteSwapped), width: 4)
  }

  /// Begins with `prefix`.
  init(_ prefix: [UInt8] = []) {
    bytes = []
    bytes.reserveCapacity(prefix.count + 72)
    bytes += prefix
  }

  /// Begins with `prefix` again, in the same memory when nothing else references it.
  mutating func restart(_ prefix: [UInt8]) {
    bytes.removeAll(keepingCapacity: true)
    bytes += prefix
    stamps = []
  }

  /// Appends bytes, each combined with `mask` by exclusive or.
  mutating func append(raw octets: RawSpan, mask: UInt8 = 0) {
    if mask == 0 { return bytes.append(octets) }
    for offset in octets.byteOffsets { bytes.append(octets.byte(at: offset) ^ mask) }
  }

  /// Appends bytes as they are.
  mutating func append(raw: some Sequence<UInt8>) {
    bytes.append(contentsOf: raw)
  }

  /// Appends a component and returns whether it had to be cut, so that equal bytes may not mean
  /// equal values.
  @discardableResult
  mutating func append(_ value: Value, descending: Bool = false) -> Bool {
    start = bytes.count
    cut = nil
    let firstStamp = stamps.count
    append(value, depth: 0)
    return finish(descending: descending, firstStamp)
  }

  /// The same of a text's bytes.
  @discardableResult
  mutating func append(text: RawSpan, descending: Bool) -> Bool {
    start = bytes.count
    cut = nil
    bytes.append(KeyCoding.Tag.string)
    appendEscaped(text.octets, limit: KeyCoding.maximumComponentLength)
    return finish(descending: descending, stamps.count)
  }

  private mutating func finish(descending: Bool, _ firstStamp: Int) -> Bool {
    let isCut = bytes.count - start > KeyCoding.maximumComponentLength
    if isCut { cutComponent() }
    if descending { complement(from: start, stampsFrom: firstStamp) }
    return isCut
  }

  /// Appends a text that is never cut, for the ids of documents.
  mutating func append(id: String, descending: Bool = false) {
    start = bytes.count
    bytes.append(KeyCoding.Tag.string)
    appendEscaped(id, limit: .max)
    if descending { complement(from: start, stampsFrom: stamps.count) }
  }

  /// Appends the bytes that all texts with this prefix share, at most as long as a component.
  mutating func append(textPrefix prefix: String, descending: Bool = false) {
    start = bytes.count
    bytes.append(KeyCoding.Tag.string)
    appendEscaped(prefix, limit: KeyCoding.maximumComponentLength, isWhole: false)
    bytes.removeLast(max(0, bytes.count - start - KeyCoding.maximumComponentLength))
    if descending { complement(from: start, stampsFrom: stamps.count) }
  }

  private mutating func cutComponent() {
    let end = cut ?? (start + KeyCoding.maximumComponentLength)
    bytes.removeSubrange(end...)
    bytes.append(KeyCoding.Tag.cut)
    stamps.removeAll { $0.offset >= end }
  }

  private mutating func complement(from start: Int, stampsFrom firstStamp: Int) {
    for index in start..<bytes.count {
      bytes[index] = ~bytes[index]
    }
    for index in firstStamp..<stamps.count {
      stamps[index].form = .descendingTime
    }
  }
}

// MARK: - Values, ascending

extension KeyWriter {
  /// Whether further bytes would be cut off anyway.
  private var isFull: Bool { bytes.count - start > KeyCoding.maximumComponentLength }

  private mutating func append(_ value: Value, depth: Int) {
    switch value {
    case .null: bytes.append(KeyCoding.Tag.null)
    case .boolean(let value): bytes.append(value ? KeyCoding.Tag.yes : KeyCoding.Tag.no)
    case .integer(let value): append(value)
    case .double(let value): append(value)
    case .decimal(let value): append(value)
    case .timestamp(let value): append(value)
    case .string(let value):
      bytes.append(KeyCoding.Tag.string)
      appendEscaped(value, limit: KeyCoding.maximumComponentLength)
    case .bytes(let value):
      bytes.append(KeyCoding.Tag.bytes)
      appendEscaped(value.elements, limit: KeyCoding.maximumComponentLength)
    case .reference(let value): append(value)
    case .geoPoint(let value):
      bytes.append(KeyCoding.Tag.geoPoint)
      bytes.append(highFirst: KeyCoding.orderedBits(value.latitude))
      bytes.append(highFirst: KeyCoding.orderedBits(value.longitude))
    case .array(let elements): append(elements, depth: depth)
    case .vector(let value): append(value)
    case .map(let fields): append(fields, depth: depth)
    case .blob(let value): append(value, depth: depth)
    }
  }

  private mutating func append(_ value: Int64) {
    guard value != 0 else { return bytes.append(KeyCoding.Tag.zero) }
    append(KeyNumber.parts(value), isNegative: value < 0)
  }

  private mutating func append(_ value: Double) {
    if value.isNaN {
      bytes.append(KeyCoding.Tag.notANumber)
    } else if value.isInfinite {
      bytes.append(value < 0 ? KeyCoding.Tag.negativeInfinity : KeyCoding.Tag.positiveInfinity)
    } else if value == 0 {
      bytes.append(KeyCoding.Tag.zero)
    } else {
      append(KeyNumber.parts(value), isNegative: value < 0)
    }
  }

  private mutating func append(_ value: DecimalValue) {
    guard !value.isZero else { return bytes.append(KeyCoding.Tag.zero) }
    switch KeyNumber.form(value) {
    case .plain(let parts): append(parts, isNegative: value.isNegative)
    case .between(let parts):
      bytes.append(value.isNegative ? KeyCoding.Tag.negative : KeyCoding.Tag.positive)
      KeyNumber.append(value, behind: parts, mask: value.isNegative ? 0xff : 0, to: &bytes)
    }
  }

  private mutating func append(_ parts: KeyNumber.Parts, isNegative: Bool) {
    bytes.append(isNegative ? KeyCoding.Tag.negative : KeyCoding.Tag.positive)
    KeyNumber.append(parts, mask: isNegative ? 0xff : 0, to: &bytes)
  }

  private mutating func append(_ value: Timestamp) {
    bytes.append(KeyCoding.Tag.timestamp)
    let offset = bytes.count
    if value.isPending { stamps.append((offset, .orderedTime)) }
    let limit = start + KeyCoding.maximumComponentLength
    if offset <= limit, offset + 8 > limit { cut = offset }
    bytes.append(highFirst: UInt64(bitPattern: value.microsecondsSince1970) ^ 1 << 63)
  }

  private mutating func append(_ path: DocumentPath) {
    bytes.append(KeyCoding.Tag.reference)
    for segment in path.segments where !isFull {
      bytes.append(KeyCoding.Tag.segment)
      appendEscaped(segment, limit: KeyCoding.maximumComponentLength)
    }
    bytes.append(KeyCoding.Tag.end)
  }

  private mutating func append(_ elements: [Value], depth: Int) {
    bytes.append(KeyCoding.Tag.array)
    for element in elements {
      guard !isFull else { return }
      append(element, depth: depth + 1)
    }
    bytes.append(KeyCoding.Tag.end)
  }

  private mutating func append(_ vector: VectorValue) {
    bytes.append(KeyCoding.Tag.vector)
    bytes.append(bits: UInt64(UInt32(clamping: vector.components.count).byteSwapped), width: 4)
    for component in vector.components where !isFull {
      bytes.append(highFirst: KeyCoding.orderedBits(component))
    }
  }

  private mutating func append(_ blob: BlobReference, depth: Int) {
    bytes.append(blob.isSealed ? KeyCoding.Tag.sealedBlob : KeyCoding.Tag.blob)
    blob.digest.append(to: &bytes)
    bytes.append(highFirst: UInt64(blob.length))
    append(blob.contentType.map { .string($0) } ?? .null, depth: depth)
    append(blob.path.map { .string($0) } ?? .null, depth: depth)
    if let key = blob.key { bytes += key.bytes }
  }

  private mutating func append(_ fields: [String: Value], depth: Int) {
    bytes.append(KeyCoding.Tag.map)
    for (name, value) in ValueOrder.sorted(fields) {
      guard !isFull else { return }
      bytes.append(KeyCoding.Tag.string)
      appendEscaped(name, limit: KeyCoding.maximumComponentLength)
      append(value, depth: depth + 1)
    }
    bytes.append(KeyCoding.Tag.end)
  }

  private mutating func appendEscaped(_ text: String, limit: Int, isWhole: Bool = true) {
    text.withUTF8Bytes { appendEscaped($0.octets, limit: limit, isWhole: isWhole) }
  }

  /// Appends `octets` with zeros escaped, and the end when `isWhole`. Stops after `limit` bytes:
  /// the caller cuts the component there anyway.
  private mutating func appendEscaped(_ octets: Span<UInt8>, limit: Int, isWhole: Bool = true) {
    let octets = octets.extracting(first: limit)
    var start = 0
    for index in octets.indices where octets[index] == 0 {
      bytes.append(octets.extracting(start...index).raw)
      bytes.append(0xff)
      start = index + 1
    }
    bytes.append(octets.extracting(start...).raw)
    if isWhole {
      bytes.append(0)
      bytes.append(1)
    }
  }
}
