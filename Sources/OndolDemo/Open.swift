// Shows an app's finished database in a browser: the console on it.

import ArgumentParser
import Foundation
import Ondol
import OndolConsole
import OndolTerminal

struct Open: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows an app's finished database in a browser, in the console.")

  @Argument(help: "Which app: shop, workdiary, packages, photodiary, cars or signup.")
  var app: String

  @Option(name: .customLong("at"), help: "The database's directory; demo/APP.ondol if not given.")
  var directory: String?

  @Option(help: "The console's port; 0 for a free one.")
  var port = 0

  func run() async throws {
    let place = directory ?? "\(DemoOptions.folder)/\(app).ondol"
    guard FileManager.default.fileExists(atPath: place) else {
      throw ValidationError("\(place) is not there; run `Scripts/demo \(app)` first")
    }
    let database = try await Database.open(at: place)
    let console = try await Console.start(database, access: .edit, port: port)
    Story.chapter("The app's database", in: place)
    Story.say("Open this in a browser. Ctrl-C ends it.")
    Story.line("\n   \(console.url)\n")
    let (interrupts, noted) = AsyncStream<Void>.makeStream()
    let interrupt = Interrupt { _ in noted.finish() }
    for await _ in interrupts {}
    interrupt.end()
    await console.stop()
    try await database.close()
  }
}
