// The keys of all keyed groups as one value: the decrypted contents of `KEYS`. A change is made to
// a copy of the value. The copy is written and read back, and only then does the open database use
// it (GroupKeys). So a change that could not be written has no effect anywhere.
//
// A group has a key for each range of file numbers, called an *era*, as the database itself has.
// Changing the database's key gives groups new keys as well. The first number of an era is written
// before any file has that number.

/// The decrypted contents of `KEYS`.
struct GroupKeySet: Sendable {
  struct Era: Sendable {
    var first: FileNumber
    var key: any MasterKey

    /// Whether files with the key may exist if no file has the number `next` or a greater one.
    func mayHaveFiles(before next: FileNumber) -> Bool { first < next || first == .zero }
  }

  struct Entry: Sendable {
    /// The key for the names of the group.
    var naming: any MasterKey
    /// Sorted by their first numbers, of which the first is 0; never empty.
    var eras: [Era]

    /// The key of the file with this number.
    func key(of number: FileNumber) -> (any MasterKey)? { eras.last { $0.first <= number }?.key }

    /// The keys for reading after `new` was written. They include the keys of older files, which
    /// readers of snapshots may still use although their names are gone.
    func followed(by new: Entry) -> Entry {
      guard let newest = eras.last,
        let place = new.eras.lastIndex(where: { $0.key.secret == newest.key.secret })
      else { return new }
      return Entry(naming: new.naming, eras: eras + new.eras[(place + 1)...])
    }
  }

  /// A greater number is newer. The manifest records the smallest acceptable one.
  private(set) var generation: UInt64
  private(set) var entries: [UInt32: Entry] = [:]
  /// Entries that are encrypted with a missing key, in their stored form.
  private(set) var unopened: [UInt32: GroupKeysFile.Entry] = [:]
  /// Whether any entry was encrypted with an older key of the database.
  private(set) var isOfOlderKey = false

  /// The groups with keys in this set.
  var groups: Set<UInt32> { Set(entries.keys).union(unopened.keys) }

  /// An empty set.
  ///
  /// - Parameter generation: the generation before the first one that is written.
  init(generation: UInt64) {
    self.generation = generation
  }

  /// The contents of a file.
  ///
  /// - Parameter masters: the database's keys, newest first.
  init(_ file: GroupKeysFile, openedWith masters: [any MasterKey]) {
    generation = file.generation
    for entry in file.entries {
      var isOlder = false
      func open(_ wrapped: [UInt8], _ first: UInt64) -> (any MasterKey)? {
        let context = Self.context(file.identity, entry.group, first)
        for (index, master) in masters.enumerated() {
          guard let key = master.unwrap(wrapped, for: context) else { continue }
          if index > 0 { isOlder = true }
          return key
        }
        return nil
      }
      let eras = entry.eras.compactMap { era in
        open(era.key, era.first.rawValue).map { Era(first: era.first, key: $0) }
      }
      if let naming = open(entry.naming, Self.naming), eras.count == entry.eras.count {
        entries[entry.group] = Entry(naming: naming, eras: eras)
        if isOlder { isOfOlderKey = true }
      } else {
        unopened[entry.group] = entry
      }
    }
  }

  // MARK: - The file

  /// The context for encrypting the key of one group.
  private static func context(_ identity: [UInt8], _ group: UInt32, _ first: UInt64) -> [UInt8] {
    var context = identity
    context.appendLittleEndian(group)
    context.appendLittleEndian(first)
    return context
  }

  private static let naming = UInt64.max

  /// The file with these contents, encrypted and authenticated with a key of the database.
  func file(of identity: [UInt8], by master: any MasterKey) -> GroupKeysFile {
    var file = GroupKeysFile(generation: generation, identity: identity, entries: [])
    for group in groups.sorted() {
      if let entry = entries[group] {
        func wrap(_ key: any MasterKey, _ first: UInt64) -> [UInt8] {
          master.wrap(key, for: Self.context(identity, group, first))
        }
        file.entries.append(
          GroupKeysFile.Entry(
            group: group, naming: wrap(entry.naming, Self.naming),
            eras: entry.eras.map { era in
              GroupKeysFile.Era(first: era.first, key: wrap(era.key, era.first.rawValue))
            }))
      } else if let entry = unopened[group] {
        file.entries.append(entry)
      }
    }
    file.prove(with: master)
    return file
  }

  // MARK: - Changes

  /// The next generation, to be written after this one.
  ///
  /// - Throws: `.invalid` if all generations are used up, which is only possible with a manipulated
  ///   file.
  func next() throws(EngineError) -> GroupKeySet {
    guard generation < Bounds.greatestCounter else {
      throw .invalid(reason: "generations of \(GroupKeysFile.name) are used up")
    }
    var next = self
    next.generation += 1
    next.isOfOlderKey = false
    return next
  }

  /// Gives a group new keys.
  mutating func add(_ group: UInt32, from master: any MasterKey) {
    entries[group] = Entry(
      naming: master.makeOther(), eras: [Era(first: .zero, key: master.makeOther())])
  }

  /// Forgets the keys of all other groups.
  mutating func keep(_ live: [UInt32]) {
    entries = entries.filter { live.contains($0.key) }
    unopened = unopened.filter { live.contains($0.key) }
  }

  /// Whether groups can be given new keys. Every attempt that was not completed leaves one if files
  /// have been created with it since.
  func hasRoomForEra(behind next: FileNumber) -> Bool {
    entries.values.allSatisfy { entry in
      entry.eras.count { $0.mayHaveFiles(before: next) } < GroupKeysFile.mostEras
    }
  }

  /// Gives all groups new keys for files from `border` on.
  ///
  /// - Parameter next: no file has this number or a greater one. Eras that an earlier attempt has
  ///   begun there are unused.
  mutating func beginEra(
    at border: FileNumber, behind next: FileNumber, from master: any MasterKey
  ) {
    entries = entries.mapValues { entry in
      let eras = entry.eras.filter { $0.mayHaveFiles(before: next) }
      return Entry(
        naming: entry.naming, eras: eras + [Era(first: border, key: master.makeOther())])
    }
  }

  /// Forgets the keys for files before `border`.
  mutating func finishEras(before border: FileNumber) {
    entries = entries.mapValues { entry in
      guard let key = entry.key(of: border) else { return entry }
      return Entry(
        naming: entry.naming,
        eras: [Era(first: .zero, key: key)] + entry.eras.filter { $0.first > border })
    }
  }
}
