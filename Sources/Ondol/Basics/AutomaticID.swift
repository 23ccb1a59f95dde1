// Ids for documents that are added without one: 20 letters and digits, 119 random bits, so that no
// two devices make the same. An import makes them by the million, and random bits are a call of the
// system: two calls make an id.

/// Makes automatic ids.
enum AutomaticID {
  static let length = 20
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
  /// Letters and digits that 64 random bits are enough for, and how many such texts there are.
  private static let half = (length: 10, count: UInt64(839_299_365_868_340_224))

  /// A random id, of 64 random bits at a time.
  static func make(_ random: () -> UInt64) -> String {
    var id: [UInt8] = []
    id.reserveCapacity(length)
    while id.count < length {
      var rest = Self.rest(random)
      for _ in 0..<half.length {
        id.append(alphabet[Int(rest % 62)])
        rest /= 62
      }
    }
    return String(decoding: id, as: UTF8.self)
  }

  /// A random number below `half.count`, each as likely as any other.
  private static func rest(_ random: () -> UInt64) -> UInt64 {
    let end = UInt64.max / half.count * half.count
    while true {
      let bits = random()
      if bits < end { return bits % half.count }
    }
  }
}
