// Every kind of damage that a check must find, how to plant it, and the required report.

import OndolTestKit
import Testing

@testable import Ondol
@testable import OndolEngine

/// One kind of damage.
struct PlantedDamage: CustomTestStringConvertible, Sendable {
  /// The required report; nil permits anything.
  struct Expected: Sendable {
    var kind: Finding.Kind
    var severity = Finding.Severity.error
    var file: String?
    var offset: UInt64?
    var collection: String?
    var id: String?
    var storagePath: String?
    var text = ""
  }

  let testDescription: String
  /// Whether the database was killed with commits in its logs, instead of closed.
  var isKilled = false
  let plant: @Sendable (DamageSite) async throws -> Expected

  init(
    _ name: String, killed: Bool = false,
    _ plant: @escaping @Sendable (DamageSite) async throws -> Expected
  ) {
    testDescription = name
    isKilled = killed
    self.plant = plant
  }

  static let all =
    superblocks + manifests + logs + segments + values + catalogs + mirrors + indexes
    + documents + contents + trees

  // MARK: - The files where opening begins

  static let superblocks = [
    PlantedDamage("superblock, all slots") { site in
      try site.sample.replace("SUPER", with: [UInt8](repeating: 0x55, count: 73_728))
      return Expected(kind: .superblock, file: "SUPER")
    },
    PlantedDamage("superblock, one copy") { site in
      let offset = try site.writtenSlots()[0]
      try site.sample.flip("SUPER", at: Int(offset) + 72)
      return Expected(kind: .superblock, severity: .warning, file: "SUPER", offset: offset)
    },
    PlantedDamage("superblock, missing") { site in
      try site.remove("SUPER")
      return Expected(kind: .superblock, file: "SUPER", text: "missing")
    },
  ]

  static let manifests = [
    PlantedDamage("manifest, header") { site in
      let name = try site.file("MANIFEST-")
      try site.sample.flip(name, at: 20)
      return Expected(kind: .manifest, file: name)
    },
    PlantedDamage("manifest, an edit") { site in
      let name = try site.file("MANIFEST-")
      try site.sample.flip(name, at: 64 + 60)
      return Expected(kind: .manifest, file: name, offset: 64)
    },
    PlantedDamage("manifest, missing") { site in
      let name = try site.file("MANIFEST-")
      try site.remove(name)
      return Expected(kind: .manifest, file: name, text: "missing")
    },
    PlantedDamage("manifest, commits of a segment") { site in
      let name = try site.file("MANIFEST-")
      try site.misdescribeSegment { $0.maxSequence = SequenceNumber(rawValue: 1 << 40) }
      return Expected(kind: .manifest, file: name, text: "is said to hold commits")
    },
  ]

  static let logs = [
    PlantedDamage("log, a frame", killed: true) { site in
      let name = try site.usedLog()
      try site.sample.flip(name, at: 4_096 + 60)
      return Expected(kind: .log, file: name, offset: 4_096)
    },
    PlantedDamage("log, one copy of the header") { site in
      let name = try site.file("LOG-")
      try site.sample.flip(name, at: 2_048 + 16)
      return Expected(kind: .log, severity: .warning, file: name, offset: 2_048)
    },
    // It may also be the trace of a header that never reached the disk, with nothing after it.
    PlantedDamage("log, the header", killed: true) { site in
      let name = try site.usedLog()
      for offset in [0, 2_048] { try site.sample.flip(name, at: offset + 16) }
      return Expected(kind: .log, severity: .warning, file: name, offset: 0)
    },
    PlantedDamage("log, missing", killed: true) { site in
      let name = try site.usedLog()
      try site.remove(name)
      return Expected(kind: .log, file: name)
    },
    PlantedDamage("log, remains of a write", killed: true) { site in
      let name = try site.usedLog()
      var bytes = try site.sample.bytes(of: name)
      let end = (bytes.lastIndex { $0 != 0 } ?? 0) / 8 * 8 + 8
      bytes += [UInt8](repeating: 0, count: max(0, end + 64 - bytes.count))
      for place in end..<(end + 40) { bytes[place] = 7 }
      try site.sample.replace(name, with: bytes)
      return Expected(
        kind: .log, severity: .warning, file: name, offset: UInt64(end), text: "cut short")
    },
  ]

  // MARK: - Files of rows

