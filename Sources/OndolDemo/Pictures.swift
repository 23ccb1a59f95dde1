// The pictures that the apps show: existing PNG and JPEG files. `Scripts/demo` finds some on the
// machine, or makes them with a library.

import ArgumentParser
import Foundation

/// The source of the pictures.
struct PictureOptions: ParsableArguments {
  @Option(name: .customLong("pictures"), help: "A directory with PNG or JPEG files.")
  var directory: String?
}

/// Picture files, ordered by name.
struct Pictures {
  let paths: [String]

  /// Nil if there are too few of them for a story.
  init?(_ options: PictureOptions) throws {
    guard let directory = options.directory else { return nil }
    let names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    paths = names.filter { name in
      [".png", ".jpg", ".jpeg"].contains { name.lowercased().hasSuffix($0) }
    }.map { "\(directory)/\($0)" }
    guard paths.count >= 4 else {
      throw ValidationError("\(directory) has \(paths.count) pictures, and 4 are needed")
    }
  }

  /// The picture with this number. They repeat if there are fewer.
  subscript(number: Int) -> String { paths[number % paths.count] }

  func data(_ number: Int) throws -> Data { try Data(contentsOf: URL(filePath: self[number])) }

  /// The ending of a picture's path.
  func suffix(_ number: Int) -> String {
    URL(filePath: self[number]).pathExtension.lowercased()
  }
}

/// The size of a picture, from its first bytes.
enum PictureSize {
  /// `640 x 480`; nil if the bytes are not a PNG or JPEG.
  static func text(_ bytes: Data) -> String? {
    let bytes = [UInt8](bytes)
    return (png(bytes) ?? jpeg(bytes)).map { "\($0.width) x \($0.height)" }
  }

  private static func png(_ bytes: [UInt8]) -> (width: Int, height: Int)? {
    guard bytes.starts(with: [0x89, 0x50, 0x4e, 0x47]), bytes.count >= 24 else { return nil }
    return (number(bytes[16..<20]), number(bytes[20..<24]))
  }

  /// Goes from marker to marker, up to the one that begins a frame.
  private static func jpeg(_ bytes: [UInt8]) -> (width: Int, height: Int)? {
    guard bytes.starts(with: [0xff, 0xd8]) else { return nil }
    var offset = 2
    while offset + 9 < bytes.count, bytes[offset] == 0xff {
      let marker = bytes[offset + 1]
      if (0xc0...0xcf).contains(marker), ![0xc4, 0xc8, 0xcc].contains(marker) {
        return (
          number(bytes[(offset + 7)..<(offset + 9)]), number(bytes[(offset + 5)..<(offset + 7)])
        )
      }
      offset += 2 + number(bytes[(offset + 2)..<(offset + 4)])
    }
    return nil
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.reduce(0) { $0 << 8 | Int($1) }
  }
}
