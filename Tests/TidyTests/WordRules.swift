// Forbidden words: escapes from memory safety, from the error model, from the owner of background
// work, and promises to finish something later.

/// A trial of outages, whose subject is time that passes.
private let outages = "Tests/OndolPostgresTestKit/AwayTrial.swift"

extension Rule {
  static let words = [
    Rule(
      "`unsafe` is written in Bytes, FileSystem, Cache, memtable, block, terminal, files, sockets",
      planted: Sample(
        "Sources/OndolEngine/Engine/A.swift", "// unsafe\nlet a = unsafe b\n", line: 2),
      innocent: [
        Sample("Sources/OndolEngine/Bytes/A.swift", "let a = unsafe b\n"),
        Sample("Sources/OndolEngine/Memtables/MemtableArena.swift", "let a = unsafe b\n"),
        Sample("Sources/OndolEngine/Views/ViewTable.swift", "let a = unsafe b\n"),
        Sample("Sources/Ondol/A.swift", "let unsafeName = \"unsafe\"\n"),
      ]
    ) { file, _ in
      guard file.isSwift, file.isIn("Sources/"), !file.mayBeUnsafe else { return [] }
      return file.findings(of: /@?\bunsafe\b/, "`unsafe` has no place here")
    },

    Rule(
      "OndolEngine declares nothing public",
      planted: Sample("Sources/OndolEngine/A.swift", "// A\n\npublic struct A {}\n", line: 3),
      innocent: [
        Sample("Sources/OndolEngine/A.swift", "// public\npackage func open() {}\n"),
        Sample("Sources/Ondol/A.swift", "public struct A {}\n"),
      ]
    ) { file, _ in
      guard file.isIn("Sources/OndolEngine/") else { return [] }
      return file.findings(
        of: /\bpublic\b|\bopen\s+(?:class|func|var|init|subscript)\b/,
        "the engine is no product: say `package`")
    },

    Rule(
      "Nothing traps where it could throw",
      planted: Sample("Sources/Ondol/A.swift", "let a = 1\nlet b = c as! D\n", line: 2),
      innocent: [
        Sample("Sources/Ondol/A.swift", "// try! as!\nlet a = try? b\nprecondition(a, \"as!\")\n")
      ]
    ) { file, _ in
      guard file.isSwift, file.isIn("Sources/", "Tests/", "Fuzz/", "Benchmarks/") else { return [] }
      return file.findings(
        of: /\btry!|\bas!|\bfatalError\s*\(/, "throw a typed error, or state a `precondition`")
    },

    Rule(
      "Nothing is put off till later",
      planted: Sample("Sources/Ondol/A.swift", "let a = 1\n\n// TO\("DO"): b\n", line: 3),
      innocent: [Sample("Sources/Ondol/A.swift", "let template = \"ondol-XX\("XXXX")\"\n")]
    ) { file, _ in
      let pattern = postponement
      return file.lines.indices.filter { file.lines[$0].contains(pattern) }
        .map { file.finding(line: $0, "do it, or leave it out") }
    },

    Rule(
      "The libraries start no task that nobody owns",
      planted: Sample("Sources/Ondol/A.swift", "let a = Task { b() }\n", line: 1),
      innocent: [
        Sample("Sources/Ondol/A.swift", "// Task { }\nif Task.isCancelled { executor.run() }\n"),
        Sample("Tests/OndolTests/A.swift", "Task { b() }\n"),
        Sample(backgroundTasks, "Task(executorPreference: a) { b() }\n"),
      ]
    ) { file, _ in
      guard file.isSwift, file.isIn("Sources/Ondol/", "Sources/OndolEngine/"),
        file.path != backgroundTasks
      else {
        return []
      }
      return file.findings(
        of: /\bTask(?:<[^>]*>)?\s*[{(]|\bTask\.(?:detached|immediate)/,
        "background work belongs to the engine's `BackgroundTasks`, or to a task group")
    },

    Rule(
      "A promise to the compiler says beside it why it is true",
      planted: Sample(
        "Sources/Ondol/A.swift", "/// A.\nfinal class A: @unchecked Sendable {\n}\n", line: 2),
      innocent: [
        Sample(
          "Sources/Ondol/A.swift",
          "final class A: @unchecked Sendable {\n  // Safe: only touched under the lock.\n}\n")
      ]
    ) { file, _ in
      guard file.isIn("Sources/") else { return [] }
      let reason = "say in a comment beside it why this is true"
      return file.findings(of: /@unchecked\s+Sendable|nonisolated\(unsafe\)/, reason)
        .filter { !file.hasComment(around: $0.line - 1) }
    },

    Rule(
      "Checks are never compiled out",
      planted: Sample("Package.swift", "// A\nlet flags = [\"-Oun\("checked")\"]\n", line: 2),
      innocent: [Sample("Package.swift", "let flags = [\"-O\"]\n")]
    ) { file, _ in
      file.lines.indices.filter { file.lines[$0].contains("-Oun" + "checked") }
        .map { file.finding(line: $0, "preconditions must stay in release builds") }
    },

    Rule(
      "Tests do not sleep",
      planted: Sample(
        "Tests/OndolTests/A.swift", "// A\ntry await Task.sleep(for: .seconds(1))\n", line: 2),
      innocent: [
        Sample("Tests/OndolTests/A.swift", "// no usleep(1)\nlet asleep = rest(1)\n"),
        Sample(outages, "// A\ntry await Task.sleep(for: .seconds(1))\n"),
      ]
    ) { file, _ in
      guard file.isIn("Tests/"), file.path != outages else { return [] }
      return file.findings(
        of: /\bTask\s*\.\s*sleep\b|\bu?sleep\s*\(|\bnanosleep\s*\(/,
        "wait for the event itself, not for time to pass")
    },

    Rule(
      "Public prose is English, and not translated thinking",
      planted: Sample("README.md", "One\nWhoever asks gets an answer.\n", line: 2),
      innocent: [
        Sample("Docs/Guarantees.md", "When upkeep falls behind, it says `read it anew`.\n"),
        Sample("Docs/Decisions/0001-a.md", "It was written anew.\n"),
      ]
    ) { file, _ in
      guard file.isPublicProse else { return [] }
      let pattern = outdatedWords
      return file.lines.indices.filter { prose(file.lines[$0]).contains(pattern) }
        .map { file.finding(line: $0, "CONTRIBUTING.md says how else to put it") }
    },

    Rule(
      "No file names a path of one person's machine",
      planted: Sample("Docs/A.md", "One\nSee /\("home")/someone/ondol.\n", line: 2),
      innocent: [Sample("Docs/A.md", "homework/1, `a/home/b`, /tmp/x and https://a.b/work/c\n")]
    ) { file, _ in
      let pattern = machinePath
      return file.lines.indices.filter { file.lines[$0].contains(pattern) }
        .map { file.finding(line: $0, "this path exists on one machine only") }
    },
  ]

  /// The owner of all background tasks, which waits for them when the database is closed.
  private static let backgroundTasks = "Sources/OndolEngine/System/BackgroundTasks.swift"

  // Built from pieces, so that this file keeps its own rules.
  private static var postponement: Regex<AnyRegexOutput> {
    pattern("\\b(?:TO" + "DO|FIX" + "ME|X" + "XX)\\b")
  }

  /// Ten words that the rules of prose name.
  private static var outdatedWords: Regex<AnyRegexOutput> {
    pattern(
      "(?i)\\b(?:behind|whoever|anew|in vain|in the place of|stands? in for|(?:is|are) told of"
        + "|shall|whereof|insofar)\\b")
  }

  /// A line without code, and without the legitimate uses of "behind".
  private static func prose(_ line: String) -> String {
    line.replacing(/`[^`]*`/, with: "")
      .replacing(
        /\b(?:falls?|fell|lags?|left|nothing|is|are) behind\b|\bbehind an? \w+/, with: "")
  }

  private static var machinePath: Regex<AnyRegexOutput> {
    pattern("(?:^|[\\s\"'`(=])/(?:home|Users|root|work|mnt)" + "/")
  }
}

extension SourceFile {
  /// Whether it is prose for people who use Ondol.
  fileprivate var isPublicProse: Bool {
    guard path.hasSuffix(".md") else { return false }
    return path == "README.md" || path.contains(".docc/")
      // Decisions stay as they were made, and figures as they were printed.
      || path.hasPrefix("Docs/") && !path.hasPrefix("Docs/Decisions/")
        && path != "Docs/Measurements.md"
  }

  fileprivate var mayBeUnsafe: Bool {
    let engine = "Sources/OndolEngine/"
    return isIn("\(engine)Bytes/", "\(engine)System/", "\(engine)Blocks/")
      || isIn("\(engine)Memtables/") && (name.hasPrefix("Memtable") || name.contains("Arena"))
      || isIn("\(engine)Views/") && ["ViewTable.swift", "InterleavedLookup.swift"].contains(name)
      || isIn("Sources/OndolInspect/Shell/") && name.hasPrefix("Terminal")
      || isIn("Sources/OndolPostgres/Wire/")
      || path == "Sources/OndolSync/NetworkMonitor.swift"
      || path == "Sources/OndolConsole/Assets.swift"
      || path == "Sources/OndolInspect/Template/TemplateFiles.swift"
  }

  /// True if a plain comment is within three lines of line `index`.
  fileprivate func hasComment(around index: Int) -> Bool {
    lines[max(0, index - 3)...min(lines.count - 1, index + 3)].contains { line in
      line.contains("//") && !line.contains("///")
    }
  }
}
