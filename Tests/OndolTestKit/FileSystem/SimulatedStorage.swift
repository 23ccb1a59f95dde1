// The contents of a simulated disk: for every file the bytes that programs see and the bytes that a
// power cut leaves, for every directory the same for its names. All of it is one value, so a
// picture of the whole world before an operation is an assignment.
//
// Content is cut into pages that pictures share. A write replaces the pages that it touches. A page
// remembers every version since the last sync together with the sectors that the version wrote,
// because the system may have written any of them to the disk on its own, sector by sector.

/// The smallest piece that a disk writes whole or not at all.
let sectorSize = 512
/// The smallest piece that pictures share.
let pageSize = 4096
private let zeroPage = [UInt8](repeating: 0, count: pageSize)

/// Bytes in pages. Beyond the size the last page is zero.
struct PagedBytes: Sendable {
  var pages: [[UInt8]] = []
  var size = 0

  /// Up to `count` bytes from `offset`, fewer at the end.
  func read(at offset: Int, count: Int) -> [UInt8] {
    let end = Swift.min(size, offset + Swift.min(count, size))
    guard offset < end else { return [] }
    var result: [UInt8] = []
    result.reserveCapacity(end - offset)
    var position = offset
    while position < end {
      let within = position % pageSize
      let length = Swift.min(pageSize - within, end - position)
      result.append(contentsOf: pages[position / pageSize][within..<(within + length)])
      position += length
    }
    return result
  }

  func page(_ index: Int) -> [UInt8] {
    index < pages.count ? pages[index] : zeroPage
  }

  /// Changes its length to `newSize`: adds zeros or cuts bytes off.
  mutating func resize(to newSize: Int) {
    let count = (newSize + pageSize - 1) / pageSize
    if count < pages.count {
      pages.removeLast(pages.count - count)
    }
    while pages.count < count {
      pages.append(zeroPage)
    }
    if newSize < size, newSize % pageSize != 0 {
      let kept = newSize % pageSize
      pages[count - 1] =
        Array(pages[count - 1][0..<kept]) + [UInt8](repeating: 0, count: pageSize - kept)
    }
    size = newSize
  }
}

/// One content of a page since the last sync.
struct PageVersion: Sendable {
  /// The number of the operation that wrote it.
  var operation: Int
  /// A bit for each sector that was written.
  var sectors: UInt8
  var bytes: [UInt8]
}

/// A file, whether it still has a name or not.
struct StoredFile: Sendable {
  /// The bytes that reads see.
  var current = PagedBytes()
  /// The bytes that certainly survive.
  var durable = PagedBytes()
  /// The bytes from the start with reserved space, written or not.
  var reserved = 0
  /// The disk's possible other contents, by page.
  var unsynced: [Int: [PageVersion]] = [:]
  /// The sizes since the last sync.
  var unsyncedSizes: [(operation: Int, size: Int)] = []

  /// The bytes that it takes.
  var extent: Int { Swift.max(current.size, reserved) }

  mutating func write(_ bytes: [UInt8], at offset: Int, operation: Int) {
    guard !bytes.isEmpty else { return }
    let end = offset + bytes.count
    if end > current.size { current.resize(to: end) }
    if end > savableSize { unsyncedSizes.append((operation, end)) }
    var position = offset
    while position < end {
      let index = position / pageSize
      let within = position % pageSize
      let length = Swift.min(pageSize - within, end - position)
      let piece = bytes[(position - offset)..<(position - offset + length)]
      let old = current.pages[index]
      var page: [UInt8] = []
      page.reserveCapacity(pageSize)
      page.append(contentsOf: old[0..<within])
      page.append(contentsOf: piece)
      page.append(contentsOf: old[(within + length)...])
      current.pages[index] = page
      var sectors: UInt8 = 0
      for sector in (within / sectorSize)...((within + length - 1) / sectorSize) {
        sectors |= 1 << UInt8(sector)
      }
      unsynced[index, default: []].append(
        PageVersion(operation: operation, sectors: sectors, bytes: page))
      position += length
    }
  }

  /// Everything written since the last sync survives from now on.
  mutating func sync() {
    durable.resize(to: savableSize)
    for index in unsynced.keys where index < durable.pages.count {
      durable.pages[index] = current.pages[index]
    }
    forgetUnsynced()
  }

