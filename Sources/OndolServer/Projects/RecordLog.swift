// The framing of Firestore's exports: the log format of LevelDB
// (https://github.com/google/leveldb/blob/main/doc/log_format.md). A file is blocks of 32 KiB. A
// record is one fragment, or several when it crosses the end of a block. A fragment has a masked
// CRC-32C of its kind and bytes, its length, and its kind. Fewer than seven bytes at the end of a
// block are zeros.

#if Server
  import Foundation
  import Ondol

  /// The numbers of the format.
  private enum RecordLog {
    static let blockLength = 32 << 10
    static let headerLength = 7
    /// The longest record. A document of Firestore's has 1 MiB, and its record repeats the name of
    /// an array for each element.
    static let mostBytes = 64 << 20

    enum Kind: UInt8 {
      case full = 1
      case first, middle, last
    }

    /// The checksum of a fragment. LevelDB masks it, so that a file with checksums in it can be
    /// summed itself.
    static func checksum(_ kind: UInt8, _ bytes: ArraySlice<UInt8>) -> UInt32 {
      var sums = RunningChecksums()
      sums.update([kind] + bytes)
      let crc = sums.finalize().crc32c
      return (crc >> 15 | crc << 17) &+ 0xA282_EAD8
    }
  }

  /// Reads the records of a file, with one block and one record in memory.
  struct RecordLogReader {
    /// The file's path.
    let file: String
    private let handle: FileHandle
    private var block: [UInt8] = []
    private var position = 0
    /// Where the block begins in the file.
    private var blockStart = 0
    /// Where the last record began.
    private(set) var recordStart = 0

    init(_ file: String) throws(ProjectFault) {
      guard let handle = FileHandle(forReadingAtPath: file) else {
        throw ProjectFault(file, nil, "it cannot be read")
      }
      self.file = file
      self.handle = handle
    }

    /// A fault at an offset in the file.
    func fault(_ offset: Int, _ reason: String) -> ProjectFault {
      ProjectFault(file, "offset \(offset)", reason)
    }

    /// The next record; nil at the end of the file.
    mutating func next() throws(ProjectFault) -> [UInt8]? {
      guard let (start, kind, bytes) = try fragment() else { return nil }
      recordStart = start
      switch kind {
      case .full: return Array(bytes)
      case .first: break
      case .middle, .last:
        throw fault(start, "a part of a record has no beginning")
      }
      var record = Array(bytes)
      while true {
        guard let (start, kind, bytes) = try fragment() else {
          throw fault(recordStart, "the file ends within the record that begins here")
        }
        guard kind == .middle || kind == .last else {
          throw fault(start, "a record begins before the one at offset \(recordStart) has ended")
        }
        guard bytes.count <= RecordLog.mostBytes - record.count else {
          throw fault(
            recordStart, "the record has more than \(RecordLog.mostBytes >> 20) MiB")
        }
        record += bytes
        if kind == .last { return record }
      }
    }

    private mutating func fragment() throws(ProjectFault) -> (
      start: Int, kind: RecordLog.Kind, bytes: ArraySlice<UInt8>
    )? {
      while true {
        if position == block.count, try !readBlock() { return nil }
        let start = blockStart + position
        let rest = block[position...]
        guard rest.count >= RecordLog.headerLength, rest.contains(where: { $0 != 0 }) else {
          guard !rest.contains(where: { $0 != 0 }) else {
            throw fault(start, "the file ends within the head of a record")
          }
          // A writer fills the end of a block with zeros.
          position = block.count
          continue
        }
        let number = rest.prefix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let length = Int(block[position + 4]) | Int(block[position + 5]) << 8
        guard let kind = RecordLog.Kind(rawValue: block[position + 6]) else {
          throw fault(start, "a part of a record has the unknown kind \(block[position + 6])")
        }
        let from = position + RecordLog.headerLength
        guard length <= block.count - from else {
          throw fault(start, "a part of a record goes past the end of its block")
        }
        let bytes = block[from..<from + length]
        guard RecordLog.checksum(kind.rawValue, bytes) == number else {
          throw fault(start, "the checksum is wrong: the file is damaged")
        }
        position = from + length
        return (start, kind, bytes)
      }
    }

    private mutating func readBlock() throws(ProjectFault) -> Bool {
      blockStart += block.count
      position = 0
      block = []
      do {
        while block.count < RecordLog.blockLength {
          let piece = try handle.read(upToCount: RecordLog.blockLength - block.count) ?? Data()
          if piece.isEmpty { break }
          block += piece
        }
      } catch {
        throw fault(blockStart, "it cannot be read: \(error.localizedDescription)")
      }
      return !block.isEmpty
    }
  }

  /// Writes records.
  struct RecordLogWriter {
    /// Bytes that are not written yet.
    private(set) var bytes: [UInt8] = []
    /// How many bytes the log has.
    private(set) var length = 0

    /// Adds a record.
    ///
    /// - Returns: false for a record that is too long for readers.
    mutating func append(_ record: [UInt8]) -> Bool {
      guard record.count <= RecordLog.mostBytes else { return false }
      var rest = record[...]
      var isFirst = true
      repeat {
        var room = RecordLog.blockLength - length % RecordLog.blockLength
        if room < RecordLog.headerLength {
          add([UInt8](repeating: 0, count: room)[...])
          room = RecordLog.blockLength
        }
        let part = rest.prefix(room - RecordLog.headerLength)
        rest = rest.dropFirst(part.count)
        let kind: RecordLog.Kind =
          isFirst ? rest.isEmpty ? .full : .first : rest.isEmpty ? .last : .middle
        let checksum = RecordLog.checksum(kind.rawValue, part)
        add(
          [
            UInt8(truncatingIfNeeded: checksum), UInt8(truncatingIfNeeded: checksum >> 8),
            UInt8(truncatingIfNeeded: checksum >> 16), UInt8(truncatingIfNeeded: checksum >> 24),
            UInt8(truncatingIfNeeded: part.count), UInt8(truncatingIfNeeded: part.count >> 8),
            kind.rawValue,
          ][...])
        add(part)
        isFirst = false
      } while !rest.isEmpty
      return true
    }

    private mutating func add(_ more: ArraySlice<UInt8>) {
      bytes += more
      length += more.count
    }

    /// Gives away the bytes to write.
    mutating func take() -> [UInt8] {
      defer { bytes = [] }
      return bytes
    }
  }
#endif
