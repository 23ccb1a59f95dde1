// Real data: the list of packages installed on this machine, imported in batches and queried by
// section, size and name.

import ArgumentParser
import Foundation
import Ondol

struct Packages: DemoApp {
  static let configuration = CommandConfiguration(
    abstract: "This machine's own package list: `in`, ranges, prefixes.")

  static let name = "packages"

  @OptionGroup var options: DemoOptions
}

/// An installed package.
struct Package: Codable, Equatable {
  var name, version, section: String
  /// In KiB; nil if the system does not report it.
  var size: Int?
  var summary: String
}

extension Packages {
  private static let batchSize = 100

  static func tell(at place: String, killing: Bool) async throws {
    Story.chapter("The packages on this machine", in: place)
    guard let installed = try installedPackages() else {
      Story.say("Neither dpkg-query nor brew is here, so there is no list to import.")
      return
    }
    let database = try await Database.open(at: place)
    let packages = database.collection("packages")
    try await load(installed, into: packages, of: database, killing: killing)
    try await packages.createIndex(on: ["section", "size"])
    try await packages.createIndex(on: ["size"])
    try await packages.createIndex(on: ["name"])
    try await ask(packages)
    Story.elsewhere(
      "in SQL, a table with a schema and three indexes; here, three calls for the indexes.")
    try await database.close()
    Story.next(name, at: place == "demo/packages.ondol" ? nil : place)
  }

  private static func load(
    _ installed: [Package], into packages: CollectionReference, of database: Database, killing: Bool
  ) async throws {
    let found = try await packages.getDocuments().count
    if found > 0 { Story.say("Found \(found) packages from an earlier run.") }
    var acknowledged = Acknowledgements(killing: killing, done: 0, total: installed.count)
    let clock = ContinuousClock()
    let duration = try await clock.measure {
      for start in stride(from: 0, to: installed.count, by: batchSize) {
        let part = installed[start..<min(start + batchSize, installed.count)]
        let batch = database.batch()
        for package in part {
          try batch.setData(from: package, forDocument: packages.document(package.name))
        }
        try await batch.commit()
        acknowledged.add(part.count)
      }
    }
    Story.say(
      "Imported \(installed.count) packages, \(batchSize) in a commit, in"
        + " \(Story.milliseconds(duration)).")
  }

  private static func ask(_ packages: CollectionReference) async throws {
    let brewed = packages.whereField("section", isEqualTo: "homebrew").limit(to: 1)
    let isHomebrew = try await brewed.getDocuments().count > 0
    let sections = isHomebrew ? ["homebrew"] : ["devel", "python", "editors"]
    let chosen = try await packages.whereField("section", in: sections)
      .order(by: "size", descending: true).limit(to: 5).getDocuments()
    Story.say("The largest packages of the sections \(sections.joined(separator: ", ")):")
    try show(chosen)

    let medium = try await packages.whereField("size", isGreaterThanOrEqualTo: 10_000)
      .whereField("size", isLessThan: 50_000).order(by: "size").getDocuments()
    Story.say(
      "\(medium.documents.count) packages have from 10,000 to 50,000 KiB. The smallest of them:")
    try show(medium, first: 3)

    let libraries = try await packages.whereField("name", hasPrefix: "lib").getDocuments()
    Story.say("\(libraries.documents.count) names begin with \"lib\". The first of them:")
    try show(libraries, first: 3)
  }

  private static func show(_ snapshot: QuerySnapshot, first count: Int = .max) throws {
    for document in snapshot.documents.prefix(count) {
      let package = try document.data(as: Package.self)
      let size = package.size.map { "\(Story.grouped($0)) KiB" } ?? "size unknown"
      Story.show("\(package.name) \(package.version), \(package.section), \(size)")
    }
  }
}

// MARK: - The system's list

extension Packages {
  /// The output of the system's package manager; nil if there is no known one.
  private static func installedPackages() throws -> [Package]? {
    let format =
      #"${binary:Package}\t${Version}\t${Section}\t${Installed-Size}\t${binary:Summary}\n"#
    if let text = try output(of: "dpkg-query", ["--show", "--showformat", format]) {
      return text.split(separator: "\n").map { line in
        let cells = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        return Package(
          name: cells[0], version: cell(cells, 1), section: cell(cells, 2),
          size: Int(cell(cells, 3)), summary: cell(cells, 4))
      }
    }
    return try output(of: "brew", ["list", "--versions"])?.split(separator: "\n").map { line in
      let words = line.split(separator: " ").map(String.init)
      return Package(
        name: words[0], version: cell(words, 1), section: "homebrew", size: nil, summary: "")
    }
  }

  private static func cell(_ cells: [String], _ index: Int) -> String {
    index < cells.count ? cells[index] : ""
  }

  /// A program's output; nil if the program does not exist or fails.
  private static func output(of program: String, _ arguments: [String]) throws -> String? {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return process.terminationStatus == 0 ? String(decoding: data, as: UTF8.self) : nil
  }
}
