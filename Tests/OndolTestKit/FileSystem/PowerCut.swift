// The rules for what a power cut leaves of a simulated disk. Only syncs promise anything:
//
// - For every sector written since the file's last sync, the disk holds any one of its contents
//   since then, or the one before, or the beginning of one and the end of another.
// - The file is as long as at its last sync, as long as now, or anything in between, independently
//   of which bytes arrived. Where it grew without its bytes there are zeros, noise, or the bytes of
//   another file.
// - Every name created or removed since the directory's last sync is created or removed, or not,
//   each on its own.
//
// A fair coin for each sector would make the likeliest disasters (nothing arrived, all except one
// sector arrived, everything up to one moment arrived) too rare, so the cut first draws a mood.

/// How a cut treats unsynced writes.
private enum Mood {
  case keepAll
  case loseAll
  /// Everything before this operation arrived, and the rest did not.
  case until(operation: Int)
  /// Each piece arrives in `sixteenths` of sixteen cases.
  case scatter(sixteenths: Int)
}

/// The bytes where a file grew and its bytes did not arrive.
private enum Filling: CaseIterable {
  case zeros
  case noise
  case stale
}

extension SimulatedStorage {
  /// A possible disk after a power cut, the same one for the same seed. It holds no locks.
  package func afterPowerCut(seed: UInt64) -> SimulatedStorage {
    var cut = PowerCut(seed: seed, before: self)
    return cut.result()
  }
}

private struct PowerCut {
  private let before: SimulatedStorage
  private var random: SeededRandom
  /// One mood for the whole disk, unless each file has its own.
  private var commonMood: Mood?
  private var operations: ClosedRange<Int>

  init(seed: UInt64, before: SimulatedStorage) {
    self.before = before
    random = SeededRandom(seed: seed)
    operations = before.unsyncedOperations
    switch random.below(8) {
    case 0: commonMood = .keepAll
    case 1: commonMood = .loseAll
    case 2, 3: commonMood = .until(operation: random.within(operations))
    default: commonMood = nil
    }
  }

  mutating func result() -> SimulatedStorage {
    var after = SimulatedStorage()
    after.nextNumber = before.nextNumber
    for (path, directory) in before.directories.sorted(by: { $0.key < $1.key }) {
      if !directory.isNameDurable, losesName() { continue }
      let names = survivingNames(of: directory)
      after.directories[path] = StoredDirectory(
        current: names, durable: names, isNameDurable: true)
      for number in names.values.sorted() {
        guard after.files[number] == nil, let file = before.files[number] else { continue }
        let content = survivingContent(of: file)
        after.files[number] = StoredFile(current: content, durable: content)
      }
    }
    return after
  }

  // MARK: - Names

  /// Whether a directory with an unsynced name is gone.
  private mutating func losesName() -> Bool {
    switch drawMood() {
    case .keepAll, .until: false
    case .loseAll: true
    case .scatter(let sixteenths): !random.chance(sixteenths, in: 16)
    }
  }

  private mutating func survivingNames(of directory: StoredDirectory) -> [String: Int] {
    let mood = drawMood()
    var names = directory.durable
    for (operation, change) in directory.unsynced where keeps(operation, in: mood) {
      StoredDirectory.apply(change, to: &names)
    }
    return names
  }

  // MARK: - Contents

  private mutating func survivingContent(of file: StoredFile) -> PagedBytes {
    guard !file.unsynced.isEmpty || !file.unsyncedSizes.isEmpty else { return file.durable }
    let mood = drawMood()
    let filling: Filling = random.chance(3, in: 4) ? .zeros : random.pick(Filling.allCases)
    var content = file.durable
    content.resize(to: file.savableSize)
    for (index, versions) in file.unsynced.sorted(by: { $0.key < $1.key })
    where index < content.pages.count {
      content.pages[index] = survivingPage(
        index, of: file.durable, versions: versions, mood: mood, filling: filling)
    }
    content.resize(to: survivingSize(of: file, mood: mood))
    return content
  }

  private mutating func survivingPage(
    _ index: Int, of durable: PagedBytes, versions: [PageVersion], mood: Mood, filling: Filling
  ) -> [UInt8] {
    var page = durable.page(index)
    for sector in 0..<(pageSize / sectorSize) {
      let contents = versions.filter { $0.sectors & (1 << UInt8(sector)) != 0 }
      guard !contents.isEmpty else { continue }
      let range = (sector * sectorSize)..<((sector + 1) * sectorSize)
      var old = Array(page[range])
      let start = index * pageSize + range.lowerBound
      if start >= durable.size {
        old = fill(filling, at: start)
      }
      page.replaceSubrange(range, with: survivingSector(old, contents, range, mood))
    }
    return page
  }

