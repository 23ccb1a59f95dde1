// `ondol-demo`: six small apps, each with a database of its own, and each a story that prints its
// steps and results. They use only public calls, as any app would.

import ArgumentParser
import Foundation

@main
struct Main: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ondol-demo",
    abstract: "Six small apps, each on an Ondol database of its own.",
    discussion: """
      Without a name all of them run, one after another; those with pictures need --pictures. \
      Their databases stay in the folder demo: `ondol-demo open shop` shows one in a browser.
      """,
    subcommands: [
      Everything.self, Shop.self, WorkDiary.self, Packages.self, PhotoDiary.self, Cars.self,
      SignUp.self, Clients.self, TwoDevices.self, AtWork.self, Open.self, Rate.self,
    ],
    defaultSubcommand: Everything.self)
}

/// All apps, one after another.
struct Everything: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "all", abstract: "Runs all the apps, one after another.")

  @Option(name: .customLong("at"), help: "The folder for the databases.")
  var folder = DemoOptions.folder

  @OptionGroup var pictures: PictureOptions

  func run() async throws {
    let pictures = try Pictures(pictures)
    let place = { (app: String) in try DemoOptions.database(of: app, in: folder) }
    try await Shop.tell(at: place("shop"), pictures, killing: false)
    try await WorkDiary.tell(at: place("workdiary"), killing: false)
    try await Packages.tell(at: place("packages"), killing: false)
    try await Cars.tell(at: place("cars"), killing: false)
    try await SignUp.tell(at: place("signup"), pictures)
    if let pictures {
      try await PhotoDiary.tell(at: place("photodiary"), pictures, killing: false)
    }
  }
}

/// A small app that describes what it does.
protocol DemoApp: AsyncParsableCommand {
  static var name: String { get }
  var options: DemoOptions { get }

  static func tell(at place: String, killing: Bool) async throws
}

extension DemoApp {
  func run() async throws {
    try await Self.tell(at: try options.database(of: Self.name), killing: options.kill)
  }
}

/// The options of all apps.
struct DemoOptions: ParsableArguments {
  static let folder = "demo"

  @Option(name: .customLong("at"), help: "The database's directory; demo/NAME.ondol if not given.")
  var directory: String?

  @Flag(help: "Print each acknowledged write, and kill this process half-way.")
  var kill = false

  /// The path of an app's database, in an existing folder.
  func database(of app: String) throws -> String {
    try directory ?? Self.database(of: app, in: Self.folder)
  }

  static func database(of app: String, in folder: String) throws -> String {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    return "\(folder)/\(app).ondol"
  }
}