  /// The bytes written in this range survive from now on, and nothing else. Neighbouring bytes in a
  /// sector survive with them, because a sector is written whole, but those in the next one do not.
  mutating func sync(_ range: Range<Int>) {
    guard !range.isEmpty else { return }
    if durable.size < range.upperBound { durable.resize(to: range.upperBound) }
    for index in (range.lowerBound / pageSize)...((range.upperBound - 1) / pageSize)
    where index < durable.pages.count && index < current.pages.count {
      for sector in Self.sectors(of: index, in: range) {
        let bytes = (sector * sectorSize)..<((sector + 1) * sectorSize)
        durable.pages[index].replaceSubrange(bytes, with: current.pages[index][bytes])
      }
    }
    forgetUnsynced(in: range)
  }

  /// The system counts these sectors as clean, whether the disk got them or not.
  mutating func forgetUnsynced(in range: Range<Int>) {
    guard !range.isEmpty else { return }
    for index in (range.lowerBound / pageSize)...((range.upperBound - 1) / pageSize) {
      let written = Self.sectors(of: index, in: range).reduce(into: UInt8(0)) {
        $0 |= 1 << UInt8($1)
      }
      for version in (unsynced[index] ?? []).indices {
        unsynced[index]?[version].sectors &= ~written
      }
      unsynced[index]?.removeAll { $0.sectors == 0 }
      if unsynced[index]?.isEmpty == true { unsynced[index] = nil }
    }
    unsyncedSizes.removeAll { $0.size <= durable.size }
  }

  /// The sectors of a page that `range` touches.
  private static func sectors(of page: Int, in range: Range<Int>) -> ClosedRange<Int> {
    let first = max(range.lowerBound - page * pageSize, 0) / sectorSize
    let last = min(range.upperBound - page * pageSize, pageSize) - 1
    return first...(last / sectorSize)
  }

  /// The size that the next sync saves. It is less than the current one after a failed sync.
  var savableSize: Int { unsyncedSizes.last?.size ?? durable.size }

  /// The state after a failed sync: the system counts the pages as clean, although the disk never
  /// got them.
  mutating func forgetUnsynced() {
    unsynced = [:]
    unsyncedSizes = []
  }
}

/// The names of a directory.
struct StoredDirectory: Sendable {
  enum Change: Sendable {
    case add(String, file: Int)
    case remove(String)
  }

  var current: [String: Int] = [:]
  var durable: [String: Int] = [:]
  var unsynced: [(operation: Int, change: Change)] = []
  /// Whether the directory's own name survives a power cut.
  var isNameDurable = false
  /// The holder of the directory's lock, if there is one, and the number of that lock.
  var lock: (owner: String, number: Int)?

  mutating func make(_ change: Change, operation: Int) {
    Self.apply(change, to: &current)
    unsynced.append((operation, change))
  }

  mutating func sync() {
    durable = current
    unsynced = []
  }

  static func apply(_ change: Change, to names: inout [String: Int]) {
    switch change {
    case .add(let name, let file): names[name] = file
    case .remove(let name): names[name] = nil
    }
  }
}

/// The whole disk.
package struct SimulatedStorage: Sendable {
  var files: [Int: StoredFile] = [:]
  var directories: [String: StoredDirectory] = [:]
  var nextNumber = 0

  package init() {}

  /// The bytes of files with a name, including holes.
  package var used: Int {
    directories.values.reduce(0) { sum, directory in
      directory.current.values.reduce(sum) { $0 + (files[$1]?.extent ?? 0) }
    }
  }

  /// Whether a directory has the file under a name.
  func isNamed(_ number: Int) -> Bool {
    directories.values.contains { $0.current.values.contains(number) }
  }

  mutating func makeNumber() -> Int {
    nextNumber += 1
    return nextNumber
  }

  /// The bytes that programs see in a file, for a test's look at the disk.
  package func contents(of name: String, in path: String) -> [UInt8]? {
    guard let number = directories[path]?.current[name], let file = files[number] else {
      return nil
    }
    return file.current.read(at: 0, count: file.current.size)
  }

  package func names(in path: String) -> [String] {
    (directories[path]?.current.keys).map { $0.sorted() } ?? []
  }

  /// The disk that the next process finds after a kill of this one: all writes, synced or not, and
  /// no locks.
  package func afterKill() -> SimulatedStorage {
    var rest = self
    for path in rest.directories.keys {
      rest.directories[path]?.lock = nil
    }
    return rest
  }
}
