// The composition of a load, from a JSON file. Every member has a default, and an unknown member is
// refused by name, so that a typing mistake is not measured.

import ArgumentParser
import Foundation
import Ondol
import OndolTestKit

/// The operations on documents.
enum OperationKind: String, Sendable, Codable, CaseIterable, CodingKeyRepresentable {
  /// Reads a document.
  case get
  /// Writes a whole document.
  case put
  /// Writes a new document, after all others.
  case insert
  /// Writes one field of a document.
  case update
  /// Queries twenty documents by an indexed field.
  case query
  /// Queries consecutive documents, from a given one on.
  case scan
  /// Reads a document and writes one field of it, in a transaction.
  case transaction
  /// Deletes a document.
  case delete
  /// Listens to a document, updates it, and waits for the event.
  case listener
}

/// The durability of commits, as a word.
enum DurabilityName: String, Sendable, Codable, ExpressibleByArgument, CaseIterable {
  case memory, process, power

  var durability: Durability {
    switch self {
    case .memory: .memory
    case .process: .process
    case .power: .power
    }
  }
}

/// The bytes of a field: a number, or the bounds of a random one.
struct SizeRange: Sendable, Codable {
  var least: Int
  var most: Int

  init(_ size: Int) { (least, most) = (size, size) }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let single = try? container.decode(Int.self)
    let sizes = try single.map { [$0, $0] } ?? container.decode([Int].self)
    guard sizes.count == 2 else { throw ValidationError("a size is a number or two of them") }
    (least, most) = (sizes[0], sizes[1])
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode([least, most])
  }
}

/// A load.
struct Scenario: Sendable, Codable {
  var name = "load"
  /// The number of documents when the clock starts.
  var documents = 10_000
  /// The number of fields of a document, in addition to the queried ones.
  var fields = 10
  var fieldLength = SizeRange(100)
  var keys = KeyDistribution.zipfian
  /// The relative frequency of each operation.
  var operations: [OperationKind: Double] = [.get: 95, .update: 5]
  /// The rate of operations per second, regardless of answers; 0 for one after another.
  var rate: Double = 0
  /// The largest number of concurrent operations.
  var tasks = 4
  var seconds: Double = 10
  /// The number of operations that ends the run earlier; nil for no limit.
  var count: Int?
  /// The largest number of documents of a scan. The number is random.
  var scanLength = 100
  var durability = DurabilityName.process

  enum CodingKeys: String, CodingKey, CaseIterable {
    case name, documents, fields, fieldLength, keys, operations, rate, tasks, seconds, count
    case scanLength, durability
  }

  init() {}

  init(from decoder: any Decoder) throws {
    let known = Set(CodingKeys.allCases.map(\.rawValue))
    for key in try decoder.container(keyedBy: AnyKey.self).allKeys
    where !known.contains(key.stringValue) {
      throw ValidationError(
        "a scenario has no \"\(key.stringValue)\"; it may have "
          + known.sorted().joined(separator: ", ")
      )
    }
    let values = try decoder.container(keyedBy: CodingKeys.self)
    let standard = Scenario()
    func value<Value: Decodable>(_ key: CodingKeys, _ standard: Value) throws -> Value {
      try values.decodeIfPresent(Value.self, forKey: key) ?? standard
    }
    name = try value(.name, standard.name)
    documents = try value(.documents, standard.documents)
    fields = try value(.fields, standard.fields)
    fieldLength = try value(.fieldLength, standard.fieldLength)
    keys = try value(.keys, standard.keys)
    operations = try value(.operations, standard.operations)
    rate = try value(.rate, standard.rate)
    tasks = try value(.tasks, standard.tasks)
    seconds = try value(.seconds, standard.seconds)
    count = try values.decodeIfPresent(Int.self, forKey: .count)
    scanLength = try value(.scanLength, standard.scanLength)
    durability = try value(.durability, standard.durability)
  }

  /// Reads and validates a scenario's file.
  init(contentsOf path: String) throws {
    do {
      self = try JSONDecoder().decode(
        Scenario.self, from: try Data(contentsOf: URL(filePath: path)))
    } catch let error as DecodingError {
      throw ValidationError("\(path) is not a scenario: \(error)")
    } catch let error as ValidationError {
      throw error
    } catch {
      throw ValidationError("\(path) cannot be read: \(error.localizedDescription)")
    }
    try validate()
  }

  func validate() throws {
    let weights = operations.values
    guard weights.allSatisfy({ $0 >= 0 && $0.isFinite }), weights.contains(where: { $0 > 0 }) else {
      throw ValidationError("operations have weights from 0 on, one of them above it")
    }
    guard (1...100_000_000).contains(documents), (1...100).contains(fields),
      (1...10_000).contains(tasks), (1...100_000).contains(scanLength), rate >= 0, rate.isFinite,
      seconds > 0, seconds.isFinite, count ?? 1 > 0
    else {
      throw ValidationError("a number of the scenario is out of its range")
    }
    guard fieldLength.least >= 0, fieldLength.least <= fieldLength.most,
      fieldLength.most * fields <= 1 << 19
    else { throw ValidationError("a document has at most 512 KiB of fields") }
  }
}

/// Any field name of a JSON object.
private struct AnyKey: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(stringValue: String) { self.stringValue = stringValue }

  init?(intValue: Int) { nil }
}
