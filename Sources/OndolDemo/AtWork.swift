// The apps at work: a shop that sells, friends who post, cars that drive and a diary that gets
// photos, all in one database, without end, with the console beside them. When you change a price
// in the browser, this program is notified, as any app would be.

import ArgumentParser
import Foundation
import Ondol
import OndolConsole
import OndolTerminal

struct AtWork: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "console",
    abstract: "Apps at work in one database, without end, and the console that shows them.")

  @OptionGroup var options: DemoOptions
  @OptionGroup var pictures: PictureOptions

  @Option(help: "The console's port; 0 for a free one.")
  var port = 0

  func run() async throws {
    let pictures = try Pictures(pictures)
    let place = try options.database(of: "town")
    var databaseOptions = Database.Options()
    // This lets the console's Changes go back to before it was opened.
    databaseOptions.changeRetention = .init()
    let database = try await Database.open(at: place, options: databaseOptions)
    let console = try await Console.start(database, access: .edit, port: port)
    Story.chapter("Apps at work", in: place)
    let town = Town(database, pictures)
    try await town.settle()
    Story.say("A shop sells, friends post, cars drive. Watch them, and change a price, at")
    Story.line("\n   \(console.url)\n")
    let work = Task { try await town.work() }
    let interrupt = Interrupt { _ in work.cancel() }
    let result = await work.result
    interrupt.end()
    await console.stop()
    try await database.close()
    do { try result.get() } catch is CancellationError {}
  }
}

/// The activity in the database.
private struct Town: Sendable {
  private let database: Database
  private let items: CollectionReference
  private let orders: CollectionReference
  private let posts: CollectionReference
  private let diary: CollectionReference
  private let cars: TreeReference
  private let photos: [Data]

  private static let people = ["민지", "하준", "서연", "도윤", "지우", "은우"]
  private static let places = ["한강", "북촌", "시장", "남산", "바다", "도서관"]
  private static let moods = ["첫눈이 왔어요", "커피가 맛있어요", "길이 막혀요", "책을 다 읽었어요"]
  private static let steps = ["new", "packed", "sent", "delivered"]
  /// How many of the endless items are kept.
  private static let kept = 200

  init(_ database: Database, _ pictures: Pictures?) {
    self.database = database
    items = database.collection("items")
    orders = database.collection("orders")
    posts = database.collection("posts")
    diary = database.collection("diary")
    cars = database.tree.child("cars")
    photos = (0..<6).compactMap { try? pictures?.data($0) }.filter { $0.count < 4 << 20 }
  }

  /// Creates the first data. Data from an earlier run stays.
  func settle() async throws {
    try await orders.createIndex(on: ["state", "-at"])
    try await posts.createIndex(on: ["-at"])
    guard try await items.count.getAggregation().count == 0 else { return }
    for (id, item) in Shop.stock {
      try await items.document(id).setData(from: item)
    }
    for (number, photo) in photos.enumerated() {
      let id = Shop.stock[number % Shop.stock.count].id
      let picture = try await database.storage.put(photo)
      try await items.document(id).updateData(["photo": picture])
      let day = "2026-05-0\(number + 1)"
      try await diary.document(day).setData([
        "title": Self.places[number % Self.places.count], "date": day, "photo": picture,
      ])
      try await database.storage.reference(withPath: "album/\(day)").putData(photo)
    }
  }

