// `ondol rules`: who may do what, in Firebase's rules files. Checking and testing look at files
// alone, so an app's rules are tested before a server has them. Deploying writes them into a
// database, or sends them to the server that has it open.

import ArgumentParser
import Foundation
import OndolServer
import OndolTerminal

struct RulesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rules",
    abstract: "Checks, tests and deploys Firebase's rules files.",
    subcommands: [
      RulesCheckCommand.self, RulesTestCommand.self, RulesExplainCommand.self,
      RulesDeployCommand.self,
    ])
}

/// The file with the rules.
struct RulesArgument: ParsableArguments {
  @Argument(
    help: "firestore.rules, storage.rules, or database.rules.json.", completion: .file())
  var rules: String

  init() {}

  init(_ rules: String) {
    self.init()
    self.rules = rules
  }

  /// What a file has.
  static func read(_ path: String) throws(CommandFailure) -> Data {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw CommandFailure(.notFound, "\(path) cannot be read")
    }
    return data
  }

  #if Server
    /// What several files deploy together.
    static func texts(_ files: [String]) throws(CommandFailure) -> RulesTexts {
      var texts = RulesTexts()
      for file in files {
        let rules = try RulesArgument(file).parsed()
        do throws(RulesFile.Problem) {
          try rules.add(to: &texts)
        } catch {
          throw CommandFailure(.failed, "\(file): \(error)")
        }
      }
      return texts
    }

    /// The rules.
    ///
    /// Throws what is wrong with them, and where.
    func parsed() throws(CommandFailure) -> RulesFile {
      guard let text = String(data: try Self.read(rules), encoding: .utf8) else {
        throw CommandFailure(.failed, "\(rules) is not UTF-8")
      }
      do throws(RulesFile.Problem) {
        return try RulesFile(text, isOfTree: rules.hasSuffix(".json"))
      } catch {
        throw CommandFailure(.failed, "\(rules):\(error)")
      }
    }
  #else
    static let isOutOfReach = CommandFailure(
      .failed, "this ondol was built without rules; build it with --traits Server")
  #endif
}

struct RulesCheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Checks a rules file.",
    discussion: "Prints the first mistake with its line and column.")

  @OptionGroup var file: RulesArgument
  @OptionGroup var globals: GlobalOptions

  func run() throws {
    #if Server
      let rules = try file.parsed()
      globals.say("\(file.rules): \(rules.summary)")
    #else
      throw RulesArgument.isOutOfReach
    #endif
  }
}

struct RulesTestCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "test", abstract: "Tries requests, and checks the rules' decisions.",
    discussion: """
      A case is a line of JSON, for instance
        {"as": "ann", "method": "get", "path": "items/lamp", "resource": {"owner": "ann"}, \
      "allow": true}
      It has a method (get, list, create, update or delete), a path, what it expects (allow), and \
      where needed: who asks (as: a uid, or an object with uid and token), the document as it is \
      (resource) and as it will be (new), other documents by path (documents; after the request's \
      writes: after), the moment (time: {"$time": "2026-01-01T00:00:00Z"}), a query's limit, \
      offset and orderBy (query), and for Storage a bucket. A case that does not come out as it \
      expects is explained line by line; exit status 1 then.
      """)

  @OptionGroup var file: RulesArgument

  @Argument(help: "The file with the cases, one a line.", completion: .file())
  var cases: String

  @Flag(help: "Explain every case.")
  var explain = false

  @OptionGroup var globals: GlobalOptions

  func run() throws {
    #if Server
      let rules = try file.parsed()
      var (count, wrong, number) = (0, 0, 0)
      let lines = try RulesArgument.read(cases).split(
        separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      for line in lines {
        number += 1
        guard line.contains(where: { !" \t\r".utf8.contains($0) }) else { continue }
        count += 1
        let trial: RulesFile.Trial
        do throws(RulesFile.Problem) {
          trial = try rules.attempt(Data(line))
        } catch {
          throw CommandFailure(.failed, "\(cases):\(number): \(error)")
        }
        if !trial.isAsExpected { wrong += 1 }
        guard explain || !trial.isAsExpected else { continue }
        let outcome = trial.isAsExpected ? "as expected" : "not as expected"
        Console.say("\(cases):\(number): \(outcome)")
        Console.say(lines: trial.explanation)
      }
      globals.say("\(counted(count, "case")), \(wrong) not as expected")
      if wrong > 0 { throw CommandFailure(.failed, "") }
    #else
      throw RulesArgument.isOutOfReach
    #endif
  }
}
