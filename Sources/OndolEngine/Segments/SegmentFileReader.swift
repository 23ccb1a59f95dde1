// Reads and checks the fixed parts of a segment file when it is opened: footer, section table, top
// of the index, filter.

/// The parts of a segment file outside its blocks.
struct SegmentFileReader {
  let file: any File
  let errors: SegmentErrors
  let size: UInt64
  /// The checksum at the very end, which the manifest repeats.
  let footerChecksum: UInt64
  private let footerBytes: [UInt8]

  private init(file: any File, errors: SegmentErrors, size: UInt64, footerBytes: [UInt8]) {
    self.file = file
    self.errors = errors
    self.size = size
    self.footerBytes = footerBytes
    var checksum: UInt64 = 0
    for byte in footerBytes.suffix(8).reversed() { checksum = checksum << 8 | UInt64(byte) }
    footerChecksum = checksum
  }

  static func open(
    _ file: any File, _ errors: SegmentErrors
  ) throws(EngineError) -> SegmentFileReader {
    let size = try file.size()
    let length = UInt64(SegmentFormat.footerLength)
    guard size >= length + UInt64(DataFileHeader.length) else {
      throw errors.corrupt(at: size, "too short for a segment")
    }
    let footerBytes = try file.read(at: size - length, count: SegmentFormat.footerLength)
    guard footerBytes.count == SegmentFormat.footerLength else {
      throw errors.corrupt(at: size - length, "the file ends within the footer")
    }
    return SegmentFileReader(file: file, errors: errors, size: size, footerBytes: footerBytes)
  }

  private var footerOffset: UInt64 { size - UInt64(SegmentFormat.footerLength) }

  func footer() throws(EngineError) -> SegmentFooter {
    let footer = try SegmentFooter.parse(footerBytes.bytes, at: footerOffset, errors)
    // Every block has a trailer, so a file has fewer blocks than bytes: slot numbers fit.
    let blocks = footer.dataBlocks.addingReportingOverflow(footer.indexBlocks)
    guard footer.blocksEnd <= footerOffset, !blocks.overflow,
      blocks.partialValue <= footer.blocksEnd / UInt64(StoredBlock.trailerLength),
      blocks.partialValue < UInt64(UInt32.max)
    else { throw errors.corrupt(at: footerOffset, "more blocks than the file can hold") }
    guard footer.entries <= footer.dataBlocks * UInt64(BlockLayout.maximumRows),
      footer.tombstones <= footer.entries
    else { throw errors.corrupt(at: footerOffset, "more rows than the blocks can hold") }
    return footer
  }

  /// Throws when the file is sealed and its key is missing, or the other way round.
  func check(_ footer: SegmentFooter, isSealed: Bool) throws(EngineError) {
    guard footer.isSealed != isSealed else { return }
    if isSealed { throw errors.corrupt(FileSeal.unsealed, from: footerOffset) }
    throw .locked(path: errors.file, reason: "it is opened with its key only")
  }

  func sections(_ footer: SegmentFooter) throws(EngineError) -> [SegmentSection] {
    let count = Int(footer.sectionCount)
    guard count <= SegmentFormat.maximumSections else {
      throw errors.corrupt(at: footerOffset, "\(count) sections")
    }
    let bytes = try checked(
      at: footer.sectionTableOffset, length: UInt64(count * SegmentFormat.sectionEntryLength),
      checksum: footer.sectionTableChecksum, salt: footer.salt, "section table")
    let sections: [SegmentSection]
    do throws(MalformedBytes) {
      sections = try SegmentSection.parse(bytes.bytes)
    } catch {
      throw errors.corrupt(error, from: footer.sectionTableOffset)
    }
    for section in sections where SegmentSection.Kind(rawValue: section.kind) == nil {
      guard section.flags & SegmentSection.mustUnderstand == 0 else {
        throw .needsNewerVersion(file: errors.file, reason: "a section of kind \(section.kind)")
      }
    }
    return sections
  }

