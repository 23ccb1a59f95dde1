// Ids for documents that are added without one: 20 letters and digits, 119 random bits, so that no
// two devices make the same id. An import makes millions of them, and random bits need a system
// call: each id needs two calls.

/// Makes automatic ids.
package enum AutomaticID {
  static let length = 20
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
  /// The number of letters and digits for which 64 random bits suffice, and the number of such
  /// texts.
  private static let half = (length: 10, count: UInt64(839_299_365_868_340_224))

  /// A random id, of 64 random bits at a time.
  package static func make(_ random: () -> UInt64) -> String {
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

  /// A random number below `half.count`, uniformly distributed.
  private static func rest(_ random: () -> UInt64) -> UInt64 {
    let end = UInt64.max / half.count * half.count
    while true {
      let bits = random()
      if bits < end { return bits % half.count }
    }
  }
}
