// The two destinations of a dump: a directory of files, and one text stream.

import Foundation
import Ondol

/// A directory, which must be new or empty.
package final class DumpDirectory: DumpSink {
  private let path: String
  private var file: (name: String, handle: FileHandle)?

  package init(_ path: String) throws(DumpError) {
    self.path = path
    let files = FileManager.default
    if let names = try? files.contentsOfDirectory(atPath: path), !names.isEmpty {
      throw DumpError("\(path) is not empty")
    }
    try Self.create(path)
  }

  private static func create(_ directory: String) throws(DumpError) {
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true)
    } catch {
      throw DumpError("cannot make \(directory): \(error.localizedDescription)")
    }
  }

  package func begin(_ file: String) throws(DumpError) {
    try finish()
    let place = path + "/" + file
    try Self.create(URL(filePath: place).deletingLastPathComponent().path(percentEncoded: false))
    guard FileManager.default.createFile(atPath: place, contents: nil),
      let handle = FileHandle(forWritingAtPath: place)
    else { throw DumpError("cannot be written", file: place) }
    self.file = (file, handle)
  }

  package func write(lines: [UInt8]) throws(DumpError) { try write(lines) }

  package func write(content: [UInt8]) throws(DumpError) { try write(content) }

  private func write(_ bytes: [UInt8]) throws(DumpError) {
    do {
      try file?.handle.write(contentsOf: Data(bytes))
    } catch {
      throw DumpError("cannot be written: \(error.localizedDescription)", file: file?.name)
    }
  }

  package func finish() throws(DumpError) {
    guard let (name, handle) = file else { return }
    file = nil
    do {
      try handle.synchronize()
      try handle.close()
    } catch {
      throw DumpError("cannot be written: \(error.localizedDescription)", file: name)
    }
  }
}

/// One stream, which `write` receives piece by piece.
package final class DumpStream: DumpSink {
  private let output: ([UInt8]) throws -> Void
  /// Bytes of a content that are still to be written: only multiples of three make whole base64.
  private var rest: [UInt8] = []
  private static let lineBytes = 48 << 10

  package init(_ write: @escaping ([UInt8]) throws -> Void) {
    output = write
  }

  package func begin(_ file: String) throws {
    try finish()
    try output(Array("{\"\(Dump.header)\":".utf8) + Array(JSONWriter.line(.string(file)).utf8))
    try output([UInt8(ascii: "}"), 0x0A])
  }

  package func write(lines: [UInt8]) throws { try output(lines) }

  package func write(content: [UInt8]) throws {
    rest += content
    while rest.count >= Self.lineBytes {
      try writeLine(Array(rest.prefix(Self.lineBytes)))
      rest.removeFirst(Self.lineBytes)
    }
  }

  package func finish() throws {
    if !rest.isEmpty { try writeLine(rest) }
    rest = []
  }

  private func writeLine(_ bytes: [UInt8]) throws {
    try output(Array("\"\(Data(bytes).base64EncodedString())\"\n".utf8))
  }
}
