// The form of a streamed backup: a POSIX tar archive, because every system can unpack it. An entry
// is a header of 512 bytes and the contents, both padded with zeros to multiples of 512; two blocks
// of zeros end the archive. No file of a database comes near the eight gigabytes that a header can
// express.

/// Makes the bytes of an archive with one directory.
struct TarArchive {
  private static let directoryName = "backup.ondol/"
  private static let block = 512

  /// Seconds since 1970, for every entry.
  private let time: Int64
  /// Bytes of the entry's contents so far.
  private var contentsBytes = 0

  init(time: Int64) {
    self.time = time
  }

  /// The directory's entry.
  func directory() -> [UInt8] {
    header(Self.directoryName, mode: 0o700, sizeBytes: 0, type: "5")
  }

  /// The bytes before a file's contents, and after those of the previous file.
  mutating func file(_ name: String, sizeBytes: UInt64) -> [UInt8] {
    padding() + header(Self.directoryName + name, mode: 0o600, sizeBytes: sizeBytes, type: "0")
  }

  /// Contents of the file that began last.
  mutating func contents(_ bytes: [UInt8]) -> [UInt8] {
    contentsBytes += bytes.count
    return bytes
  }

  /// The end of the archive.
  mutating func end() -> [UInt8] {
    padding() + [UInt8](repeating: 0, count: 2 * Self.block)
  }

  /// Pads the last entry.
  private mutating func padding() -> [UInt8] {
    defer { contentsBytes = 0 }
    let rest = contentsBytes % Self.block
    return [UInt8](repeating: 0, count: rest == 0 ? 0 : Self.block - rest)
  }

  private func header(
    _ name: String, mode: UInt64, sizeBytes: UInt64, type: Unicode.Scalar
  ) -> [UInt8] {
    var header: [UInt8] = []
    header.append(name, length: 100)
    // Mode, owner, group, size, time.
    for (number, length) in [(mode, 8), (0, 8), (0, 8), (sizeBytes, 12), (seconds, 12)] {
      header.append(octal: number, length: length)
    }
    let checksumPlace = header.count
    header.append("        ", length: 8)
    header.append(UInt8(ascii: type))
    header.append("", length: 100)
    header.append("ustar", length: 6)
    header.append("00", length: 2)
    header.append("", length: Self.block - header.count)
    let sum = header.reduce(0) { $0 + UInt64($1) }
    var digits: [UInt8] = []
    digits.append(octal: sum, length: 7)
    header.replaceSubrange(checksumPlace..<(checksumPlace + 7), with: digits)
    return header
  }

  private var seconds: UInt64 { UInt64(max(0, time)) }
}

extension [UInt8] {
  /// Appends the text, padded with zeros.
  fileprivate mutating func append(_ text: String, length: Int) {
    self += text.utf8.prefix(length)
    self += repeatElement(0, count: length - Swift.min(length, text.utf8.count))
  }

  /// Appends the number as octal digits and a zero byte.
  fileprivate mutating func append(octal number: UInt64, length: Int) {
    let digits = String(number, radix: 8)
    append(
      String(repeating: "0", count: Swift.max(0, length - 1 - digits.count)) + digits,
      length: length - 1)
    append(0)
  }
}
