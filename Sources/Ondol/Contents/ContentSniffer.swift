// Detects the content type from the first bytes, for puts that do not give it. Only marks that a
// format's own specification requires count. Other bytes are text when they are UTF-8, and bytes
// otherwise. A wrong guess is harmless: nothing in the database depends on it.

internal import OndolEngine

/// Detects content types.
enum ContentSniffer {
  /// The type of unknown contents.
  static let unknown = "application/octet-stream"
  /// The number of bytes that are looked at.
  static let length = 4_096

  /// The content type of bytes that begin with `head`; `isWhole` says that these are all bytes.
  static func contentType(of head: [UInt8], isWhole: Bool) -> String {
    let isCut = !isWhole || head.count > length
    let head = head.count > length ? Array(head[..<length]) : head
    return image(head) ?? container(head) ?? text(head, isCut: isCut) ?? unknown
  }

  private static func image(_ head: [UInt8]) -> String? {
    if head.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) { return "image/png" }
    if head.starts(with: [0xff, 0xd8, 0xff]) { return "image/jpeg" }
    if head.starts(with: "GIF87a".utf8) || head.starts(with: "GIF89a".utf8) { return "image/gif" }
    if head.starts(with: "BM".utf8), head.count > 14, head[6..<10].allSatisfy({ $0 == 0 }) {
      return "image/bmp"
    }
    if head.starts(with: [0x49, 0x49, 0x2a, 0]) || head.starts(with: [0x4d, 0x4d, 0, 0x2a]) {
      return "image/tiff"
    }
    return nil
  }

  private static func container(_ head: [UInt8]) -> String? {
    if head.starts(with: "%PDF-".utf8) { return "application/pdf" }
    if head.starts(with: "RIFF".utf8) {
      switch word(head, at: 8) {
      case "WEBP": return "image/webp"
      case "WAVE": return "audio/wav"
      case "AVI ": return "video/x-msvideo"
      default: return nil
      }
    }
    if word(head, at: 4) == "ftyp" { return mediaType(ofBrands: head) }
    if head.starts(with: [0x1a, 0x45, 0xdf, 0xa3]) { return "video/webm" }
    if head.starts(with: "OggS".utf8) { return "audio/ogg" }
    if head.starts(with: "fLaC".utf8) { return "audio/flac" }
    if head.starts(with: "ID3".utf8) { return "audio/mpeg" }
    if head.starts(with: [0x1f, 0x8b]) { return "application/gzip" }
    if head.starts(with: [0x50, 0x4b, 3, 4]) { return "application/zip" }
    return nil
  }

  /// The type of a file in ISO's base media format, by its major brand and then the compatible
  /// ones.
  private static func mediaType(ofBrands head: [UInt8]) -> String {
    let size = head[..<4].reduce(0) { $0 << 8 | Int($1) }
    var brands = [word(head, at: 8)]
    var offset = 16
    while offset + 4 <= min(size, head.count) {
      brands.append(word(head, at: offset))
      offset += 4
    }
    for brand in brands {
      switch brand {
      case "heic", "heix", "heim", "heis": return "image/heic"
      case "avif", "avis": return "image/avif"
      case "qt  ": return "video/quicktime"
      case "M4A ": return "audio/mp4"
      case "isom", "iso2", "mp41", "mp42", "avc1", "M4V ", "dash", "iso4", "iso5", "iso6":
        return "video/mp4"
      default: continue
      }
    }
    return brands.contains("mif1") ? "image/heif" : "video/mp4"
  }

  private static func word(_ head: [UInt8], at offset: Int) -> String {
    guard offset + 4 <= head.count else { return "" }
    return String(decoding: head[offset..<(offset + 4)], as: UTF8.self)
  }

  // MARK: - Texts

  private static func text(_ head: [UInt8], isCut: Bool) -> String? {
    if head.isEmpty { return nil }
    var head = head
    if isCut {
      // The end may be within a character of at most four bytes.
      for _ in 0..<3 where head.last.map({ $0 & 0xc0 == 0x80 }) == true { head.removeLast() }
      if head.last.map({ $0 >= 0xc0 }) == true { head.removeLast() }
    }
    if head.starts(with: [0xef, 0xbb, 0xbf]) { head.removeFirst(3) }
    // Line breaks, tabs and form feeds are the controls that occur in text.
    let isControl = { (byte: UInt8) in byte < 0x20 && !(9...13).contains(byte) && byte != 0x1b }
    guard !head.contains(where: isControl), let text = String(utf8: head.bytes) else { return nil }
    let start = text.drop(while: \.isWhitespace).prefix(256)
    if isJSON(start) { return "application/json" }
    let lower = start.lowercased()
    if lower.hasPrefix("<!doctype html") || lower.hasPrefix("<html") { return "text/html" }
    if lower.hasPrefix("<svg") || lower.hasPrefix("<?xml") {
      return text.contains("<svg") ? "image/svg+xml" : "text/xml"
    }
    return "text/plain"
  }

  /// Whether it begins like a JSON object or array.
  private static func isJSON(_ text: Substring) -> Bool {
    guard let first = text.first, first == "{" || first == "[" else { return false }
    guard let next = text.dropFirst().first(where: { !$0.isWhitespace }) else { return false }
    if first == "{" { return next == "\"" || next == "}" }
    return "\"]{[-0123456789".contains(next)
      || ["true", "false", "null"].contains { word in
        text.dropFirst().drop(while: \.isWhitespace).hasPrefix(word)
      }
  }
}
