// The permitted imports. The compiler keeps the targets apart, but it does not know which folder of
// a target may call the system.

extension Rule {
  static let imports = [
    Rule(
      "OndolEngine imports neither Ondol nor Foundation",
      planted: Sample(
        "Sources/OndolEngine/A.swift", "// A\nimport FoundationEssentials\n", line: 2),
      innocent: [
        Sample("Sources/OndolEngine/A.swift", "// import Foundation\nimport Synchronization\n"),
        Sample("Sources/Ondol/A.swift", "import FoundationEssentials\n"),
      ]
    ) { file, _ in
      guard file.isIn("Sources/OndolEngine/") else { return [] }
      return file.imports.filter { $0.module == "Ondol" || $0.module.contains("Foundation") }
        .map { file.finding(line: $0.line, "the engine must not import \($0.module)") }
    },

    Rule(
      "Ondol imports neither the C library nor the C targets",
      planted: Sample("Sources/Ondol/A.swift", "#if os(Linux)\n  import Musl\n#endif\n", line: 2),
      innocent: [Sample("Sources/OndolDemo/A.swift", "import OndolPlatform\n")]
    ) { file, _ in
      guard file.isIn("Sources/Ondol/") else { return [] }
      return file.imports.filter {
        systemModules.contains($0.module) || cTargets.contains($0.module)
      }
      .map { file.finding(line: $0.line, "the upper floor must not import \($0.module)") }
    },

    Rule(
      "Inside OndolEngine only System/ and the guard import the C library",
      planted: Sample(
        "Sources/OndolEngine/Log/A.swift", "internal import OndolPlatform\n", line: 1),
      innocent: [
        Sample("Sources/OndolEngine/System/A.swift", "internal import OndolPlatform\n"),
        Sample("Sources/OndolEngine/Bytes/Guarded.swift", "import OndolPlatform\n"),
      ]
    ) { file, _ in
      guard file.isIn("Sources/OndolEngine/"), !file.isIn("Sources/OndolEngine/System/"),
        file.path != "Sources/OndolEngine/Bytes/Guarded.swift"
      else { return [] }
      return file.imports.filter { systemModules.contains($0.module) }
        .map { file.finding(line: $0.line, "\($0.module) belongs to System/") }
    },

    Rule(
      "Only OndolPlatform knows what the C library is called here",
      planted: Sample("Tests/SimulationTests/A.swift", "import Glibc\n", line: 1),
      innocent: [
        Sample("Sources/OndolPlatform/A.swift", "@_exported public import Glibc\n"),
        Sample("Tests/SimulationTests/A.swift", "import OndolPlatform\n"),
      ]
    ) { file, _ in
      guard !file.isIn("Sources/OndolPlatform/") else { return [] }
      return file.imports.filter {
        $0.module != "OndolPlatform" && systemModules.contains($0.module)
      }
      .map { file.finding(line: $0.line, "\($0.module) is called OndolPlatform") }
    },

    Rule(
      "Inside OndolEngine only Bytes/ and System/ import the C targets",
      planted: Sample(
        "Sources/OndolEngine/Segments/A.swift", "@preconcurrency import CLZ4\n", line: 1),
      innocent: [Sample("Sources/OndolEngine/Bytes/A.swift", "import COndol\n")]
    ) { file, _ in
      guard file.isIn("Sources/OndolEngine/"),
        !file.isIn("Sources/OndolEngine/System/", "Sources/OndolEngine/Bytes/")
      else { return [] }
      return file.imports.filter { cTargets.contains($0.module) }
        .map { file.finding(line: $0.line, "\($0.module) belongs to Bytes/ and System/") }
    },
  ]

  private static let systemModules: Set = ["Glibc", "Darwin", "Musl", "Android", "OndolPlatform"]
  private static let cTargets: Set = ["COndol", "COndolFiles", "CLZ4"]
}

extension SourceFile {
  /// The modules imported, with the line's index.
  fileprivate var imports: [(line: Int, module: String)] {
    code.indices.compactMap { index in
      let words = code[index].split { $0 == " " || $0 == "." }
      guard let place = words.firstIndex(of: "import"), place + 1 < words.count,
        words[..<place].allSatisfy({ importModifiers.contains(String($0)) || $0.hasPrefix("@") })
      else { return nil }
      let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let"]
      let named = words[(place + 1)...].first { !kinds.contains($0) }
      return named.map { (index, String($0)) }
    }
  }
}

private let importModifiers: Set = ["public", "package", "internal", "private", "fileprivate"]