  /// Returns one of the contents that the sector had, or a torn one.
  private mutating func survivingSector(
    _ old: [UInt8], _ contents: [PageVersion], _ range: Range<Int>, _ mood: Mood
  ) -> [UInt8] {
    switch mood {
    case .keepAll:
      return Array(contents[contents.count - 1].bytes[range])
    case .loseAll:
      return old
    case .until(let operation):
      let arrived = contents.last { $0.operation < operation }.map { Array($0.bytes[range]) } ?? old
      // The write during which the power went.
      guard let torn = contents.first(where: { $0.operation == operation }) else { return arrived }
      return mix(arrived, Array(torn.bytes[range]))
    case .scatter(let sixteenths):
      guard random.chance(sixteenths, in: 16) else { return old }
      let newest = contents.count - 1
      let choice = random.chance(3, in: 4) ? newest : random.below(contents.count)
      let content = Array(contents[choice].bytes[range])
      guard random.chance(1, in: 8) else { return content }
      return mix(choice == 0 ? old : Array(contents[choice - 1].bytes[range]), content)
    }
  }

  /// The beginning of one and the end of the other.
  private mutating func mix(_ old: [UInt8], _ new: [UInt8]) -> [UInt8] {
    let place = random.below(sectorSize + 1)
    return random.chance(3, in: 4)
      ? Array(new[0..<place] + old[place...]) : Array(old[0..<place] + new[place...])
  }

  private mutating func survivingSize(of file: StoredFile, mood: Mood) -> Int {
    let durable = file.durable.size
    let current = file.savableSize
    guard current > durable else { return current }
    switch mood {
    case .keepAll: return current
    case .loseAll: return durable
    case .until(let operation):
      return file.unsyncedSizes.last { $0.operation <= operation }?.size ?? durable
    case .scatter:
      switch random.below(4) {
      case 0: return durable
      case 1: return durable + random.below(current - durable + 1)
      default: return current
      }
    }
  }

  /// Files whose bytes may appear elsewhere: all since the oldest one that still has a name.
  private var staleFiles: [Int] {
    let oldest = before.directories.values.flatMap(\.current.values).min() ?? 0
    return before.files.keys.filter { $0 >= oldest }.sorted()
  }

  private mutating func fill(_ filling: Filling, at offset: Int) -> [UInt8] {
    switch filling {
    case .zeros: break
    case .noise: return random.bytes(sectorSize)
    case .stale:
      let other = before.files[random.pick(staleFiles)]
      let stale = other?.current.read(at: offset, count: sectorSize) ?? []
      if stale.count == sectorSize { return stale }
    }
    return [UInt8](repeating: 0, count: sectorSize)
  }

  // MARK: - Chance

  private mutating func drawMood() -> Mood {
    if let commonMood { return commonMood }
    switch random.below(8) {
    case 0: return .keepAll
    case 1: return .loseAll
    case 2: return .until(operation: random.within(operations))
    default: return .scatter(sixteenths: random.pick([2, 8, 12, 15]))
    }
  }

  private mutating func keeps(_ operation: Int, in mood: Mood) -> Bool {
    switch mood {
    case .keepAll: true
    case .loseAll: false
    case .until(let last): operation < last
    case .scatter(let sixteenths): random.chance(sixteenths, in: 16)
    }
  }
}

extension SimulatedStorage {
  /// The operations from the first unsynced one to the one after the last.
  fileprivate var unsyncedOperations: ClosedRange<Int> {
    var first = Int.max
    var last = Int.min
    func note(_ operation: Int) {
      first = Swift.min(first, operation)
      last = Swift.max(last, operation)
    }
    for file in files.values {
      for versions in file.unsynced.values {
        for version in versions { note(version.operation) }
      }
      for size in file.unsyncedSizes { note(size.operation) }
    }
    for directory in directories.values {
      for change in directory.unsynced { note(change.operation) }
    }
    return first <= last ? first...(last + 1) : 0...0
  }
}

extension SeededRandom {
  fileprivate mutating func within(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + below(range.count)
  }
}
