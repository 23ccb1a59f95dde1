// The dimensions of a picture from the first bytes of its file, so that a list can show what a
// content is. Supports PNG, JPEG, GIF and WebP. Other or truncated files have no size.

/// A picture's kind, width and height.
struct PictureSize: Equatable {
  let contentType: String
  let width: Int
  let height: Int

  init?(_ bytes: [UInt8]) {
    let size: (String, Int, Int)? =
      Self.png(bytes) ?? Self.jpeg(bytes) ?? Self.gif(bytes) ?? Self.webp(bytes)
    guard let size, size.1 > 0, size.2 > 0 else { return nil }
    (contentType, width, height) = size
  }

  private static func number(_ bytes: [UInt8], _ places: [Int]) -> Int {
    places.reduce(0) { $0 << 8 | ($1 < bytes.count ? Int(bytes[$1]) : 0) }
  }

  private static func png(_ bytes: [UInt8]) -> (String, Int, Int)? {
    guard bytes.count >= 24, bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]) else { return nil }
    return ("image/png", number(bytes, [16, 17, 18, 19]), number(bytes, [20, 21, 22, 23]))
  }

  private static func gif(_ bytes: [UInt8]) -> (String, Int, Int)? {
    guard bytes.count >= 10, bytes.starts(with: Array("GIF8".utf8)) else { return nil }
    return ("image/gif", number(bytes, [7, 6]), number(bytes, [9, 8]))
  }

  /// The extended form and the lossy form.
  private static func webp(_ bytes: [UInt8]) -> (String, Int, Int)? {
    guard bytes.count >= 30, bytes.starts(with: Array("RIFF".utf8)),
      bytes[8..<12].elementsEqual("WEBP".utf8)
    else { return nil }
    switch String(decoding: bytes[12..<16], as: UTF8.self) {
    case "VP8X":
      return (
        "image/webp", 1 + number(bytes, [26, 25, 24]), 1 + number(bytes, [29, 28, 27])
      )
    case "VP8 ":
      return (
        "image/webp", number(bytes, [27, 26]) & 0x3FFF, number(bytes, [29, 28]) & 0x3FFF
      )
    default: return nil
    }
  }

  /// The frame header follows any number of other segments, each with its length.
  private static func jpeg(_ bytes: [UInt8]) -> (String, Int, Int)? {
    guard bytes.starts(with: [0xFF, 0xD8]) else { return nil }
    var place = 2
    while place + 9 < bytes.count, bytes[place] == 0xFF {
      let marker = bytes[place + 1]
      if marker == 0xFF {
        place += 1
        continue
      }
      let isFrame = (0xC0...0xCF).contains(marker) && ![0xC4, 0xC8, 0xCC].contains(marker)
      if isFrame {
        let height = number(bytes, [place + 5, place + 6])
        return ("image/jpeg", number(bytes, [place + 7, place + 8]), height)
      }
      place += 2 + max(2, number(bytes, [place + 2, place + 3]))
    }
    return nil
  }
}
