// `ondol recover`: salvages a damaged database into a new one, and reports what is lost.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON
import OndolTerminal

struct RecoverCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract: "Saves everything readable in a damaged database into a new one.",
    discussion: """
      Changes nothing in SRC; no app should write there meanwhile. Prints what was saved and what \
      was not. Status 8 when anything is lost.
      """)

  @Argument(help: "The damaged database's directory.", completion: .directory)
  var source: String

  @Argument(help: "A new or empty directory.")
  var target: String

  @Option(help: "Also write a report of what was saved and lost to this file, as JSON.")
  var report: String?

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    _ = try DatabaseArgument(at: source).directory()
    let report: SalvageReport
    let key = try DatabaseKey.current()
    do throws(DatabaseError) {
      report = try await globals.showing(.things("documents")) { (bar) throws(DatabaseError) in
        try await Database.salvage(from: source, to: target, encryption: key) {
          bar.show($0.documents)
        }
      }
    } catch {
      throw CommandFailure(opening: source, error)
    }
    if let file = self.report {
      do {
        try Data((Self.json(report) + "\n").utf8).write(to: URL(filePath: file))
      } catch {
        throw CommandFailure(.failed, "cannot write \(file): \(error.localizedDescription)")
      }
    }
    try print(report)
    if !report.isComplete {
      throw CommandFailure(.salvagedWithLoss, "data was lost in \(report.lossCount) places")
    }
  }

  private func print(_ report: SalvageReport) throws {
    var output = Output(globals.chosenFormat)
    switch globals.chosenFormat {
    case .table:
      for collection in report.collections {
        let lost = collection.lost == 0 ? "" : ", \(collection.lost) damaged"
        let indexes =
          collection.indexes.isEmpty
          ? "" : ", \(counted(collection.indexes.count, "index", "indexes"))"
        try output.print(
          "\(collection.name): \(counted(collection.saved, "document"))\(lost)\(indexes)")
      }
      if report.storagePaths + report.lostStoragePaths > 0 {
        let lost = report.lostStoragePaths == 0 ? "" : ", \(report.lostStoragePaths) damaged"
        try output.print("storage: \(report.storagePaths) paths\(lost)")
      }
      for loss in report.losses { try output.print("lost: \(loss)") }
    default:
      try output.print(Self.json(report))
    }
    try output.flush()
  }

  private static func json(_ report: SalvageReport) -> String {
    let collections = report.collections.map { collection in
      Value.map([
        "name": .string(collection.name), "saved": .number(collection.saved),
        "lost": .number(collection.lost),
        "indexes": .strings(collection.indexes),
      ])
    }
    let losses = report.losses.map { loss in
      var fields: [String: Value] = ["reason": .string(loss.reason)]
      fields["file"] = loss.file.map { .string($0) }
      fields["offset"] = loss.offset.map { .number($0) }
      fields["after"] = loss.after.map { .string($0) }
      fields["before"] = loss.before.map { .string($0) }
      return Value.map(fields)
    }
    return JSONWriter.line(
      .map([
        "schema": "recover/1", "isComplete": report.isComplete ? true : false,
        "lastVersion": .number(report.lastVersion),
        "lossCount": .number(report.lossCount), "collections": .array(collections),
        "storagePaths": .number(report.storagePaths),
        "lostStoragePaths": .number(report.lostStoragePaths),
        "losses": .array(losses),
      ]))
  }
}
