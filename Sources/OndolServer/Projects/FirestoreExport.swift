// Firestore's part of an export, as files: two of metadata, which name files of records, and the
// records, one for each document. Google documents neither; the numbers of the fields are those
// that exports of the emulator have.
//
//   NAME.overall_export_metadata   a log of two records: the text 3, and a message of
//                                  1 entry: 1 versions (1 and 3), 2 file, 3 documents, 4 bytes
//   …export_metadata               a message of 1 head: 1 name, 2 begin, 3 end
//                                  2 part: 1 namespace, 2 file beside this one
//   output-0                       a log of entities

#if Server
  import Ondol

  /// The files of Firestore's part.
  enum FirestoreExport {
    fileprivate static let marker = Array("3".utf8)
    fileprivate static let versions: [Int: UInt64] = [1: 2, 3: 3]
    /// The most bytes of a file of metadata.
    fileprivate static let mostMetadata = 16 << 20

    static let folder = "firestore_export"
    static let overall = "firestore_export/firestore_export.overall_export_metadata"
    static let kinds = "all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata"
    static let output = "output-0"

    /// The record of the overall metadata, which follows the marker.
    static func overallRecord(documents: Int, bytes: Int) -> [UInt8] {
      var writer = ProtocolWriter()
      writer.message(1) { entry in
        entry.message(1) { numbers in
          for (number, version) in versions.sorted(by: { $0.key < $1.key }) {
            numbers.write(number, Int64(version))
          }
        }
        entry.write(2, kinds)
        entry.write(3, Int64(documents))
        entry.write(4, Int64(bytes))
      }
      return writer.bytes
    }

    /// The overall metadata.
    static func overallBytes(documents: Int, bytes: Int) -> [UInt8] {
      var log = RecordLogWriter()
      _ = log.append(marker)
      _ = log.append(overallRecord(documents: documents, bytes: bytes))
      return log.bytes
    }

    /// The metadata of the only kind.
    ///
    /// - Parameter moment: when it is written, in microseconds since 1970.
    static func kindBytes(at moment: Int64) -> [UInt8] {
      var writer = ProtocolWriter()
      writer.message(1) { head in
        head.write(1, folder)
        head.write(2, moment)
        head.write(3, moment)
      }
      writer.message(2) { part in
        part.write(1, "")
        part.write(2, output)
      }
      return writer.bytes
    }
  }

  /// Reads the documents of an export, one after the other.
  struct FirestoreExportReader {
    private struct Entry {
      var documents: UInt64?
      /// The paths of the files.
      var files: [String]
      /// The file that named them.
      let metadata: String
    }

    private let folder: ProjectFolder
    private var entries: [Entry] = []
    private var current: RecordLogReader?
    private var count: UInt64 = 0

    /// - Parameters:
    ///   - folder: the export.
    ///   - metadata: the name of the overall metadata in it.
    init(_ folder: ProjectFolder, _ metadata: String) throws(ProjectFault) {
      self.folder = folder
      let parent = Self.parent(of: metadata)
      for (name, documents) in try Self.kinds(folder, metadata) {
        let name = try Self.file(parent + Self.plain(name), folder, metadata)
        var entry = Entry(documents: documents, files: [], metadata: folder.place(name))
        for part in try Self.parts(folder, name) {
          entry.files.append(
            folder.place(try Self.file(Self.parent(of: name) + part, folder, name)))
        }
        entries.append(entry)
      }
      entries.reverse()
    }

    /// The folder of a file, with a "/" at the end.
    private static func parent(of name: String) -> String {
      name.lastIndex(of: "/").map { String(name[...$0]) } ?? ""
    }

    /// On Windows, the emulator writes the paths of its system.
    private static func plain(_ name: String) -> String { name.replacing("\\", with: "/") }

    private static func file(
      _ name: String, _ folder: ProjectFolder, _ source: String
    ) throws(ProjectFault) -> String {
      guard ProjectFolder.isInside(name), folder.isFile(name) else {
        throw ProjectFault(folder.place(source), nil, "it names \(name), which is no file here")
      }
      return name
    }

    /// The next document, the offset of its record, and the record's file; nil at the end.
    mutating func next() throws(ProjectFault) -> (
      document: ExportedDocument, place: (String) -> ProjectFault
    )? {
      while !entries.isEmpty {
        let place = entries.count - 1
        if current == nil, !entries[place].files.isEmpty {
          current = try RecordLogReader(entries[place].files.removeFirst())
        }
        guard var reader = current else {
          let entry = entries.removeLast()
          guard entry.documents == nil || entry.documents == count else {
            throw ProjectFault(
              entry.metadata, nil,
              "there are \(count) documents, and \(entry.documents ?? 0) are announced")
          }
          count = 0
          continue
        }
        let record = try reader.next()
        current = record == nil ? nil : reader
        guard let record else { continue }
        count += 1
        let found = reader
        do throws(ProtocolFault) {
          return (try EntityReader.document(record), { found.fault(found.recordStart, $0) })
        } catch {
          throw found.fault(
            found.recordStart, "byte \(error.offset) of the record: \(error.reason)")
        }
      }
      return nil
    }

    // MARK: - Metadata

    /// The files of metadata that the overall metadata names, each with its number of documents.
    private static func kinds(
      _ folder: ProjectFolder, _ name: String
    ) throws(ProjectFault) -> [(name: String, documents: UInt64?)] {
      var log = try RecordLogReader(folder.place(name))
      guard try log.next() == FirestoreExport.marker, let record = try log.next() else {
        throw log.fault(0, "this is no metadata of an export")
      }
      do throws(ProtocolFault) {
        var found: [(String, UInt64?)] = []
        var reader = ProtocolFields(record[...])
        while let (number, field) = try reader.next() {
          guard case (1, .bytes(let bytes)) = (number, field) else {
            throw reader.fault("the metadata has the unknown field \(number)")
          }
          found.append(try entry(bytes))
        }
        return found
      } catch {
        throw log.fault(log.recordStart, "byte \(error.offset) of the record: \(error.reason)")
      }
    }

    private static func entry(
      _ bytes: ArraySlice<UInt8>
    ) throws(ProtocolFault) -> (String, UInt64?) {
      var reader = ProtocolFields(bytes)
      var (name, documents): (String?, UInt64?)
      while let (number, field) = try reader.next() {
        switch (number, field) {
        case (1, .bytes(let bytes)):
          var versions: [Int: UInt64] = [:]
          var fields = ProtocolFields(bytes)
          while let (number, field) = try fields.next() {
            if case .number(let version) = field { versions[number] = version }
          }
          guard versions == FirestoreExport.versions else {
            throw fields.fault("the export has an unknown version")
          }
        case (2, .bytes(let bytes)): name = String(validating: bytes, as: UTF8.self)
        case (3, .number(let number)): documents = number
        default: break
        }
      }
      guard let name else { throw reader.fault("an entry of the metadata names no file") }
      return (name, documents)
    }

    /// The files of records that a file of metadata names.
    private static func parts(
      _ folder: ProjectFolder, _ name: String
    ) throws(ProjectFault) -> [String] {
      let bytes = try folder.bytes(name, atMost: FirestoreExport.mostMetadata)
      do throws(ProtocolFault) {
        var found: [String] = []
        var reader = ProtocolFields(bytes[...])
        while let (number, field) = try reader.next() {
          switch (number, field) {
          case (1, .bytes): break
          case (2, .bytes(let part)): found.append(try Self.part(part))
          default: throw reader.fault("the metadata has the unknown field \(number)")
          }
        }
        return found
      } catch {
        throw ProjectFault(folder.place(name), "offset \(error.offset)", error.reason)
      }
    }

    private static func part(_ bytes: ArraySlice<UInt8>) throws(ProtocolFault) -> String {
      var reader = ProtocolFields(bytes)
      var name: String?
      while let (number, field) = try reader.next() {
        switch (number, field) {
        case (1, .bytes(let namespace)) where namespace.isEmpty: break
        case (2, .bytes(let bytes)): name = String(validating: bytes, as: UTF8.self)
        default: throw reader.fault("the export has a namespace of Datastore's")
        }
      }
      guard let name else { throw reader.fault("a part of the export names no file") }
      return plain(name)
    }
  }
#endif
