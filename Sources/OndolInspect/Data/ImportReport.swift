// What an import reports to the person, and on request to the program that started it: its
// progress, the rejected records with the reasons, and the parts of a file that were not imported.

import Foundation
import OndolTerminal
import OndolJSON

/// Reports progress to the person, and on request to the program that started this one.
struct ImportReport {
  /// The most invalid records that are shown. The others are counted.
  private static let shownLines = 20

  let isAcknowledging: Bool
  let isQuiet: Bool
  let stopsOnError: Bool
  /// Whether nothing is written.
  let isDry: Bool
  var documents = 0
  private(set) var badLines = 0
  /// Whether lines are counted, and not values of a JSON text.
  private(set) var isInLines = true
  private var shown = 0
  private var acknowledged = 0
  private var bar: ProgressBar
  private var file = ""
  private var fileStart: Int64 = 0
  /// The size of the previous files.
  private var bytesBefore: Int64 = 0
  private var output = Output()
  private let start = ContinuousClock.now

  init(
    isAcknowledging: Bool, stopsOnError: Bool, isDry: Bool, isQuiet: Bool, showsProgress: Bool,
    bytes: Int64?
  ) {
    self.isDry = isDry
    self.isAcknowledging = isAcknowledging && !isDry
    self.stopsOnError = stopsOnError
    self.isQuiet = isQuiet
    bar = ProgressBar(.bytes, of: bytes, isQuiet: !showsProgress)
  }

  mutating func begin(_ file: String, _ form: FileForm) {
    bytesBefore += fileStart
    fileStart = 0
    self.file = file
    isInLines = isInLines && form.format != .json
  }

  /// Prints a message about the file, next to the progress bar.
  mutating func say(_ message: String) {
    guard !isQuiet else { return }
    bar.clear()
    Console.say("ondol: \(file == "-" ? "" : "\(file): ")\(message)")
  }

  mutating func note(_ bad: [BadRecord]) {
    guard !stopsOnError else { return }
    for record in bad {
      badLines += record.count
      shown += 1
      guard shown <= Self.shownLines else { continue }
      say("\(record.place): \(record.reason)")
      if shown == Self.shownLines, !isQuiet {
        Console.say("ondol: further bad \(isInLines ? "lines" : "records") are only counted")
      }
    }
  }

  mutating func note(_ position: ImportPosition) throws(CommandFailure) {
    fileStart = position.offset
    bar.show(bytesBefore + position.offset, note: counted(documents, "document"))
    try acknowledge()
  }

  /// Prints the count after a commit, on request.
  mutating func acknowledge() throws(CommandFailure) {
    guard isAcknowledging, documents > acknowledged else { return }
    acknowledged = documents
    try output.print("\(documents)")
    try output.flush()
  }

  mutating func finish(into collection: String?) {
    bar.clear()
    guard !isQuiet else { return }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let time = "\((seconds * 100).rounded() / 100)"
    let place = collection.map { " into \($0)" } ?? ""
    let noun = isInLines ? "bad line" : "bad record"
    let skipped =
      badLines == 0
      ? "" : " \(counted(badLines, "\(noun) was", "\(noun)s were")) left out."
    let done = isDry ? "Would import" : "Imported"
    Console.say("\(done) \(counted(documents, "document"))\(place) in \(time) s.\(skipped)")
  }

  /// The exit status of an import that skipped something.
  var failure: CommandFailure? {
    guard badLines > 0 else { return nil }
    let noun = isInLines ? "line" : "record"
    return CommandFailure(
      .failed,
      badLines == 1
        ? "a \(noun) was no document" : "\(badLines) \(noun)s were no documents")
  }
}
