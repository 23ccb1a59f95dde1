// `ondol new`: a package to start from. Its files are real ones in Docs/Templates/service, which
// tests build. The command writes them to the requested place, under that place's name.

import ArgumentParser
import Foundation

struct NewCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Writes a small service to start from: a package with tests.",
    discussion: """
      A Hummingbird service on Ondol: typed models, photos, pages, a live query as server-sent \
      events, clean shutdown, and tests. `swift test` and `swift run App` work in it at once.
      """)

  @Argument(help: "A new or empty directory.", completion: .directory)
  var directory: String

  @Option(
    help: "Ondol's repository, a path or a URL; by default the clone that this tool was built in.")
  var ondol: String?

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let root = URL(filePath: directory).standardizedFileURL
    let dependency = try self.dependency()
    let files = FileManager.default
    let found = (try? files.contentsOfDirectory(atPath: root.path(percentEncoded: false))) ?? []
    guard found.isEmpty else {
      throw CommandFailure(.failed, "\(directory) is not empty; nothing was written")
    }
    var output = Output()
    for (path, text) in TemplateFiles.service.sorted(by: { $0.key < $1.key }) {
      let place = root.appending(path: path)
      try files.createDirectory(
        at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
      let text = path == "Package.swift" ? manifest(text, root.lastPathComponent, dependency) : text
      try Data(text.utf8).write(to: place)
      try output.print("\(directory)/\(path)")
    }
    try output.flush()
    globals.say("Next: cd \(directory) && swift test && swift run App")
  }

  private func manifest(_ text: String, _ name: String, _ dependency: String) -> String {
    text.replacing("name: \"service\"", with: "name: \(Self.literal(name))")
      .replacing(".package(name: \"ondol\", path: \"../..\")", with: dependency)
  }

  /// The manifest's dependency on Ondol.
  private func dependency() throws -> String {
    if let ondol, ondol.contains("://") || ondol.hasPrefix("git@") {
      return ".package(url: \(Self.literal(ondol)), from: \"0.1.0\")"
    }
    guard let path = ondol ?? Self.clone() else {
      throw CommandFailure(
        .usage, "say with --ondol where Ondol's repository is: a path or a URL")
    }
    let full = URL(filePath: path).standardizedFileURL.path(percentEncoded: false)
    guard Self.isClone(full) else {
      throw CommandFailure(.notFound, "\(path) is not a clone of Ondol's repository")
    }
    return ".package(name: \"ondol\", path: \(Self.literal(full)))"
  }

  /// The clone that this program was built in; nil if the program was moved elsewhere.
  private static func clone() -> String? {
    guard var place = Bundle.main.executableURL?.resolvingSymlinksInPath() else { return nil }
    while place.pathComponents.count > 1 {
      place.deleteLastPathComponent()
      let path = place.path(percentEncoded: false)
      if isClone(path) {
        return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
      }
    }
    return nil
  }

  private static func isClone(_ path: String) -> Bool {
    ["Package.swift", "Sources/OndolEngine"].allSatisfy {
      FileManager.default.fileExists(atPath: "\(path)/\($0)")
    }
  }

  private static func literal(_ text: String) -> String {
    "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
  }
}