  func work() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await repeated(every: .milliseconds(900)) { try await order($0) } }
      group.addTask { try await repeated(every: .milliseconds(1_400)) { try await post($0) } }
      group.addTask { try await repeated(every: .milliseconds(350)) { try await like($0) } }
      group.addTask { try await repeated(every: .milliseconds(250)) { try await drive($0) } }
      group.addTask { try await repeated(every: .seconds(7)) { try await takePhoto($0) } }
      group.addTask { try await followPrices() }
      try await group.waitForAll()
    }
  }

  /// Repeats one kind of work until the task is cancelled.
  private func repeated(
    every pause: Duration, _ body: @Sendable (Int) async throws -> Void
  ) async throws {
    for round in 1... {
      do {
        try await body(round)
      } catch let error as DatabaseError where error.code == .notFound {
        // The user deleted it in the browser.
      }
      try await Task.sleep(for: pause)
    }
  }

  private static func one(of texts: [String]) -> String { texts.randomElement() ?? "" }

  // MARK: - The shop

  /// Takes a new order, or moves an order a step further.
  private func order(_ round: Int) async throws {
    guard round % 3 == 1 else { return try await moveAnOrder() }
    let item = items.document(Shop.stock[round / 3 % Shop.stock.count].id)
    let order = orders.document()
    let person = Self.one(of: Self.people)
    try await database.runTransaction { transaction in
      let found = try transaction.getDocument(item)
      guard found.exists, let price = found["price"] as Int? else { return }
      // Refills an empty shelf.
      let count = found["count"] as Int? ?? 0
      try transaction.updateData(["count": count > 0 ? count - 1 : 12], forDocument: item)
      try transaction.setData(
        [
          "item": item, "price": price, "by": person, "state": Self.steps[0],
          "at": FieldValue.serverTimestamp(),
        ], forDocument: order)
    }
    try await trim(orders)
  }

  private func moveAnOrder() async throws {
    let open = try await orders.whereField("state", in: Array(Self.steps.dropLast()))
      .limit(to: 20).getDocuments().documents
    guard let order = open.randomElement(), let state = order["state"] as String?,
      let step = Self.steps.firstIndex(of: state)
    else { return }
    try await order.reference.updateData([
      "state": Self.steps[step + 1], "moved": FieldValue.serverTimestamp(),
    ])
  }

  /// Nothing here changes a price: only a person at the browser does.
  private func followPrices() async throws {
    var prices: [String: Int] = [:]
    for try await snapshot in items.snapshots {
      for document in snapshot.documents {
        guard let price = document["price"] as Int? else { continue }
        if let before = prices.updateValue(price, forKey: document.documentID), before != price {
          let name = document["name"] as String? ?? document.documentID
          Story.say("\(name) was ₩\(before), and is ₩\(price) now.")
        }
      }
    }
  }

  // MARK: - Friends

  private func post(_ round: Int) async throws {
    try await posts.addDocument([
      "by": Self.one(of: Self.people), "text": Self.one(of: Self.moods), "likes": 0,
      "at": FieldValue.serverTimestamp(),
    ])
    try await trim(posts)
  }

  private func like(_ round: Int) async throws {
    let newest = try await posts.order(by: "at", descending: true).limit(to: 8).getDocuments()
    guard let post = newest.documents.randomElement() else { return }
    let person = Self.one(of: Self.people)
    try await post.reference.updateData([
      "likes": FieldValue.increment(1), "likedBy": FieldValue.arrayUnion([person]),
    ])
    guard round % 9 == 0 else { return }
    try await post.reference.collection("comments").addDocument([
      "by": person, "text": "좋아요", "at": FieldValue.serverTimestamp(),
    ])
  }

  /// Deletes the oldest document of an endless collection that has too many.
  private func trim(_ collection: CollectionReference) async throws {
    guard try await collection.count.getAggregation().count > Self.kept else { return }
    let oldest = try await collection.order(by: "at").limit(to: 1).getDocuments().documents
    try await oldest.first?.reference.delete(recursive: true)
  }

  // MARK: - Cars and photos

  private func drive(_ round: Int) async throws {
    let car = "car-\(round % 5 + 1)"
    let turn = Double(round) / 40 + Double(round % 5)
    try await cars.child(car).updateChildValues([
      "speed": 40 + round * 7 % 50, "latitude": 37.5 + sin(turn) / 20,
      "longitude": 127 + cos(turn) / 20,
    ])
  }

  /// Gives a day another photo. The one before then belongs to no entry.
  private func takePhoto(_ round: Int) async throws {
    guard !photos.isEmpty else { return }
    let photo = try await database.storage.put(photos[round % photos.count])
    try await diary.document("2026-05-0\(round % 6 + 1)").updateData([
      "photo": photo, "title": Self.places[round % Self.places.count],
    ])
  }
}
