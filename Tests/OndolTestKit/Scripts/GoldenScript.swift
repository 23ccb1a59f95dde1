// Golden scripts: texts of commands, each with its expected output. A reviewer reads what the code
// does, and a change of behaviour is a change of a text. The idea is that of CockroachDB's
// datadriven tests.
//
//   # Such lines before a command are comments.
//   command word word
//   lines that belong to the command
//   ----
//   its output
//
// An empty line ends a step, so an empty output line is written as "<empty>". The suite that runs a
// script defines its commands. ONDOL_REWRITE=1 writes the output into the scripts instead of
// comparing it, for a reviewer to check.

internal import Foundation

/// A script, read from a file.
package struct GoldenScript: Sendable, CustomStringConvertible {
  /// A command with its arguments and output.
  package struct Step: Sendable {
    /// The command's name and the words after it.
    package var name: String
    package var words: [String]
    package var lines: [String] = []
    fileprivate var expected: [String] = []
    /// The number of its first line, from 1.
    fileprivate var place: Int
    /// The range of its output among the lines of the script.
    fileprivate var output = 0..<0
  }

  private static let mark = "----"
  private static let empty = "<empty>"

  package let description: String
  private let path: String
  private let steps: [Step]
  private let text: [String]

  /// The scripts of a folder of `Tests/GoldenScripts`, in the order of their names.
  package static func all(in folder: String, near file: String = #filePath) throws -> [GoldenScript]
  {
    let parts = file.split(separator: "/")
    guard let tests = parts.lastIndex(of: "Tests") else {
      throw BrokenInvariant("\(file) is in no folder Tests, where the scripts are")
    }
    let directory = "/" + parts[...tests].joined(separator: "/") + "/GoldenScripts/" + folder
    return try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
      .filter { $0.hasSuffix(".txt") }.map { try GoldenScript(path: directory + "/" + $0) }
  }

  private init(path: String) throws {
    self.path = path
    description = URL(filePath: path).deletingPathExtension().lastPathComponent
    text = try String(contentsOfFile: path, encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false
    ).map(String.init)
    steps = try Self.steps(of: text, in: path)
  }

  private static func steps(of text: [String], in path: String) throws -> [Step] {
    var steps: [Step] = []
    var index = 0
    while index < text.count {
      if text[index].isEmpty || text[index].hasPrefix("#") {
        index += 1
        continue
      }
      let words = text[index].split(separator: " ").map(String.init)
      var step = Step(name: words[0], words: Array(words.dropFirst()), place: index + 1)
      let end = text[index...].firstIndex(of: "") ?? text.count
      guard let mark = text[index..<end].firstIndex(of: mark) else {
        throw BrokenInvariant("\(path):\(step.place): no line \(Self.mark) ends this command")
      }
      step.lines = Array(text[(index + 1)..<mark])
      step.output = (mark + 1)..<end
      step.expected = Array(text[step.output])
      steps.append(step)
      index = end
    }
    return steps
  }

  /// Runs the steps in order, and throws if the output of one differs.
  ///
  /// - Parameter run: runs a step and returns its output. An error is printed.
  package func check(_ run: (Step) async throws -> String) async throws {
    var differences: [String] = []
    var rewritten = text
    for (step, output) in try await outputs(run).reversed() {
      rewritten.replaceSubrange(step.output, with: output)
      guard output != step.expected else { continue }
      differences.append(
        "\(path):\(step.place): \(step.name) prints\n\(output.joined(separator: "\n"))"
          + "\ninstead of\n\(step.expected.joined(separator: "\n"))")
    }
    if ProcessInfo.processInfo.environment["ONDOL_REWRITE"] == "1" {
      return try rewritten.joined(separator: "\n").write(
        toFile: path, atomically: true, encoding: .utf8)
    }
    guard differences.isEmpty else {
      throw BrokenInvariant(differences.reversed().joined(separator: "\n\n"))
    }
  }

  private func outputs(
    _ run: (Step) async throws -> String
  ) async throws -> [(step: Step, lines: [String])] {
    var outputs: [(step: Step, lines: [String])] = []
    for step in steps {
      var printed: String
      do {
        printed = try await run(step)
      } catch {
        printed = "error: \(error)"
      }
      while printed.last?.isNewline == true { printed.removeLast() }
      let lines = printed.split(separator: "\n", omittingEmptySubsequences: printed.isEmpty)
      outputs.append((step, lines.map { $0.isEmpty ? Self.empty : String($0) }))
    }
    return outputs
  }
}

extension GoldenScript.Step {
  /// The step's words of the form name=value, by their names.
  package var settings: [String: String] {
    let pairs = words.compactMap { word -> (String, String)? in
      let parts = word.split(separator: "=", maxSplits: 1)
      return parts.count == 2 ? (String(parts[0]), String(parts[1])) : nil
    }
    return Dictionary(pairs) { _, last in last }
  }

  /// The error for a step that the suite does not know.
  package var unknown: BrokenInvariant { BrokenInvariant("nobody knows the command \(name)") }
}