  func indexTop(
    _ sections: [SegmentSection], _ footer: SegmentFooter, _ seal: FileSeal? = nil
  ) throws(EngineError) -> Block {
    guard let section = sections.first(where: { $0.kind == SegmentSection.Kind.indexTop.rawValue })
    else { throw errors.corrupt(at: footer.sectionTableOffset, "no index") }
    var bytes = try checked(section, footer.salt, "index")
    guard footer.indexBlocks >= 1, footer.indexBlocks <= UInt64(BlockLayout.maximumRows) else {
      throw errors.corrupt(at: footerOffset, "\(footer.indexBlocks) index blocks")
    }
    do throws(MalformedBytes) {
      if let seal {
        var opened: [UInt8] = []
        try seal.open(bytes.bytes, .section, at: section.offset, appendingTo: &opened)
        bytes = opened
      }
      return try Block.make(rowCount: Int(footer.indexBlocks), bytes.bytes)
    } catch {
      throw errors.corrupt(error, from: section.offset)
    }
  }

  /// Appends, for each index block, the slot after its last data block's. `numbers` begins with the
  /// slot of the first data block.
  func numberDataBlocks(
    _ top: Block, _ footer: SegmentFooter, _ numbers: inout [UInt32]
  ) throws(EngineError) {
    var end = UInt64(numbers[0])
    for row in 0..<top.rowCount {
      end += UInt64(try BlockHandle.parse(top.value(row), errors, footer.blocksEnd).rowCount)
      guard end <= footer.dataBlocks + footer.indexBlocks else {
        throw errors.corrupt(at: footer.blocksEnd, "the index points to too many blocks")
      }
      numbers.append(UInt32(end))
    }
    guard end == footer.dataBlocks + footer.indexBlocks else {
      throw errors.corrupt(at: footer.blocksEnd, "the index points to too few blocks")
    }
  }

  /// The filter's location, if there is one.
  func filter(
    _ sections: [SegmentSection], isSealed: Bool = false
  ) throws(EngineError) -> SegmentSection? {
    guard let section = sections.first(where: { $0.kind == SegmentSection.Kind.filter.rawValue })
    else { return nil }
    guard FilterParts.canBe(section.length, isSealed: isSealed) else {
      throw errors.corrupt(at: section.offset, "a filter of broken lines")
    }
    let (end, overflows) = section.offset.addingReportingOverflow(section.length)
    guard !overflows, end <= footerOffset else {
      throw errors.corrupt(at: section.offset, "the filter ends behind the file")
    }
    return section
  }

  /// The stored bytes of the filter.
  func bytes(ofFilter section: SegmentSection, salt: UInt64) throws(EngineError) -> [UInt8] {
    try checked(section, salt, "filter")
  }

  /// Throws when the stored bytes of a section are not the written ones.
  func verify(_ section: SegmentSection, salt: UInt64) throws(EngineError) {
    _ = try checked(section, salt, "section of kind \(section.kind)")
  }

  // MARK: - Checked bytes

  private func checked(
    _ section: SegmentSection, _ salt: UInt64, _ name: String
  ) throws(EngineError) -> [UInt8] {
    try checked(
      at: section.offset, length: section.length, checksum: section.checksum, salt: salt, name)
  }

  /// Bytes between the header and the footer, with a correct checksum.
  private func checked(
    at offset: UInt64, length: UInt64, checksum: UInt64, salt: UInt64, _ name: String
  ) throws(EngineError) -> [UInt8] {
    let (end, overflows) = offset.addingReportingOverflow(length)
    guard !overflows, end <= footerOffset else {
      throw errors.corrupt(at: offset, "the \(name) ends behind the file")
    }
    let bytes = try file.read(at: offset, count: Int(length))
    guard bytes.count == Int(length) else {
      throw errors.corrupt(at: offset, "the file ends within the \(name)")
    }
    guard seededChecksum(contextSeed(salt: salt, offset: offset), bytes.bytes) == checksum else {
      throw errors.corrupt(at: offset, "the \(name)'s checksum does not match")
    }
    return bytes
  }
}
