// `ondol sync`: keeps a database equal to a server's until it is interrupted, and reports events.

import ArgumentParser
import Foundation
import Ondol
import OndolConsole
import OndolSync
import OndolTerminal

struct SyncCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Keeps collections of the database equal to a server's.",
    discussion: """
      The server is another `ondol serve`:
        ondol serve server.ondol
        ondol sync one.ondol --with http://127.0.0.1:8080 --follow items --console
      With --google it is Google's Firestore, or an emulator at the address of --with; there, \
      writes count at least once. --storage says where the server's storage is, which has the \
      contents of documents. A follow stays after the command has ended; the next one continues. \
      With --console the database can be changed in a browser meanwhile. Prints what the server \
      refuses.

      With --lines, a program reads and writes by lines of JSON: each line of the standard input \
      gets one back.
        {"path": "items/lamp", "set": {"n": 1}}        or merge, increment, delete
        {"path": "items/lamp", "put": {"photo": "lamp.png"}}
        {"path": "items/lamp", "get": true}            {"document": {…}}
        {"path": "items/lamp", "write": {"photo": "copy.png"}}
        {"settle": true}                               waits until everything is exchanged
      """)

  @OptionGroup var database: DatabaseArgument

  @Option(name: .customLong("with"), help: "The server's address, such as https://shop.example.")
  var server: String?

  @Flag(help: "The server is Google's Firestore.")
  var google = false

  @Option(help: "The address of the server's storage, such as https://shop.example:9199.")
  var storage: String?

  @Option(help: "The project, which the server's accounts and rules know.")
  var project = "demo"

  @Option(help: "A collection to keep equal; may be repeated.")
  var follow: [String] = []

  @Option(help: "A collection to keep equal no longer; may be repeated.")
  var unfollow: [String] = []

  @Option(
    help: "What happens to documents that only this database has: refuse, upload or replace.")
  var existing = Existing.refuse

  @Option(help: "A file with the token of the user, which is read again when it has ended.")
  var tokenFile: String?

  @Flag(help: "End once everything is exchanged.")
  var once = false

  @Flag(help: "Fetch the contents of documents before they are read.")
  var eager = false

  @Flag(help: "Serve the console, and print its address.")
  var console = false

  @Flag(help: "Read and write by lines of the standard input, until it ends.")
  var lines = false

  @OptionGroup var globals: GlobalOptions

  enum Existing: String, ExpressibleByArgument, CaseIterable {
    case refuse, upload, replace
  }

  func validate() throws {
    guard google || server != nil else { throw ValidationError("--with is missing") }
    guard !google || storage == nil else {
      throw ValidationError("contents are not exchanged with Google's Firestore")
    }
  }

  #if Sync
    /// The server that the options name.
    private func named() throws(DatabaseError) -> SyncServer {
      guard google else {
        return try .ondol(server ?? "", project: project, storage: storage)
      }
      guard let server else { return try .firestore(project: project) }
      return try .firestore(project: project, at: server)
    }

    func run() async throws {
      try await Interruption.whileWriting {
        do {
          if database.isOnServer {
            throw CommandFailure(.failed, "a device's database is in a directory")
          }
          let server = try named()
          let opened = try await Database.open(
            at: database.place, options: Database.Options(encryption: try DatabaseKey.current()))
          do {
            try await synchronise(opened, with: server)
          } catch {
            try? await Self.finish { try await opened.close() }
            throw error
          }
          try await Self.finish { try await opened.close() }
        } catch let error as DatabaseError {
          throw CommandFailure(error)
        }
      }
    }

    private func synchronise(_ opened: Database, with server: SyncServer) async throws {
      let session = tokenFile.map { TokenFile(path: $0) }
      var options = Sync.Options()
      options.contents = eager ? .eager : .lazy
      let sync = try await Sync(opened, with: server, as: session, options: options)
      for path in unfollow { try await sync.unfollow(opened.collection(path)) }
      for path in follow {
        try await sync.follow(opened.collection(path), existing: existing.meaning)
      }
      let page = console ? try await startConsole(opened, sync) : nil
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await report(sync) }
        group.addTask { await reportRejections(sync) }
        if lines { group.addTask { try await SyncLines(database: opened, sync: sync).run() } }
        try await group.next()
        group.cancelAll()
      }
      await page?.stop()
      await sync.stop()
    }

    private func startConsole(
      _ opened: Database, _ sync: Sync
    ) async throws -> OndolConsole.Console {
      let console = try await OndolConsole.Console.start(opened, access: .edit, showing: sync)
      try Output.write(Data((console.url + "\n").utf8))
      return console
    }

    /// Says each new state, until all is exchanged if that is the end.
    private func report(_ sync: Sync) async {
      var last = ""
      for await state in sync.states {
        let line = Self.line(state)
        if line != last { globals.say(line) }
        last = line
        if once, state.isSettled { return }
      }
    }

    private func reportRejections(_ sync: Sync) async {
      do {
        for try await rejection in sync.rejections {
          let paths = rejection.documents.map { "\($0.path)" }
          globals.say("refused: \(paths.joined(separator: ", ")): \(rejection.reason)")
        }
      } catch {
        globals.say("rejections cannot be followed: \(error)")
      }
    }

    private static func line(_ state: SyncState) -> String {
      var parts = [state.isOnline ? "online" : "offline"]
      if state.waitingWrites > 0 { parts.append("\(state.waitingWrites) waiting") }
      for follow in state.follows {
        var part = "\(follow.collection) \(follow.documentCount)"
        if !follow.isComplete { part += " so far" }
        if let problem = follow.problem { part += " (\(problem.message))" }
        parts.append(part)
      }
      if let problem = state.problem { parts.append(problem.message) }
      return parts.joined(separator: ", ")
    }

    /// Performs the final work even though the command was interrupted.
    private static func finish(
      _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
      try await Task { try await body() }.value
    }
  #else
    func run() async throws {
      throw CommandFailure(
        .failed, "this build of ondol does not synchronise; build it with --traits Sync")
    }
  #endif
}

#if Sync
  extension SyncCommand.Existing {
    fileprivate var meaning: ExistingDocuments {
      switch self {
      case .refuse: .refuse
      case .upload: .upload
      case .replace: .replace
      }
    }
  }

  /// A token in a file, which another program replaces.
  private struct TokenFile: SyncSession {
    let path: String

    func token(isRefused: Bool) async throws -> String? {
      guard let data = FileManager.default.contents(atPath: path),
        let text = String(data: data, encoding: .utf8)
      else { throw CommandFailure(.notFound, "\(path) cannot be read") }
      return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
  }
#endif
