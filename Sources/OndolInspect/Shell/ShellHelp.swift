// The help texts of commands, adapted to the shell: there the program's name is not typed and the
// database is known.

/// Help and usage without the database and the program's name.
enum ShellHelp {
  private static let place = "<place>"

  /// The text of a command's help or of a usage error.
  static func adapted(_ text: String) -> String {
    var lines: [String] = []
    var isPlace = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      // A description continues on lines with a deeper indentation.
      if line.hasPrefix("  \(place)") || line.hasPrefix("Help:  \(place)") {
        isPlace = true
        continue
      }
      if isPlace, line.hasPrefix("   ") { continue }
      isPlace = false
      lines.append(withoutNames(line))
    }
    if let heading = lines.firstIndex(of: "ARGUMENTS:"), heading + 1 < lines.count,
      lines[heading + 1].isEmpty
    {
      lines.removeSubrange(heading...(heading + 1))
    }
    return lines.joined(separator: "\n")
  }

  private static func withoutNames(_ line: Substring) -> String {
    for start in ["USAGE: ", "Usage: "] where line.hasPrefix(start + "ondol ") {
      return start + line.dropFirst(start.count + "ondol ".count).replacing(" \(place)", with: "")
    }
    if line.hasPrefix("  See 'ondol ") {
      let command = line.dropFirst("  See 'ondol ".count).prefix { $0 != "'" }
      let name = command.replacing("--help", with: "").split(separator: " ").joined(separator: " ")
      return "  See 'help\(name.isEmpty ? "" : " \(name)")' for more information."
    }
    return String(line)
  }
}
