// A list of cars in the realtime tree, as an app with a live list keeps it: the app writes whole
// cars and changes single properties, and a list beside it follows only the events.

import ArgumentParser
import Ondol

struct Cars: DemoApp {
  static let configuration = CommandConfiguration(
    abstract: "A live list of cars in the tree: child events, setValue, updateChildValues.")

  static let name = "cars"

  @OptionGroup var options: DemoOptions
}

/// The part of a car that the list shows.
struct Car: Codable, Equatable, Sendable {
  var id: String
  var name: String
  var description: String
  var isHybrid: Bool
}

/// Cars in the order of the tree, maintained only from events.
private struct CarList {
  private(set) var cars: [Car] = []

  mutating func take(_ event: TreeEvent) throws {
    if event.kind != .childAdded { cars.removeAll { $0.id == event.snapshot.key } }
    guard event.kind != .childRemoved else { return }
    let before = cars.firstIndex { $0.id == event.previousSiblingKey }
    cars.insert(try event.snapshot.data(as: Car.self), at: before.map { $0 + 1 } ?? 0)
  }
}

extension Cars {
  static func tell(at place: String, killing: Bool) async throws {
    Story.chapter("A live list of cars", in: place)
    Story.say("Three cars come into a tree. A list follows its events and reads nothing else:")
    let database = try await Database.open(at: place)
    let cars = database.tree.child("cars")
    try await cars.setValue(nil)
    var events = cars.observe(.childAdded, .childChanged, .childRemoved, .childMoved)
      .makeAsyncIterator()
    var list = CarList()
    func follow(_ count: Int) async throws {
      for _ in 0..<count {
        guard let event = try await events.next() else { return }
        try list.take(event)
        let name = try event.snapshot.data(as: Car.self).name
        let front = list.cars.first { $0.id == event.previousSiblingKey }?.name
        let place = front.map { ", behind \($0)" } ?? ", in front"
        Story.show("\(event.kind): \(name)\(event.kind == .childRemoved ? "" : place)")
      }
    }

    var ids: [String] = []
    for (name, isHybrid) in [("아이오닉 5", false), ("쏘렌토", true), ("EV6", false)] {
      let place = cars.childByAutoId()
      let id = place.key ?? ""
      ids.append(id)
      try await place.setValue(
        from: Car(id: id, name: name, description: "시승 가능", isHybrid: isHybrid))
      try await follow(1)
    }
    Story.say("One car is renamed and another is sold, in one commit:")
    try await database.tree.updateChildValues([
      "cars/\(ids[0])/name": "아이오닉 6", "cars/\(ids[1])": nil,
    ])
    try await follow(2)
    Story.say("The list has followed. A fresh read of the tree finds the same:")
    for car in list.cars { Story.show("\(car.name), \(car.isHybrid ? "hybrid" : "electric")") }
    let stored = try await cars.getData().children.map { try $0.data(as: Car.self) }
    guard stored == list.cars else { throw ValidationError("the list differs from the tree") }
    let electric = try await cars.queryOrdered(byChild: "isHybrid").queryEqual(toValue: false)
      .getData()
    Story.say("A query finds \(Story.count(electric.childrenCount, "electric car")).")
    Story.elsewhere("the Realtime Database has the same events, with an account and a network.")
    try await database.close()
    Story.next(name, at: place == "demo/cars.ondol" ? nil : place)
  }
}
