// `ondol-demo`: six small apps on a real database, each a story that prints what it does and what
// it finds. They use the public interface only, as any app would.

import ArgumentParser

@main
struct Main: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ondol-demo",
    abstract: "Six small apps on a real Ondol database.",
    discussion: """
      Without a name all run, one after another; what has pictures needs --pictures. Look at what \
      they left behind with `ondol ls demo.ondol upload`.
      """,
    subcommands: [
      Everything.self, Shop.self, WorkDiary.self, Packages.self, PhotoDiary.self, Cars.self,
      SignUp.self, AtWork.self, Rate.self,
    ],
    defaultSubcommand: Everything.self)
}

/// All apps, one after another, in one database.
struct Everything: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "all", abstract: "Runs all the apps, one after another.")

  @OptionGroup var options: DemoOptions
  @OptionGroup var pictures: PictureOptions

  func run() async throws {
    let pictures = try Pictures(pictures)
    try await Shop.tell(options, pictures)
    try await WorkDiary.tell(options)
    try await Packages.tell(options)
    try await Cars.tell(options)
    try await SignUp.tell(options, pictures)
    if let pictures { try await PhotoDiary.tell(options, pictures) }
  }
}

/// A small app that tells what it does.
protocol DemoApp: AsyncParsableCommand {
  var options: DemoOptions { get }

  static func tell(_ options: DemoOptions) async throws
}

extension DemoApp {
  func run() async throws { try await Self.tell(options) }
}

/// What all the apps are asked.
struct DemoOptions: ParsableArguments {
  @Option(name: .customLong("at"), help: "The database's directory.")
  var directory = "demo.ondol"

  @Flag(help: "Print each acknowledged write, and kill this process half-way.")
  var kill = false
}
