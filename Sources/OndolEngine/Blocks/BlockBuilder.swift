// Collects rows and lays them out as a block (see BlockLayout). The segment's writer uses it for
// data and index blocks, and it is used in memory for any sorted list of keys that is searched like
// a block.

/// Rows for one block.
struct BlockBuilder {
  private var keys: [UInt8] = []
  private var keyLengths: [UInt32] = []
  private var values: [UInt8] = []
  private var valueLengths: [UInt32] = []
  private var kinds: [UInt8] = []
  private var hasKinds = false
  private var longestKey = 0
  private var longestValue = 0
  /// The number of bytes that the first and the last key share, and so all keys between them.
  private var sharedLength = 0

  init() {}

  var rowCount: Int { keyLengths.count }
  var isEmpty: Bool { keyLengths.isEmpty }

  /// The approximate bytes of the block if it ended here.
  var estimatedLength: Int {
    BlockLayout.headerLength + keys.count - (rowCount - 1) * sharedLength + values.count
      + 3 * rowCount
  }

  /// The last added key, or nothing.
  var lastKey: RawSpan {
    @_lifetime(borrow self)
    get { keys.bytes.extracting(last: Int(keyLengths.last ?? 0)) }
  }

  mutating func append(_ kind: RowKind, key: RawSpan, value: RawSpan) {
    if isEmpty {
      sharedLength = key.byteCount
    } else {
      sharedLength = keys.bytes.sharedPrefix(with: key, atMost: sharedLength)
    }
    keys.append(key)
    keyLengths.append(UInt32(key.byteCount))
    longestKey = max(longestKey, key.byteCount)
    values.append(value)
    valueLengths.append(UInt32(value.byteCount))
    longestValue = max(longestValue, value.byteCount)
    kinds.append(kind.rawValue)
    if kind != .put { hasKinds = true }
  }

  mutating func removeAll() {
    keys.removeAll(keepingCapacity: keys.count <= 1 << 20)
    keyLengths.removeAll(keepingCapacity: true)
    values.removeAll(keepingCapacity: values.count <= 1 << 20)
    valueLengths.removeAll(keepingCapacity: true)
    kinds.removeAll(keepingCapacity: true)
    hasKinds = false
    longestKey = 0
    longestValue = 0
    sharedLength = 0
  }

  /// The block, appended to `output`. There must be a row.
  func encode(into output: inout [UInt8]) {
    precondition(!isEmpty && rowCount <= BlockLayout.maximumRows, "a block of no or too many rows")
    let keyWidth = BlockLayout.width(for: longestKey - sharedLength)
    let valueWidth = BlockLayout.width(for: longestValue)
    output.reserveCapacity(output.count + estimatedLength + 8 * rowCount)
    output.appendLittleEndian(UInt32(rowCount))
    output.append(BlockLayout.version)
    output.append(hasKinds ? BlockLayout.kindsFlag : 0)
    output.append(keyWidth)
    output.append(valueWidth)
    output.appendLittleEndian(UInt32(sharedLength))
    output.appendLittleEndian(UInt32(keys.count - rowCount * sharedLength))
    output.append(keys.bytes.extracting(first: sharedLength))
    Self.append(keyLengths, less: UInt32(sharedLength), width: keyWidth, to: &output)
    Self.append(valueLengths, less: 0, width: valueWidth, to: &output)
    if hasKinds { output.append(contentsOf: kinds) }
    var offset = 0
    for length in keyLengths {
      let end = offset + Int(length)
      output.append(keys.bytes.extracting((offset + sharedLength)..<end))
      offset = end
    }
    output.append(contentsOf: values)
  }

  private static func append(
    _ lengths: [UInt32], less base: UInt32, width: UInt8, to output: inout [UInt8]
  ) {
    switch width {
    case 1: for length in lengths { output.append(UInt8(length - base)) }
    case 2: for length in lengths { output.appendLittleEndian(UInt16(length - base)) }
    default: for length in lengths { output.appendLittleEndian(length - base) }
    }
  }
}
