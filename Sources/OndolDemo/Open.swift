// Shows what an app has left behind, in a browser: the console on its database.

import ArgumentParser
import Foundation
import Ondol
import OndolConsole
import OndolTerminal

struct Open: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "The console in a browser, on the database that an app has left behind.")

  @Argument(help: "Which app: shop, workdiary, packages, photodiary, cars or signup.")
  var app: String

  @Option(name: .customLong("at"), help: "The database's directory; demo/APP.ondol if not given.")
  var directory: String?

  @Option(help: "Where the console listens; a free port for 0.")
  var port = 0

  func run() async throws {
    let place = directory ?? "\(DemoOptions.folder)/\(app).ondol"
    guard FileManager.default.fileExists(atPath: place) else {
      throw ValidationError("\(place) is not there; run `Scripts/demo \(app)` first")
    }
    let database = try await Database.open(at: place)
    let console = try await Console.start(database, access: .edit, port: port)
    Story.chapter("What the app has left behind", in: place)
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
