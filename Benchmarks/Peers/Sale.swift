// The rows of the pipelines suite: sales of ten fields, the same in each run. Prices are quarters,
// so sums of them are exact in every engine.

package struct Sale {
  /// The number of a sale is its key, and none of the ten fields.
  package var number: Int
  package var kind: String
  package var customer: Int
  package var session: Int
  package var price: Double
  package var amount: Int
  package var city: String
  package var tags: [String]
  /// The seller's number.
  package var seller: Int
  package var title: String
  package var day: Int

  /// - Parameter count: the number of all sales.
  package init(_ number: Int, of count: Int) {
    var state = UInt64(number) &* 0x9e37_79b9_7f4a_7c15
    func next(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int((state >> 33) % UInt64(bound))
    }
    self.number = number
    kind = "kind \(next(10))"
    customer = next(10_000)
    session = next(max(count / 2, 1))
    price = Double(1 + next(4_000)) / 4
    amount = next(1_000_000)
    city = "city \(next(50))"
    tags = (0..<next(5)).map { _ in "tag \(next(40))" }
    seller = next(Self.sellers(of: count))
    title = "\(["book", "lamp", "chair", "oak table"][next(4)]) no. \(next(10_000))"
    day = next(365)
  }

  /// The number of sellers for so many sales.
  package static func sellers(of count: Int) -> Int { max(count / 10, 1) }

  package static func country(ofSeller seller: Int) -> String { "country \(seller * 7 % 30)" }

  /// The tags as a JSON text. No text here contains a character that JSON escapes.
  package var tagsText: String { "[" + tags.map { "\"\($0)\"" }.joined(separator: ",") + "]" }

  package var json: String {
    """
    {"kind":"\(kind)","customer":\(customer),"session":\(session),"price":\(price),\
    "amount":\(amount),"city":"\(city)","tags":\(tagsText),"seller":\(seller),\
    "title":"\(title)","day":\(day)}
    """
  }
}
