// Ids for documents that are added without one: 20 letters and digits, 119 random bits, so that no
// two devices make the same.

/// Makes automatic ids.
enum AutomaticID {
  static let length = 20
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  /// A random id.
  static func make(using generator: inout some RandomNumberGenerator) -> String {
    var id = ""
    for _ in 0..<length {
      id.unicodeScalars.append(
        Unicode.Scalar(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]))
    }
    return id
  }
}
