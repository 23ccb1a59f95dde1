// The requirements of the language itself on the systems. They have no symbol, so the index of a
// build, which SystemTests reads, does not show them.

extension Rule {
  static let systems = [
    Rule(
      "No deinitialiser is isolated: macOS 15.4 and iOS 18.4",
      planted: Sample("Sources/Ondol/A.swift", "actor A {\n  isolated deinit {}\n}\n", line: 2),
      innocent: [
        Sample("Sources/Ondol/A.swift", "actor A {\n  deinit {}\n}\n// isolated deinit\n")
      ]
    ) { file, _ in
      file.findings(of: /\bisolated\s+deinit\b/, "systems of the manifest lack it")
    },

    Rule(
      "No type has a number as a parameter: macOS 26 and iOS 26",
      planted: Sample("Sources/Ondol/A.swift", "struct A<T, let count: Int> {}\n", line: 1),
      innocent: [
        Sample("Sources/Ondol/A.swift", "struct A<T> {\n  let count: Int\n}\n"),
        Sample("Sources/Ondol/A.swift", "if a < b, let c: D = d { e(c) }\n"),
      ]
    ) { file, _ in
      file.findings(
        of: /<(?:[^\s<>(){}=][^<>(){}=]*,\s*)?let\s+\w+\s*:/,
        "systems of the manifest lack it")
    },
  ]
}
