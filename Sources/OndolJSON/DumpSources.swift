// The sources of a dump: a directory of files, or one text stream. Both may be hostile, or not a
// dump at all.

import Foundation
package import Ondol

/// The files of a dump, in the order in which a load needs them.
package protocol DumpSource: AnyObject {
  /// The source's place, for messages.
  var file: String? { get }
  var line: Int { get }
  /// Goes to a file. Returns false if it does not exist.
  func open(_ file: String) throws(DumpError) -> Bool
  /// Goes to the next content. Returns nil if there are no more.
  func openContent() throws(DumpError) -> BlobDigest?
  /// Returns the next line of the file without its end; nil at the end of the file.
  func nextLine() throws(DumpError) -> [UInt8]?
  /// Returns more bytes of the content; nil at its end.
  func nextBytes() throws(DumpError) -> [UInt8]?
}

/// Lines of a file, or of a stream that arrives piece by piece.
struct LineSource {
  private static let pieceBytes = 1 << 18
  /// Longer than any line of a dump.
  private static let maximumLineBytes = 256 << 20

  private let read: (Int) throws -> [UInt8]
  private var buffer: [UInt8] = []
  private var position = 0
  private var isAtEnd = false
  /// The number of the last returned line, counted from one.
  private(set) var number = 0

  init(_ read: @escaping (Int) throws -> [UInt8]) {
    self.read = read
  }

  init(_ handle: FileHandle) {
    self.init { count in Array(try handle.read(upToCount: count) ?? Data()) }
  }

  mutating func next() throws(DumpError) -> [UInt8]? {
    var searched = position
    while true {
      if let end = buffer[searched...].firstIndex(of: 0x0A) {
        defer { position = end + 1 }
        number += 1
        return Array(buffer[position..<end])
      }
      if isAtEnd {
        guard position < buffer.count else { return nil }
        throw DumpError("the last line has no end; something is missing", line: number + 1)
      }
      buffer.removeSubrange(..<position)
      position = 0
      searched = buffer.count
      guard buffer.count <= Self.maximumLineBytes else {
        throw DumpError("a line that is too long", line: number + 1)
      }
      try fill()
    }
  }

  private mutating func fill() throws(DumpError) {
    do {
      let piece = try read(Self.pieceBytes)
      isAtEnd = piece.isEmpty
      buffer += piece
    } catch {
      throw DumpError("cannot be read: \(error.localizedDescription)", line: number + 1)
    }
  }
}

/// A directory.
package final class DumpFiles: DumpSource {
  private let path: String
  package private(set) var file: String?
  private var handle: FileHandle?
  private var lines: LineSource?
  /// Files of contents that are not opened yet, the next one last.
  private var contents: [String]?

  package var line: Int { lines?.number ?? 0 }

  package init(_ path: String) throws(DumpError) {
    self.path = path
    guard FileManager.default.fileExists(atPath: path + "/" + Dump.manifest) else {
      throw DumpError("there is no \(Dump.manifest) in \(path): this is not a whole dump")
    }
  }

  package func open(_ file: String) throws(DumpError) -> Bool {
    // A name from a hostile dump must not lead outside the directory.
    guard !file.hasPrefix("/"), !file.split(separator: "/").contains("..") else {
      throw DumpError("a file cannot have this name", file: file)
    }
    try? handle?.close()
    handle = FileHandle(forReadingAtPath: path + "/" + file)
    self.file = file
    lines = handle.map { LineSource($0) }
    return handle != nil
  }

  package func openContent() throws(DumpError) -> BlobDigest? {
    if contents == nil { contents = contentFiles().sorted(by: >) }
    guard let file = contents?.popLast() else { return nil }
    guard let digest = Dump.content(in: file) else {
      throw DumpError("this is no content", file: file)
    }
    guard try open(file) else { throw DumpError("cannot be read", file: file) }
    return digest
  }

  private func contentFiles() -> [String] {
    let files = FileManager.default
    let directory = path + "/" + Dump.contents
    let folders = (try? files.contentsOfDirectory(atPath: directory)) ?? []
    return folders.flatMap { folder in
      ((try? files.contentsOfDirectory(atPath: directory + folder)) ?? [])
        .map { Dump.contents + folder + "/" + $0 }
    }
  }

  package func nextLine() throws(DumpError) -> [UInt8]? { try lines?.next() }

  package func nextBytes() throws(DumpError) -> [UInt8]? {
    do {
      let data = try handle?.read(upToCount: 1 << 18) ?? Data()
      return data.isEmpty ? nil : Array(data)
    } catch {
      throw DumpError("cannot be read: \(error.localizedDescription)", file: file)
    }
  }
}

/// A stream.
package final class DumpText: DumpSource {
  private var lines: LineSource
  package private(set) var file: String?
  /// The next file, whose header has been read.
  private var upcoming: String?
  private var hasBegun = false

  package var line: Int { lines.number }

  /// - Parameter read: returns at most this many further bytes; none at the end.
  package init(_ read: @escaping (Int) throws -> [UInt8]) {
    lines = LineSource(read)
  }

  package func open(_ file: String) throws(DumpError) -> Bool {
    try skipToHeader()
    guard upcoming == file else { return false }
    upcoming = nil
    self.file = file
    return true
  }

  package func openContent() throws(DumpError) -> BlobDigest? {
    try skipToHeader()
    guard let file = upcoming, file.hasPrefix(Dump.contents) else { return nil }
    guard let digest = Dump.content(in: file) else {
      throw DumpError("this is no content", file: file, line: line)
    }
    _ = try open(file)
    return digest
  }

  private func skipToHeader() throws(DumpError) {
    guard !hasBegun || file != nil else { return }
    if !hasBegun {
      hasBegun = true
      guard let line = try lines.next(), let header = Self.header(line) else {
        throw DumpError("this is not a dump", line: line)
      }
      upcoming = header
      return
    }
    if upcoming == nil, try nextLine() != nil {
      throw DumpError("the file continues after its end", file: file, line: line)
    }
    file = nil
  }

  package func nextLine() throws(DumpError) -> [UInt8]? {
    guard upcoming == nil, let line = try lines.next() else { return nil }
    guard let header = Self.header(line) else { return line }
    upcoming = header
    return nil
  }

  private static func header(_ line: [UInt8]) -> String? {
    guard line.starts(with: "{\"\(Dump.header)\":".utf8),
      case .map(let fields)? = try? JSONReader.read(line, .plain), fields.count == 1
    else { return nil }
    return fields[Dump.header]?.string
  }

  package func nextBytes() throws(DumpError) -> [UInt8]? {
    guard let line = try nextLine() else { return nil }
    guard let text = (try? JSONReader.read(line, .plain))?.string,
      let data = Data(base64Encoded: text)
    else { throw DumpError("this is not base64", file: file, line: self.line) }
    return Array(data)
  }
}
