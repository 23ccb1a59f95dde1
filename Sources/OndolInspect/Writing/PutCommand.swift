// `ondol put`, `ondol patch` and `ondol edit`: write one document, with the conditions that a
// script needs to avoid overwriting data by accident.

import ArgumentParser
import Foundation
import Ondol
import OndolTerminal
import OndolJSON

struct PutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "put",
    abstract: "Makes a document, or replaces it.",
    discussion: """
      FIELDS is a JSON object, typed values as {"$date": ...} in it; - reads it from standard \
      input. Status 9 when the document is there with --create, or has another version than \
      --if-version says; 3 when it is not there with --update.
      """)

  @OptionGroup var place: DocumentArgument

  @Argument(help: "The fields as a JSON object, or -.")
  var fields: String

  @Flag(help: "There must be no document.")
  var create = false

  @Flag(help: "There must be a document.")
  var update = false

  @Option(help: "The document must have this version; 0 for none.")
  var ifVersion: UInt64?

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard [create, update, ifVersion != nil].count(where: \.self) <= 1 else {
      throw ValidationError("--create, --update and --if-version exclude each other")
    }
  }

  func run() async throws {
    let fields = try DocumentText.fields(fields)
    try await place.database.withDatabase(writing: true) { database in
      let document = database.document(try DocumentPath(place.path))
      let result: WriteResult
      if create {
        result = try await document.create(fields)
      } else {
        let version =
          update
          ? try await place.existing(in: database).version
          : ifVersion.map { Version(rawValue: $0) }
        result = try await document.setData(fields, ifVersion: version)
      }
      try place.report("put/1", result, globals)
    }
  }
}

struct PatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "patch",
    abstract: "Sets some fields of a document and leaves the others.",
    discussion: """
      FIELDS is a JSON object whose names are paths of fields, such as size.width; - reads it from \
      standard input. Status 3 when there is no document.
      """)

  @OptionGroup var place: DocumentArgument

  @Argument(help: "The fields as a JSON object, or -.")
  var fields: String?

  @Option(help: "A field to remove; repeat it for several.")
  var delete: [String] = []

  @Option(help: "The document must have this version.")
  var ifVersion: UInt64?

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard fields != nil || !delete.isEmpty else {
      throw ValidationError("say which fields to set, or --delete")
    }
  }

  func run() async throws {
    let changes = try DocumentText.changes(fields, deleting: delete)
    try await place.database.withDatabase(writing: true) { database in
      let result = try await database.document(try DocumentPath(place.path))
        .updateData(changes, ifVersion: ifVersion.map { Version(rawValue: $0) })
      try place.report("patch/1", result, globals)
    }
  }
}

struct EditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit",
    abstract: "Opens a document in an editor, and writes it if you changed it.",
    discussion: """
      The editor is $VISUAL, $EDITOR or vi. Status 9 when the document was written meanwhile by \
      somebody else; what was edited is kept in a file then, and also when it is no JSON.
      """)

  @OptionGroup var place: DocumentArgument

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    // The database is not kept open while a person thinks.
    let old = try await place.database.withDatabase { try await place.existing(in: $0) }
    let file = FileManager.default.temporaryDirectory
      .appending(path: "ondol-\(UUID().uuidString).json")
    let text = JSONWriter.page(old.data())
    try Data(text.utf8).write(to: file)
    try Self.edit(file)
    let edited = try String(contentsOf: file, encoding: .utf8)
    guard edited != text else {
      try FileManager.default.removeItem(at: file)
      return globals.say("Nothing was changed.")
    }
    do {
      let fields = try DocumentText.parse(Array(edited.utf8))
      try await place.database.withDatabase(writing: true) { database in
        let result = try await database.document(try DocumentPath(place.path))
          .setData(fields, ifVersion: old.version)
        try place.report("edit/1", result, globals)
      }
      try FileManager.default.removeItem(at: file)
    } catch {
      Console.say("ondol: what was edited is in \(file.path(percentEncoded: false))")
      throw error
    }
  }

  private static func edit(_ file: URL) throws {
    let environment = ProcessInfo.processInfo.environment
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    let editor = environment["VISUAL"] ?? environment["EDITOR"] ?? "vi"
    process.arguments = ["-c", "\(editor) \"$1\"", "sh", file.path(percentEncoded: false)]
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw CommandFailure(.failed, "\(editor) ended with status \(process.terminationStatus)")
    }
  }
}

/// A document of a database.
struct DocumentArgument: ParsableArguments {
  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The document's path, such as upload/lamp.")
  var path: String

  /// The document, which must exist.
  func existing(in database: Database) async throws -> DocumentSnapshot {
    let document = try await database.document(try DocumentPath(path)).getDocument()
    guard document.exists else {
      throw CommandFailure(.notFound, "there is no document at \(path)")
    }
    return document
  }

  /// Reports the effect of a write.
  func report(
    _ schema: String, _ result: WriteResult, _ globals: GlobalOptions
  ) throws(CommandFailure) {
    if globals.quiet { return }
    try globals.report(
      schema,
      [
        ("document", .string(path)), ("version", .number(result.version.rawValue)),
        ("time", .timestamp(result.commitTime)),
      ])
  }
}

/// Fields on the command line and in files.
enum DocumentText {
  /// The fields of an argument, or of standard input if it is "-".
  static func fields(_ argument: String) throws -> [String: Value] {
    guard argument == "-" else { return try parse(Array(argument.utf8)) }
    return try parse(Array(try FileHandle.standardInput.readToEnd() ?? Data()))
  }

  /// The changes of an update: sets the fields of an argument, and removes others.
  static func changes(
    _ argument: String?, deleting names: [String]
  ) throws -> [String: (any FieldContent)?] {
    var changes: [String: (any FieldContent)?] = [:]
    if let argument {
      for (name, value) in try fields(argument) { changes[name] = value }
    }
    for name in names { changes[name] = FieldValue.delete() }
    return changes
  }

  static func parse(_ bytes: [UInt8]) throws(CommandFailure) -> [String: Value] {
    do throws(JSONError) {
      return try JSONReader.readDocument(bytes)
    } catch {
      throw CommandFailure(.failed, "column \(error.column): \(error.reason)")
    }
  }
}
