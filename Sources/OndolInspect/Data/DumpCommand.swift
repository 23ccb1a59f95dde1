// `ondol dump` and `ondol load`: converts a whole database to text and back, without loss and
// always identically for the same contents. Uses: moving a database to another version or another
// kind of files, keeping one under version control, and comparing two.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON
import OndolTerminal

struct DumpCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump",
    abstract:
      "Writes everything in a database as text, without loss, always in the same order.",
    discussion: """
      Documents with their versions and times, indexes, storage paths, contents and the tree, as \
      of one moment and beside an app that writes. Load it with `ondol load`. The dump of an \
      encrypted database is in the clear; a collection with a key of its own that is not here is \
      left out, and named.
      """)

  @OptionGroup var database: DatabaseArgument

  @Option(name: .shortAndLong, help: "A new or empty directory, or - for one stream of text.")
  var output: String

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    if database.isEncrypted {
      globals.say("The database is encrypted, and its dump is not.")
    }
    try await failing {
      let sink: any DumpSink =
        output == "-" ? DumpStream { try Output.write(Data($0)) } : try DumpDirectory(output)
      try await globals.showing(.things("documents")) { bar in
        let reader = try DumpReader(database)
        try await reader.nameLocked()
        var writer = DumpWriter(reader, to: sink) { progress in
          try Interruption.check()
          bar.show(progress.documents, note: counted(progress.contents, "content"))
        }
        try await writer.write()
      }
    }
  }
}

extension DumpReader {
  /// Names the omitted collections, even with --quiet.
  func nameLocked() async throws(DatabaseError) {
    for name in try await lockedCollections() {
      Console.say("\(name) is left out: it has a key of its own, which is not here (the file KEYS)")
    }
  }
}

/// Reports problems with a dump in the way of commands.
private func failing(_ body: () async throws -> Void) async throws {
  do {
    try await body()
  } catch let error as DumpError {
    throw CommandFailure(.failed, "\(error)")
  } catch let error as DatabaseError {
    throw CommandFailure(error)
  }
}

struct LoadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "load",
    abstract: "Makes a new database from a dump.",
    discussion: """
      Documents keep their versions and times; indexes are built before it ends. What no dump says \
      is refused with the file, the line and the reason, and nothing is left then. Collections \
      with keys of their own get other ones; where the new database is in the clear they have \
      none, and are named.
      """)

  @Argument(
    help: "A new or empty directory, or a server's address without a database yet.",
    completion: .directory)
  var place: String

  @Argument(help: "The directory of a dump, or - for one on standard input.")
  var source: String

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await failing {
      let source: any DumpSource =
        source == "-"
        ? DumpText { count in
          Array(try FileHandle.standardInput.read(upToCount: count) ?? Data())
        } : try DumpFiles(source)
      let restoration = try await begin()
      let done = try await globals.showing(.things("documents")) { bar in
        try await Interruption.whileWriting {
          try await DumpLoader.load(source, into: restoration) { progress in
            try Interruption.check()
            bar.show(progress.documents, note: counted(progress.contents, "content"))
          }
        }
      }
      for name in done.lostKeys {
        Console.say("\(name) had a key of its own, and has none here")
      }
      globals.say(
        "Loaded \(counted(done.documents, "document")) and \(counted(done.contents, "content")).")
    }
  }

  private func begin() async throws(CommandFailure) -> Restoration {
    let key = try DatabaseKey.current()
    let store = try ServerAddress.store(place, creates: true)
    do throws(DatabaseError) {
      if let store { return try await Restoration.begin(on: store) }
      return try await Restoration.begin(at: place, encryption: key)
    } catch {
      throw CommandFailure(opening: place, error)
    }
  }
}