  static let segments = [
    PlantedDamage("segment, missing") { site in
      let name = try site.file(".seg")
      try site.remove(name)
      return Expected(kind: .segment, file: name, text: "missing")
    },
    PlantedDamage("segment, cut short") { site in
      let name = try site.file(".seg")
      try site.cut(name)
      return Expected(kind: .segment, file: name)
    },
    PlantedDamage("segment, header") { site in
      let name = try site.file(".seg")
      try site.sample.flip(name, at: 20)
      return Expected(kind: .segment, file: name)
    },
    PlantedDamage("segment, footer") { site in
      let name = try site.file(".seg")
      try site.sample.flip(name, at: try site.sample.bytes(of: name).count - 100)
      return Expected(kind: .segment, file: name)
    },
    PlantedDamage("segment, filter") { site in
      let name = try site.file(".seg")
      // Before the footer is the table of two sections, and before that the filter.
      let place = try site.sample.bytes(of: name).count - 256 - 64 - 8
      try site.sample.flip(name, at: place)
      return Expected(kind: .segment, file: name)
    },
    PlantedDamage("segment, index block") { site in
      let block = try site.plainBlock()
      let place = try site.indexBlock(of: block)
      try site.sample.flip(block.file, at: place + 20)
      return Expected(kind: .block, file: block.file, offset: UInt64(place))
    },
    PlantedDamage("block, checksum") { site in
      let block = try site.plainBlock()
      try site.sample.flip(block.file, at: block.offset + block.length / 2)
      return Expected(kind: .block, file: block.file, offset: UInt64(block.offset))
    },
    PlantedDamage("block, its form") { site in
      let block = try site.plainBlock()
      try site.lie(in: block) { $0[4] = 99 }
      return Expected(kind: .block, file: block.file, offset: UInt64(block.offset + 4))
    },
    PlantedDamage("order of a block's rows") { site in
      let block = try site.plainBlock()
      try site.lie(in: block) { raw in
        // The last id, such as "n12", becomes greater than all after the block.
        if let place = raw.lastKeyPlace { raw[place] = 0xF0 }
      }
      return Expected(kind: .order, file: block.file, offset: UInt64(block.offset))
    },
    PlantedDamage("filter that denies a row") { site in
      let block = try site.plainBlock()
      try site.lie(in: block) { raw in
        // Still after the previous id, and not above the block's bound.
        if let place = raw.lastKeyPlace { raw[place + 2] = 0 }
      }
      return Expected(
        kind: .order, file: block.file, offset: UInt64(block.offset), text: "not in the filter")
    },
    PlantedDamage("counts of a segment") { site in
      let name = try site.misdescribeSegment { $0.rawBytes += 1 }
      return Expected(kind: .count, file: name, text: "manifest counts")
    },
  ]

  static let values = [
    PlantedDamage("value file, header") { site in
      let name = try site.file(".val")
      try site.sample.flip(name, at: 20)
      return Expected(kind: .valueFile, file: name)
    },
    PlantedDamage("value file, missing") { site in
      let name = try site.file(".val")
      try site.remove(name)
      return Expected(kind: .valueFile, file: name, text: "missing")
    },
    PlantedDamage("value file, a value") { site in
      let name = try site.file(".val")
      try site.sample.flip(name, at: 64 + 24 + 5)
      return Expected(kind: .value, file: name, offset: 64)
    },
    PlantedDamage("value file, count") { site in
      let name = try site.misdescribeValueFile { $0.values += 1 }
      return Expected(kind: .count, file: name, text: "manifest counts")
    },
    PlantedDamage("pointer to no value") { site in
      try site.sample.flip(try site.file(".val"), at: 64 + 17)
      return Expected(kind: .pointer, text: "points to no value")
    },
  ]
}

extension [UInt8] {
  /// In the bytes of a block with ids such as "n10", the place of the last digit of the last key.
  fileprivate var lastKeyPlace: Int? {
    // Keys end with the id and 00 01. All keys of a block follow each other, before the values.
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    var last: Int?
    for place in indices.dropFirst(2).dropLast(2)
    where digits ~= self[place] && self[place + 1] == 0 && self[place + 2] == 1 {
      last = place
    }
    return last
  }
}

extension DamageSite {
  /// The places of the superblock's written slots.
  fileprivate func writtenSlots() throws -> [UInt64] {
    let file = try sample.directory().open(Superblock.name, access: .readOnly)
    let slots = try Superblock.slots(in: file)
    return zip(Superblock.slotOffsets, slots).filter { $0.1.superblock != nil }.map(\.0)
  }

  /// The place of the first index block of a block's file: after the data blocks.
  fileprivate func indexBlock(of block: PlainBlock) throws -> Int {
    let file = try sample.directory().open(block.file, access: .readOnly)
    let reader = try SegmentFileReader.open(file, SegmentErrors(file: block.file))
    let footer = try reader.footer()
    let top = try reader.indexTop(try reader.sections(footer), footer)
    defer { top.free() }
    return Int(try BlockHandle(top.value(0)).offset)
  }
}
