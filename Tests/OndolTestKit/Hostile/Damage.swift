// All possible damages to one file of a small database: every bit flipped, every length cut to,
// every sector zeroed, doubled or swapped with its neighbour, the file gone, the file replaced by
// another database's. They are numbered, so that a part of them can be drawn and one of them
// repeated.

/// One damage to one file.
struct Damage: Sendable, CustomStringConvertible {
  enum Kind: Sendable {
    case flip(bit: Int)
    case truncate(length: Int)
    case zero(sector: Int)
    /// The sector also replaces the next one.
    case double(sector: Int)
    /// With the next one.
    case swap(sector: Int)
    case remove
    /// With the file of another database that has the same role.
    case exchange
  }

  var file: String
  var kind: Kind

  var description: String { "\(kind) of \(file)" }

  /// Whether it is one bit, which every checksum finds.
  var isFlip: Bool { if case .flip = kind { true } else { false } }

  /// The damaged bytes; nil if the file is gone. A sector after the end is left alone.
  func apply(to bytes: [UInt8], other: [UInt8]?) -> [UInt8]? {
    var damaged = bytes
    switch kind {
    case .flip(let bit): damaged[bit / 8] ^= 1 << UInt8(bit % 8)
    case .truncate(let length): damaged.removeLast(bytes.count - length)
    case .zero(let sector):
      let place = Self.place(of: sector, in: bytes)
      damaged.replaceSubrange(place, with: [UInt8](repeating: 0, count: place.count))
    case .double(let sector):
      let next = Self.place(of: sector + 1, in: bytes)
      damaged.replaceSubrange(
        next, with: bytes[Self.place(of: sector, in: bytes)].prefix(next.count))
    case .swap(let sector):
      let next = Self.place(of: sector + 1, in: bytes)
      let place = Self.place(of: sector, in: bytes).prefix(next.count)
      damaged.replaceSubrange(next, with: bytes[place])
      damaged.replaceSubrange(place, with: bytes[next])
    case .remove: return nil
    case .exchange: return other ?? []
    }
    return damaged
  }

  private static func place(of sector: Int, in bytes: [UInt8]) -> Range<Int> {
    let start = min(sector * sectorSize, bytes.count)
    return start..<min(start + sectorSize, bytes.count)
  }
}

/// All damages to the files of a database, by number.
struct DamageList: Sendable {
  private let files: [(name: String, size: Int)]
  /// The number of each file's first damage, followed by the total.
  private let starts: [Int]

  init(_ files: [(name: String, size: Int)]) {
    self.files = files
    starts = files.reduce(into: [0]) { starts, file in
      starts.append((starts.last ?? 0) + Self.count(size: file.size))
    }
  }

  var count: Int { starts.last ?? 0 }

  /// Bits, lengths, three for each sector, gone, exchanged.
  private static func count(size: Int) -> Int { 9 * size + 3 * sectors(size) + 2 }

  private static func sectors(_ size: Int) -> Int { (size + sectorSize - 1) / sectorSize }

  /// The damage with a number below `count`.
  subscript(number: Int) -> Damage {
    let index = starts.lastIndex { $0 <= number && number < count } ?? 0
    let (name, size) = files[min(index, files.count - 1)]
    var rest = number - starts[index]
    if rest < 8 * size { return Damage(file: name, kind: .flip(bit: rest)) }
    rest -= 8 * size
    if rest < size { return Damage(file: name, kind: .truncate(length: rest)) }
    rest -= size
    let sectors = Self.sectors(size)
    switch rest {
    case 0: return Damage(file: name, kind: .remove)
    case 1: return Damage(file: name, kind: .exchange)
    default: rest -= 2
    }
    let sector = rest % max(1, sectors)
    switch rest / max(1, sectors) {
    case 0: return Damage(file: name, kind: .zero(sector: sector))
    case 1: return Damage(file: name, kind: .double(sector: sector))
    default: return Damage(file: name, kind: .swap(sector: sector))
    }
  }
}
