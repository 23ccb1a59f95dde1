// The places of checksums in a sound segment, so that they can be corrected after damage.

@testable import OndolEngine

/// The blocks and sections of one segment file.
struct SealedPlaces {
  private var blocks: [(offset: Int, storedLength: Int)] = []
  private var sections: [SegmentSection] = []
  private var tableOffset = 0

  init(_ bytes: [UInt8], _ name: String) {
    do {
      let directory = FuzzDirectory([name: bytes])
      let errors = SegmentErrors(file: name)
      let file = try directory.open(name, access: .readOnly)
      let reader = try SegmentFileReader.open(file, errors)
      let footer = try reader.footer()
      sections = try reader.sections(footer)
      tableOffset = Int(footer.sectionTableOffset)
      let top = try reader.indexTop(sections, footer)
      defer { top.free() }
      for index in 0..<top.rowCount {
        let handle = try BlockHandle.parse(top.value(index), errors, 0)
        let place = note(handle)
        let opened = try StoredBlock.Opened(
          bytes.bytes.extracting(place), kind: .index, salt: footer.salt, offset: handle.offset)
        let block = try opened.decode(rowCount: Int(handle.rowCount))
        defer { block.free() }
        for row in 0..<block.rowCount {
          _ = note(try BlockHandle.parse(block.value(row), errors, 0))
        }
      }
    } catch {
      demand(false, "our own segment cannot be read: \(error)")
    }
  }

  /// Records the place of the block, including its trailer.
  private mutating func note(_ handle: BlockHandle) -> Range<Int> {
    let (offset, length) = (Int(handle.offset), Int(handle.storedLength))
    blocks.append((offset, length))
    return offset..<(offset + length + StoredBlock.trailerLength)
  }

  /// Corrects all checksums, inner ones before outer ones.
  func seal(_ bytes: inout [UInt8], _ salt: UInt64) {
    for block in blocks {
      let end = block.offset + block.storedLength + 8
      seal(&bytes, block.offset..<end, checksumAt: end, salt)
    }
    for (index, section) in sections.enumerated() {
      let place = Int(section.offset)..<Int(section.offset + section.length)
      let entry = tableOffset + index * SegmentFormat.sectionEntryLength
      seal(&bytes, place, checksumAt: entry + 24, salt)
    }
    let tableEnd = tableOffset + sections.count * SegmentFormat.sectionEntryLength
    let footer = bytes.count - SegmentFormat.footerLength
    seal(&bytes, tableOffset..<tableEnd, checksumAt: footer + 152, salt)
    seal(&bytes, footer..<(footer + 248), checksumAt: footer + 248, salt)
  }

  private func seal(
    _ bytes: inout [UInt8], _ place: Range<Int>, checksumAt offset: Int, _ salt: UInt64
  ) {
    let seed = contextSeed(salt: salt, offset: UInt64(place.lowerBound))
    bytes.overwriteLittleEndian(
      seededChecksum(seed, bytes.bytes.extracting(place)), at: offset)
  }
}
