// A shop's items, as an app with a list and an edit screen keeps them: it writes whole items from
// `Codable`, changes single fields in place, adds pictures to a list without reading it first, and
// counts its orders after a crash.

import ArgumentParser
import Ondol

struct Shop: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "A shop's items and orders: Codable, increment, arrayUnion, `in`, delete.")

  @OptionGroup var options: DemoOptions
  @OptionGroup var pictures: PictureOptions

  func run() async throws {
    try await Self.tell(
      at: try options.database(of: "shop"), try Pictures(pictures), killing: options.kill)
  }
}

/// An item that the shop sells. The document's id is not repeated inside.
struct Item: Codable, Equatable {
  var name: String
  var price: Int
  var count: Int
  var description: String
  var imagePath: [String] = []
}

extension Shop {
  private static let ordersPerRun = 200

  static let stock: [(id: String, item: Item)] = [
    ("lamp", Item(name: "라탄 조명", price: 39_000, count: 2, description: "손으로 엮은 갓")),
    ("chair", Item(name: "원목 의자", price: 82_000, count: 5, description: "참나무, 기름 마감")),
    ("vase", Item(name: "도자기 화병", price: 27_500, count: 8, description: "흰 유약")),
    ("blanket", Item(name: "모직 담요", price: 54_000, count: 3, description: "양모 백 퍼센트")),
    ("cups", Item(name: "찻잔 세트", price: 45_000, count: 4, description: "다섯 개 한 벌")),
    ("cushion", Item(name: "온돌 방석", price: 18_000, count: 12, description: "메밀 속")),
  ]

  static func tell(at place: String, _ pictures: Pictures?, killing: Bool) async throws {
    Story.chapter("A shop", in: place)
    var databaseOptions = Database.Options()
    // The story need not wait until freed bytes come back.
    databaseOptions.blobGracePeriod = .zero
    let database = try await Database.open(at: place, options: databaseOptions)
    let items = database.collection("upload")
    // The pictures of an earlier run, if any, are stored again below.
    try await items.unlinkBlobs(field: "imagePath", under: "images/")
    try await stockUp(items, in: database)
    try await sell(items)
    try await ask(items)
    if let pictures { try await showPictures(of: items, pictures, in: database, at: place) }
    try await takeOrders(in: database, killing: killing)
    try await database.close()
    Story.next("shop", at: place == "demo/shop.ondol" ? nil : place)
  }

  private static func stockUp(_ items: CollectionReference, in database: Database) async throws {
    let before = try await items.getDocuments()
    if before.documents.isEmpty {
      Story.say(
        "The shelves are empty. \(stock.count) items go on them in one batch: all or none.")
    } else {
      Story.say("Found \(before.documents.count) items from an earlier run. Stocking up again.")
    }
    let batch = database.batch()
    for (id, item) in stock {
      try batch.setData(from: item, forDocument: items.document(id))
    }
    try await batch.commit()
  }

  private static func sell(_ items: CollectionReference) async throws {
    Story.say("A lamp is sold, and two pictures of it come in. One write, no read before it:")
    let result = try await items.document("lamp").updateData(
      [
        "count": FieldValue.increment(-1),
        "imagePath": FieldValue.arrayUnion(["images/lamp-1.png", "images/lamp-2.png"]),
        "updated": FieldValue.serverTimestamp(),
      ], returning: .after)
    let left = result.after?["count"] as Int? ?? 0
    let pictures = result.after?["imagePath"] as [String]? ?? []
    Story.show("the write's answer: \(left) left, pictures \(pictures.joined(separator: ", "))")
    Story.elsewhere(
      "an app reads, changes and writes back, and of two sales at the same moment one is lost.")

    try await items.document("cushion").delete()
    let cushion = try await items.document("cushion").getDocument()
    Story.say(
      "The cushion is no longer made, and is deleted. Is it still there?"
        + " \(cushion.exists ? "Yes" : "No").")
  }

  private static func ask(_ items: CollectionReference) async throws {
    try await items.createIndex(on: ["price"])
    let names = ["라탄 조명", "찻잔 세트", "없는 물건"]
    let named = try await items.whereField("name", in: names).order(by: "name").getDocuments()
    Story.say("Items with the names \(names.joined(separator: ", ")), by one query with `in`:")
    try show(named)

    let cheap = try await items.whereField("price", isLessThan: 50_000)
      .order(by: "price", descending: true).limit(to: 3).getDocuments()
    Story.say("The three most expensive below ₩50,000, by an index on the price:")
    try show(cheap)
    Story.elsewhere("Firestore refuses some queries until you have created their index.")
  }

  private static func show(_ snapshot: QuerySnapshot) throws {
    for document in snapshot.documents {
      let item = try document.data(as: Item.self)
      Story.show(
        "\(document.documentID): \(item.name), ₩\(Story.grouped(item.price)), \(item.count) left")
    }
  }

  /// Orders have numbers without a gap, so that the next start can tell whether one was lost.
  private static func takeOrders(in database: Database, killing: Bool) async throws {
    let orders = database.collection("orders")
    let found = try await orders.order(by: "number").getDocuments()
      .documents.map { $0["number"] as Int? ?? 0 }
    let isWhole = found == Array(1..<(found.count + 1))
    if !found.isEmpty {
      Story.say(
        "Found \(found.count) orders, \(isWhole ? "without a gap" : "WITH GAPS"). Going on.")
    }
    let target = (found.count / ordersPerRun + 1) * ordersPerRun
    var acknowledged = Acknowledgements(killing: killing, done: found.count, total: target)
    let clock = ContinuousClock()
    let duration = try await clock.measure {
      for number in (found.count + 1)...target {
        let item = stock[number % stock.count].id
        try await orders.document("order-\(number)").create(["number": number, "item": item])
        acknowledged.add()
      }
    }
    let count = target - found.count
    Story.say(
      "Took \(count) orders, each on the device before the next, in \(Story.milliseconds(duration))"
        + " (\(Story.milliseconds(duration / count)) each).")
  }
}
