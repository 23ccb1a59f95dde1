// The opening of an encrypted database. The target damages a superblock and corrects its checksums,
// as an attacker could with the device and without the key. The superblock is refused, or it is the
// written one. Then the target damages, moves and opens units that were sealed for places in files.
// They are the sealed ones, or are refused.

@testable import Ondol
@testable import OndolEngine

enum SealedTarget: FuzzTarget {
  static let name = "sealed"

  private static let identity = DatabaseIdentity(low: 1, high: 2)
  private static let border = FileNumber(rawValue: 70_000)
  private static let salt: UInt64 = 9
  private static let vaults = [1, 2].map { byte in
    DatabaseVault(.key([UInt8](repeating: byte, count: Database.Encryption.keyLength)))
  }

  /// Keys of every kind, and the vault that opens them: one key, and the three changes.
  private static let rings: [(ring: Keyring, vault: Int)] = {
    do throws(EngineError) {
      let (one, other) = (try key(0), try key(1))
      let plain = Keyring(one.key, kept: one.kept, identity: identity.bytes, random: { 7 })
      func change(_ ring: Keyring?, to new: (key: any MasterKey, kept: [UInt8])?) -> Keyring {
        .changing(ring, to: new, from: border, identity: identity.bytes, random: { 7 })
      }
      return [
        (plain, 0), (change(nil, to: one), 0), (change(plain, to: other), 1),
        (change(plain, to: nil), 0),
      ]
    } catch {
      demand(false, "keys cannot be made: \(error)")
      return []
    }
  }()

  private static func key(
    _ vault: Int
  ) throws(EngineError) -> (key: any MasterKey, kept: [UInt8]) {
    try vaults[vault].makeKey(for: identity.bytes)
  }

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    let (ring, vault) = input.pick(rings)
    var superblock = Superblock(
      identity: identity, epoch: 6, manifest: FileNumber(rawValue: 5), shardCount: 4, created: 1,
      written: 2)
    superblock.prove(with: ring)
    guard let opened = open(superblock, with: vault, &input) else { return }
    for number in [border.rawValue - 1, border.rawValue, input.edge()] {
      tryUnit(of: FileNumber(rawValue: number), ring, opened, &input)
    }
  }

  /// Returns the keys of the damaged superblock, if the right vault opens it.
  private static func open(
    _ superblock: Superblock, with vault: Int, _ input: inout FuzzInput
  ) -> Keyring? {
    let directory = FuzzDirectory()
    guard let file = try? directory.create(Superblock.name),
      (try? superblock.write(to: file)) != nil
    else {
      demand(false, "a superblock cannot be written")
      return nil
    }
    // One slot, so that no other one can replace it.
    let sound = Array(directory.contents(Superblock.name).prefix(Superblock.slotLength))
    var contents = sound
    contents.damage(&input)
    if input.flag() { seal(&contents) }
    let damaged = FuzzDirectory([Superblock.name: contents])
    guard let again = try? damaged.open(Superblock.name, access: .readOnly),
      let read = try? Superblock.read(from: again)
    else {
      demand(contents != sound, "a sound superblock is refused")
      return nil
    }
    for (number, other) in vaults.enumerated() {
      let opened = try? read.unlock(with: other, at: "d", random: { 7 })
      guard read == superblock else {
        demand(opened == nil, "a superblock that was changed is opened")
        continue
      }
      demand((opened != nil) == (number == vault), "another key opens it, or its own does not")
      if number == vault { return opened ?? nil }
    }
    return nil
  }

  /// Corrects the checksum of the slot.
  private static func seal(_ slot: inout [UInt8]) {
    let end = Superblock.slotLength - 8
    guard slot.count >= Superblock.slotLength else { return }
    let checksum = seededChecksum(0x4F4E_444F_4C53_4221, slot.bytes.extracting(first: end))
    slot.overwriteLittleEndian(checksum, at: end)
  }

  /// Seals bytes with the written keys, and opens the damaged result with the keys that were read.
  private static func tryUnit(
    of number: FileNumber, _ written: Keyring, _ read: Keyring, _ input: inout FuzzInput
  ) {
    let seal = written.seal(.segment, number: number, salt: salt)
    let opener = read.seal(.segment, number: number, salt: salt)
    demand(
      written.seals(number) == (seal != nil) && (seal == nil) == (opener == nil),
      "keys that were read are for other files than those that were written")
    guard let seal, let opener else { return }
    let plain = input.take(input.below(60))
    var sealed = plain
    seal.seal(&sealed, from: 0, .block, at: 64, context: [1])
    let sound = sealed
    sealed.damage(&input)
    let offset: UInt64 = input.oneIn(4) ? 72 : 64
    var opened: [UInt8] = []
    let isOpened =
      (try? opener.open(
        sealed.bytes, .block, at: offset, context: [1], appendingTo: &opened)) != nil
    demand(isOpened == (sealed == sound && offset == 64), "a unit is believed, or is not")
    demand(opened == (isOpened ? plain : []), "what was opened is not what was sealed")
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var chance = Chance(17)
    return [8, 20, 60, 120, 200, 300].map { chance.bytes($0) }
  }
}
