// Reads a whole value file, including dead values. It bypasses the cache, because the file is in
// question. Records show where the next one begins, so after a broken one the walk continues only
// if that leads to a sound one.

extension ValueFile {
  /// Checks every byte of the file.
  ///
  /// - Throws: `.corrupt` with the first error.
  /// - Complexity: O(file); reads all of it.
  func verify() throws(EngineError) {
    guard let first = findings().first else { return }
    throw .corrupt(file: first.file, offset: first.offset ?? 0, reason: first.message)
  }

  /// The errors in the file's size and header.
  func structureFindings() -> [StorageFinding] {
    do throws(EngineError) {
      try checkHeader(of: try open())
      return []
    } catch {
      return [StorageFinding(error, .valueFile, in: errors.file)]
    }
  }

  /// All errors in the file.
  ///
  /// - Complexity: O(file); reads all of it.
  func findings() -> [StorageFinding] {
    let file: any File
    do throws(EngineError) {
      file = try open()
      try checkHeader(of: file)
    } catch {
      return [StorageFinding(error, .valueFile, in: errors.file)]
    }
    var findings: [StorageFinding] = []
    var offset = UInt64(DataFileHeader.length)
    var count: UInt64 = 0
    while offset < metadata.sizeBytes {
      do throws(EngineError) {
        offset += try verifyRecord(at: offset, ordinal: count, in: file)
      } catch {
        findings.append(StorageFinding(error, .value, in: errors.file))
        guard let next = offsetBehindBrokenRecord(at: offset, ordinal: count, in: file) else {
          let rest = metadata.sizeBytes - offset
          findings.append(
            StorageFinding(
              .value, in: errors.file, at: offset,
              "what follows cannot be told apart: \(rest) bytes were not checked"))
          return findings
        }
        offset = next
      }
      count += 1
    }
    if count != metadata.values {
      findings.append(
        StorageFinding(
          .count, in: errors.file, at: offset,
          "\(count) values, and the manifest counts \(metadata.values)"))
    }
    return findings
  }

  /// Checks that a record begins where `pointer` leads to, and is the one it was made for, by the
  /// record's header alone.
  func check(_ pointer: ValuePointer) throws(EngineError) {
    let head = try open().read(at: pointer.offset, count: ValueFileFormat.recordHeaderLength)
    do throws(MalformedBytes) {
      let record = try ValueRecord(head.bytes)
      guard record.storedLength == pointer.storedLength, record.rawLength == pointer.rawLength,
        UInt32(truncatingIfNeeded: record.checksum) == pointer.checksum,
        UInt64(pointer.ordinal) < metadata.values
      else { throw MalformedBytes(at: 0, "the value there is another one") }
    } catch {
      throw errors.corrupt(error, from: pointer.offset)
    }
  }

  /// The end that a broken record claims, if a sound one begins there, or the file ends there.
  private func offsetBehindBrokenRecord(
    at offset: UInt64, ordinal: UInt64, in file: any File
  ) -> UInt64? {
    guard let head = try? file.read(at: offset, count: ValueFileFormat.recordHeaderLength),
      let record = try? ValueRecord(head.bytes)
    else { return nil }
    let next =
      offset + UInt64(ValueFileFormat.recordHeaderLength) + UInt64(record.storedLength)
    if next == metadata.sizeBytes { return next }
    guard next < metadata.sizeBytes,
      (try? verifyRecord(at: next, ordinal: ordinal + 1, in: file)) != nil
    else { return nil }
    return next
  }

  /// Returns the record's length.
  private func verifyRecord(
    at offset: UInt64, ordinal: UInt64, in file: any File
  ) throws(EngineError) -> UInt64 {
    let head = try file.read(at: offset, count: ValueFileFormat.recordHeaderLength)
    let pointer: ValuePointer
    do throws(MalformedBytes) {
      let header = try ValueRecord(head.bytes)
      pointer = ValuePointer(
        file: number, offset: offset, storedLength: header.storedLength,
        rawLength: header.rawLength, checksum: UInt32(truncatingIfNeeded: header.checksum),
        ordinal: UInt32(truncatingIfNeeded: ordinal))
    } catch {
      throw errors.corrupt(error, from: offset)
    }
    let bytes = try read(pointer, from: file)
    do throws(MalformedBytes) {
      let opened = try open(bytes.bytes, pointer)
      let block = try SingleValueBlock(valueLength: Int(pointer.rawLength)).make { raw in
        opened.fill(&raw)
      }
      block.free()
    } catch {
      throw errors.corrupt(error, from: offset)
    }
    return pointer.recordLength
  }
}
