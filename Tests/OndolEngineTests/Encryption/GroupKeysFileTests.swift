// The file with the keys of groups: its two copies, erasing from it, and how many keys of a group
// fit in it.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct GroupKeysFileTests {
  @Test func `A bit in one copy of the keys is mended, and in both it locks`() async throws {
    let place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    try await engine.put([rowKey("a", group: group): [1]])
    try await engine.close()
    let sound = try place.bytes(of: GroupKeysFile.name)
    var random = OndolTestKit.SeededRandom(seed: 11)
    for copy in GroupKeysFile.offsets {
      var damaged = sound
      let bit = random.below(8 * GroupKeysFile.length)
      damaged[Int(copy) + bit / 8] ^= 1 << UInt8(bit % 8)
      try place.write(damaged, to: GroupKeysFile.name)
      engine = try await place.open()
      #expect(try engine.rows(of: group) == ["a": [1]], "bit \(bit) of the copy at \(copy)")
      try await engine.put([rowKey("b"): [1]])
      try await engine.close()
      let file = try place.directory.open(GroupKeysFile.name, access: .readOnly)
      let identity = engine.identity.bytes
      let keys = [UnopenedKey()]
      let findings = try GroupKeysFile.findings(in: file, of: identity, vouchedForBy: keys)
      #expect(findings.isEmpty, "bit \(bit)")
    }
    var damaged = sound
    for copy in GroupKeysFile.offsets { damaged[Int(copy) + 100] ^= 4 }
    try place.write(damaged, to: GroupKeysFile.name)
    engine = try await place.open()
    #expect(engine.keyedGroups == [group: false])
    try await engine.close()
  }

  @Test(arguments: Seeds.first(2))
  func `Whatever stands in the file of keys, reading it is an answer or an error`(
    seed: UInt64
  ) throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let identity = random.bytes(16)
    let entries = (0..<3).map { number in
      GroupKeysFile.Entry(
        group: KeyedGroups.numbers.lowerBound + 5 * UInt32(number), naming: random.bytes(60),
        eras: (0...number).map {
          GroupKeysFile.Era(first: FileNumber(rawValue: UInt64($0 * 100)), key: random.bytes(60))
        })
    }
    var file = GroupKeysFile(generation: 9, identity: identity, entries: entries)
    file.prove(with: try SealOracle().makeKey(for: identity).key)
    let sound = file.encode()
    #expect(try GroupKeysFile(sound.bytes, of: identity) == file)
    var (read, refused) = (0, 0)
    for _ in 0..<2_000 {
      var bytes = sound
      for _ in 0...random.below(3) {
        // Mostly where there is data.
        let place = random.chance(1, in: 4) ? random.below(bytes.count - 8) : random.below(1_600)
        bytes[place] = random.chance(1, in: 2) ? random.bytes(1)[0] : bytes[place] ^ 0x80
      }
      bytes.removeLast(8)
      let checksum = seededChecksum(0x4F4E_444F_4C4B_4559, bytes.bytes)
      bytes.appendLittleEndian(checksum)
      do throws(MalformedBytes) {
        let found = try GroupKeysFile(bytes.bytes, of: identity)
        read += 1
        // Everything readable comes back unchanged, except for unused bytes.
        if let found { #expect(try GroupKeysFile(found.encode().bytes, of: identity) == found) }
      } catch {
        refused += 1
      }
    }
    #expect(read > 200 && refused > 20, "SEED=\(seed): \(read) read, \(refused) refused")
  }

  /// As a crash leaves it, or an attacker who restores an earlier copy.
  @Test func `A key of a group that is gone is erased at the next opening, whatever else is done`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open()
    let groups = [try await engine.makeKeyedGroup(), try await engine.makeKeyedGroup()]
    try await engine.close()
    let both = try place.bytes(of: GroupKeysFile.name)
    engine = try await place.open()
    try await engine.dropKeyedGroup(groups[0])
    try await engine.close()
    try place.write(both, to: GroupKeysFile.name)
    engine = try await place.open()
    try await engine.close()
    let file = try place.directory.open(GroupKeysFile.name, access: .readOnly)
    let left = try GroupKeysFile.groups(in: file, of: engine.identity.bytes)
    #expect(left == [[groups[1]], [groups[1]]])
  }

  @Test func `Attempts at other keys that came to no end are kept, and are not too many`() throws {
    let identity = [UInt8](repeating: 7, count: 16)
    let master = try SealOracle().makeKey(for: identity).key
    var keys = GroupKeySet(generation: 0)
    let group = KeyedGroups.numbers.lowerBound
    keys.add(group, from: master)
    for attempt in 1..<GroupKeysFile.mostEras {
      let next = FileNumber(rawValue: UInt64(attempt * 1000))
      #expect(keys.hasRoomForEra(behind: next))
      // A key that no file was made with takes no room.
      for offset in [100, 200] as [UInt64] {
        let border = FileNumber(rawValue: next.rawValue + offset)
        keys.beginEra(at: border, behind: next, from: master)
      }
    }
    let next = FileNumber(rawValue: UInt64(GroupKeysFile.mostEras * 1000))
    #expect(!keys.hasRoomForEra(behind: next))
    let file = keys.file(of: identity, by: master)
    #expect(try GroupKeysFile(file.encode().bytes, of: identity) == file)
    #expect(file.entries[0].eras.map(\.first.rawValue) == [0, 1200, 2200, 3200, 4200, 5200])
  }
}
