// The documents of the documents' suite: about 1 KB with ten fields, as in an app's model, made
// from a document's number and the same for every engine and run. They are the days of many
// people's diaries, so a query for a week is one over a person and seven dates.

import CPeers
package import Foundation

/// A document with its ten fields.
package struct Record: Codable, Sendable {
  package struct Address: Codable, Sendable {
    package var street: String
    package var city: String
    package var postcode: Int

    package init(street: String, city: String, postcode: Int) {
      self.street = street
      self.city = city
      self.postcode = postcode
    }
  }

  package var name: String
  package var email: String
  package var user: Int
  package var date: Date
  package var category: String
  package var price: Double
  package var isActive: Bool
  package var note: String
  package var tags: [String]
  package var address: Address
}

extension Record {
  package static let daysOfUser = 365
  package static let categories = 50
  private static let noteLength = 740
  private static let firstDay = 1_600_000_000 / 86_400 * 86_400

  /// Document `number` of `documents`.
  package init(_ number: Int, of documents: Int) {
    var random = SplitMix(state: UInt64(number) &* 0xA076_1D64_78BD_642F)
    let word = { (list: [String]) in list[Int.random(in: 0..<list.count, using: &random)] }
    name = Self.name(number)
    email = Self.email(number)
    let users = Self.users(of: documents)
    user = number % users
    date = Self.date(number / users)
    category = Self.category(number % Self.categories)
    price = Self.price(number)
    isActive = number % 3 == 0
    let start = Int.random(in: 0..<Self.text.count - Self.noteLength, using: &random)
    note = String(decoding: Self.text[start..<start + Self.noteLength], as: UTF8.self)
    tags = [word(Self.words), word(Self.words), word(Self.words)]
    address = Address(
      street: "\(word(Self.words)) street \(number % 200)", city: word(Self.cities),
      postcode: 10_000 + number % 90_000)
  }

  /// A random name like an automatic id: 20 letters and digits.
  package static func id(_ number: Int) -> String {
    var random = SplitMix(state: UInt64(number) &* 0xD1B5_4A32_D192_ED03)
    let letters = Self.letters
    return String(
      decoding: (0..<20).map { _ in letters[Int.random(in: 0..<letters.count, using: &random)] },
      as: UTF8.self)
  }

  package static func name(_ number: Int) -> String { "Guest number \(number)" }

  package static func email(_ number: Int) -> String {
    var random = SplitMix(state: UInt64(number))
    return "\(random.next() % 1_000_000).\(number)@example.org"
  }

  package static func users(of documents: Int) -> Int { max(documents / daysOfUser, 1) }

  /// Midnight of a day.
  package static func date(_ day: Int) -> Date {
    Date(timeIntervalSince1970: Double(firstDay + day * 86_400))
  }

  package static func category(_ number: Int) -> String { "category \(number)" }

  /// Different for all documents of a category, and exact in a few decimals.
  package static func price(_ number: Int) -> Double {
    Double((number / categories * 7_919) % 2_097_143) * 0.25
  }

  /// The sum of every byte of every field.
  package var checksum: UInt64 {
    var checksum = Checksum()
    for text in [name, email, category, note, address.street, address.city] { checksum.add(text) }
    for tag in tags { checksum.add(tag) }
    checksum.add(UInt64(bitPattern: Int64(user)))
    checksum.add(date.timeIntervalSince1970.bitPattern)
    checksum.add(price.bitPattern)
    checksum.add(isActive ? 1 : 0)
    checksum.add(UInt64(bitPattern: Int64(address.postcode)))
    return checksum.value
  }

  private static let letters = [UInt8](
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
  private static let cities = ["Seoul", "Busan", "Hannover", "Oslo", "Lisbon", "Montevideo"]
  private static let words =
    """
    coffee kitchen garden window letter autumn river mountain silver paper lantern market \
    station evening harbour cotton bridge copper violin orchard winter ladder mirror pepper \
    candle forest meadow pocket ribbon saddle temple velvet walnut yellow button castle
    """.split(separator: " ").map(String.init)

  /// The text that notes are cut from: words in random order, which compress as words do.
  private static let text: [UInt8] = {
    var random = SplitMix(state: 7)
    var text: [UInt8] = []
    while text.count < 1 << 20 {
      text += words[Int.random(in: 0..<words.count, using: &random)].utf8
      text += random.next() % 4 == 0 ? [UInt8]("\(random.next() % 10_000) ".utf8) : [0x20]
    }
    return text
  }()
}

extension Checksum {
  @inline(__always)
  package mutating func add(_ text: String) {
    var text = text
    text.withUTF8 { add($0.baseAddress, $0.count) }
  }

  @inline(__always)
  package mutating func add(_ number: UInt64) {
    value = peer_fold(value, number)
  }
}
