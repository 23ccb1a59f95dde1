// `firebase.json` and `.firebaserc`: what a project of Firebase's says of its emulators' ports, its
// rules and its name. `ondol serve --firebase DIR` serves such a project as its emulators would.
// The forms are those that firebase-tools reads:
// https://firebase.google.com/docs/cli#the_firebasejson_file. What can mean two things is a fault
// that names the file and the key.

#if Server
  import Foundation
  import Ondol
  import OndolMapping

  /// A project of Firebase's, as the files in its folder describe it.
  package struct FirebaseProject: Sendable {
    /// What a project may have a port for.
    package enum Emulator: String, Sendable, CaseIterable {
      case firestore, database, auth, storage

      /// The port of the emulator when the project names none.
      var usualPort: Int {
        switch self {
        case .firestore: 8080
        case .database: 9000
        case .auth: 9099
        case .storage: 9199
        }
      }
    }

    /// The ports of what the project wants served: the emulators that it names, or all of them if
    /// it names none.
    package private(set) var ports: [Emulator: Int] = [:]
    /// The rules of the project's files.
    package private(set) var rules = RulesTexts()
    /// The project's id; nil when the files do not say it.
    package private(set) var id: String?
    /// The emulators that the project names and the server does not have.
    package private(set) var unserved: [String] = []
    /// The fault of an address that is not this machine's; nil when there is none.
    private var foreign: ProjectFault?

    /// Emulators that serve people and not apps.
    private static let tools: Set = ["ui", "hub", "logging", "singleProjectMode"]
    private static let localNames: Set = ["localhost", "127.0.0.1", "::1"]
    private static let name = "firebase.json"

    /// Reads the files of a project.
    ///
    /// - Parameter path: the folder with `firebase.json`.
    /// - Throws: the first fault.
    package init(at path: String) throws(ProjectFault) {
      let folder = ProjectFolder(path: path)
      let settings = try folder.json(Self.name, hasComments: true)
      let file = folder.place(Self.name)
      guard let settings = settings.map else { throw ProjectFault(file, nil, "it is no object") }
      try readEmulators(settings["emulators"], file)
      try readRules(settings, folder)
      try readName(folder)
    }

    /// Throws when the project's emulators listen on other addresses than this machine's own. The
    /// server lets others in when it is told so where it starts, with what protects the database.
    package func checkIsLocal() throws(ProjectFault) {
      if let foreign { throw foreign }
    }

    // MARK: - Ports

    private mutating func readEmulators(_ value: Value?, _ file: String) throws(ProjectFault) {
      guard let value, !value.isNull else {
        for emulator in Emulator.allCases { ports[emulator] = emulator.usualPort }
        return
      }
      guard let emulators = value.map else {
        throw ProjectFault(file, "emulators", "it is no object")
      }
      for (name, value) in emulators.sorted(by: { $0.key < $1.key }) {
        guard let emulator = Emulator(rawValue: name) else {
          if !Self.tools.contains(name) { unserved.append(name) }
          continue
        }
        let key = "emulators.\(name)"
        guard let settings = value.map else { throw ProjectFault(file, key, "it is no object") }
        ports[emulator] = try Self.port(settings["port"], file, key) ?? emulator.usualPort
        try readHost(settings["host"], file, key)
      }
      let numbers = ports.values.filter { $0 != 0 }
      guard Set(numbers).count == numbers.count else {
        throw ProjectFault(file, "emulators", "two of them have the same port")
      }
    }

    private static func port(
      _ value: Value?, _ file: String, _ key: String
    ) throws(ProjectFault) -> Int? {
      guard let value, !value.isNull else { return nil }
      guard let number = value.integer, UInt16(exactly: number) != nil else {
        throw ProjectFault(file, "\(key).port", "a port is a number from 0 to 65535")
      }
      return Int(number)
    }

    private mutating func readHost(
      _ value: Value?, _ file: String, _ key: String
    ) throws(ProjectFault) {
      guard let value, !value.isNull else { return }
      guard let host = value.string else {
        throw ProjectFault(file, "\(key).host", "an address is a text")
      }
      guard !Self.localNames.contains(host), foreign == nil else { return }
      foreign = ProjectFault(
        file, "\(key).host",
        "\(host) may let other machines in; --listen says which address the server has")
    }

    // MARK: - Rules

    private mutating func readRules(
      _ settings: [String: Value], _ folder: ProjectFolder
    ) throws(ProjectFault) {
      let file = folder.place(Self.name)
      let documents = try Self.entries(settings["firestore"], file, "firestore")
      if let chosen = try Self.usual(documents, file), let name = try Self.rules(chosen, file) {
        let found = try Self.text(name, folder, chosen.key)
        rules.firestore = try Self.checked(found.firestore, name, folder, "Firestore")
      }
      if let (name, key) = try Self.only(settings["storage"], file, "storage") {
        let found = try Self.text(name, folder, key)
        rules.storage = try Self.checked(found.storage, name, folder, "Storage")
      }
      if let (name, key) = try Self.only(settings["database"], file, "database") {
        rules.database = try Self.text(name, folder, key, isOfTree: true).database
      }
    }

    /// An object of settings, and where it is.
    private typealias Entry = (key: String, fields: [String: Value])

    /// The objects at a key: one, or several in an array.
    private static func entries(
      _ value: Value?, _ file: String, _ key: String
    ) throws(ProjectFault) -> [Entry] {
      guard let value, !value.isNull else { return [] }
      if let fields = value.map { return [(key, fields)] }
      guard let elements = value.array else {
        throw ProjectFault(file, key, "it is neither an object nor an array of them")
      }
      var entries: [Entry] = []
      for (index, element) in elements.enumerated() {
        guard let fields = element.map else {
          throw ProjectFault(file, "\(key)[\(index)]", "it is no object")
        }
        entries.append(("\(key)[\(index)]", fields))
      }
      return entries
    }

    /// The settings of the database that is served, which is the one that clients find without a
    /// name.
    private static func usual(
      _ entries: [Entry], _ file: String
    ) throws(ProjectFault) -> Entry? {
      guard !entries.isEmpty else { return nil }
      let usual = entries.filter { entry in
        guard let name = entry.fields["database"] else { return entry.fields["target"] == nil }
        return name == .string(DatabaseName.usual)
      }
      guard usual.count == 1 else {
        throw ProjectFault(
          file, entries.count == 1 ? "\(entries[0].key).database" : "firestore",
          "\(usual.isEmpty ? "none" : "more than one") of the databases is \(DatabaseName.usual),"
            + " which the server has; --rules names rules")
      }
      return usual[0]
    }

    /// The file of rules that all entries have.
    private static func only(
      _ value: Value?, _ file: String, _ key: String
    ) throws(ProjectFault) -> (name: String, key: String)? {
      var found: (name: String, key: String)?
      for entry in try entries(value, file, key) {
        guard let name = try rules(entry, file) else { continue }
        guard found == nil || found?.name == name else {
          throw ProjectFault(
            file, key, "its parts have different rules, and the server has one; --rules names them")
        }
        found = found ?? (name, entry.key)
      }
      return found
    }

    private static func rules(_ entry: Entry, _ file: String) throws(ProjectFault) -> String? {
      guard let value = entry.fields["rules"], !value.isNull else { return nil }
      guard let name = value.string, !name.isEmpty else {
        throw ProjectFault(file, "\(entry.key).rules", "it is no name of a file")
      }
      return name
    }

    /// The rules of a file.
    private static func text(
      _ name: String, _ folder: ProjectFolder, _ key: String, isOfTree: Bool = false
    ) throws(ProjectFault) -> RulesTexts {
      let file = folder.place(Self.name)
      guard !name.hasPrefix("/"), folder.exists(name) else {
        throw ProjectFault(file, "\(key).rules", "\(name) is no file below \(folder.path)")
      }
      guard let text = String(validating: try folder.bytes(name), as: UTF8.self) else {
        throw ProjectFault(folder.place(name), nil, "it is not UTF-8")
      }
      var texts = RulesTexts()
      do throws(RulesFile.Problem) {
        try RulesFile(text, isOfTree: isOfTree).add(to: &texts)
      } catch {
        throw ProjectFault(folder.place(name), nil, "\(error)")
      }
      return texts
    }

    private static func checked(
      _ text: String?, _ name: String, _ folder: ProjectFolder, _ service: String
    ) throws(ProjectFault) -> String {
      guard let text else {
        throw ProjectFault(folder.place(name), nil, "it has no rules for \(service)")
      }
      return text
    }

    // MARK: - The name

    private mutating func readName(_ folder: ProjectFolder) throws(ProjectFault) {
      let name = ".firebaserc"
      guard folder.exists(name) else { return }
      let settings = try folder.json(name, hasComments: true)
      guard let value = settings["projects"]?["default"], !value.isNull else { return }
      guard let id = value.string, !id.isEmpty else {
        throw ProjectFault(folder.place(name), "projects.default", "it is no project's id")
      }
      self.id = id
    }
  }
#endif
