// The files of a project of Firebase's or of an export, below one folder. People edit the former by
// hand and download the latter, so a file is read up to a limit, a name in it leads to no other
// folder, and every mistake is named with its file and its place.

#if Server
  import Foundation
  import Ondol
  import OndolJSON

  /// What is wrong with a file of a project or of an export, and where.
  package struct ProjectFault: Error, Sendable, CustomStringConvertible {
    /// The file's path.
    package let file: String
    /// The key, the line or the offset in it; nil for the file as a whole.
    package let place: String?
    package let reason: String

    init(_ file: String, _ place: String? = nil, _ reason: String) {
      self.file = file
      self.place = place
      self.reason = reason
    }

    package var description: String { "\(file): \(place.map { "\($0): " } ?? "")\(reason)" }
  }

  /// A folder with files to read.
  struct ProjectFolder: Sendable {
    /// The largest file of JSON, in bytes: the tree of a database is one.
    static let mostBytes = 512 << 20

    let path: String

    /// The path of a file.
    func place(_ name: String) -> String { path.hasSuffix("/") ? path + name : "\(path)/\(name)" }

    func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: place(name)) }

    /// Whether there is a file of that name, and no link to one elsewhere.
    func isFile(_ name: String) -> Bool {
      let attributes = try? FileManager.default.attributesOfItem(atPath: place(name))
      return attributes?[.type] as? FileAttributeType == .typeRegular
    }

    /// The bytes of a file; nil when there is none.
    func size(of name: String) -> Int? {
      let attributes = try? FileManager.default.attributesOfItem(atPath: place(name))
      return (attributes?[.size] as? NSNumber)?.intValue
    }

    /// The names of the files in a folder, in order.
    ///
    /// - Parameter isDeep: whether those of folders in it are also named, with their paths.
    func names(in folder: String, isDeep: Bool = false) throws(ProjectFault) -> [String] {
      let files = FileManager.default
      do {
        let names =
          try isDeep
          ? files.subpathsOfDirectory(atPath: place(folder))
          : files.contentsOfDirectory(atPath: place(folder))
        return names.filter { isFile("\(folder)/\($0)") }.sorted()
      } catch {
        throw ProjectFault(place(folder), nil, "it cannot be read: \(error.localizedDescription)")
      }
    }

    /// Whether a name stays below the folder.
    static func isInside(_ name: String) -> Bool {
      !name.isEmpty && !name.utf8.contains(0)
        && name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
          .allSatisfy { part in
            !part.isEmpty && !part.elementsEqual(".".utf8) && !part.elementsEqual("..".utf8)
          }
    }

    /// The bytes of a file.
    func bytes(_ name: String, atMost limit: Int = mostBytes) throws(ProjectFault) -> [UInt8] {
      let file = place(name)
      guard let handle = FileHandle(forReadingAtPath: file) else {
        throw ProjectFault(file, nil, "it cannot be read")
      }
      defer { try? handle.close() }
      do {
        let data = try handle.read(upToCount: limit + 1) ?? Data()
        guard data.count <= limit else {
          throw ProjectFault(file, nil, "it has more than \(limit >> 20) MiB")
        }
        return Array(data)
      } catch let fault as ProjectFault {
        throw fault
      } catch {
        throw ProjectFault(file, nil, "it cannot be read: \(error.localizedDescription)")
      }
    }

    /// The value of a file of JSON.
    ///
    /// - Parameter hasComments: whether `//` and `/* */` are comments in it.
    func json(_ name: String, hasComments: Bool = false) throws(ProjectFault) -> Value {
      var bytes = try bytes(name)
      if hasComments { Self.blankComments(in: &bytes) }
      do throws(JSONError) {
        return try JSONReader.read(bytes, .plain, numbers: .double)
      } catch {
        let before = bytes.prefix(max(0, error.column - 1))
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let column = before.reversed().prefix { $0 != UInt8(ascii: "\n") }.count + 1
        throw ProjectFault(place(name), "\(line):\(column)", "this is not JSON: \(error.reason)")
      }
    }

    /// Replaces comments by spaces, so that everything else keeps its place.
    private static func blankComments(in bytes: inout [UInt8]) {
      var index = 0
      func has(_ first: Character, _ second: Character, at place: Int) -> Bool {
        place + 1 < bytes.count && bytes[place] == first.asciiValue
          && bytes[place + 1] == second.asciiValue
      }
      while index < bytes.count {
        if bytes[index] == UInt8(ascii: "\"") {
          index += 1
          while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
          }
          index += 1
        } else if has("/", "/", at: index) {
          while index < bytes.count, bytes[index] != UInt8(ascii: "\n") {
            bytes[index] = 0x20
            index += 1
          }
        } else if has("/", "*", at: index) {
          var end = index + 2
          while end < bytes.count, !has("*", "/", at: end) { end += 1 }
          // A comment without an end stays, and is a mistake of the JSON.
          guard end < bytes.count else { return }
          for place in index..<end + 2 where bytes[place] != UInt8(ascii: "\n") {
            bytes[place] = 0x20
          }
          index = end + 2
        } else {
          index += 1
        }
      }
    }
  }
#endif
