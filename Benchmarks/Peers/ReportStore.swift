// The reports of the pipelines suite: their SQL, which SQLite and DuckDB both read, and the calls
// that a measured store must support.

/// A question about all sales.
package enum Report: String, CaseIterable, Sendable {
  case filterAndCount = "filter and count"
  case groupByTen = "group by 10"
  case groupByThousands = "group by 10,000"
  case groupByMany = "group by half"
  case groupByTwo = "group by two"
  case topOfGroup = "top 10 of each group"
  case join = "join by reference"
  case distinct
  case unnest = "unnest and count"
  case pattern = "regular expression"
  case share = "share of a total"

  /// - Parameters:
  ///   - column: where a field is.
  ///   - elements: a table of the elements of an array, in a column `value`.
  ///   - matches: whether a text has a part that an expression describes; nil without such a
  ///     function.
  /// - Returns: nil for a report that the engine cannot answer.
  package func sql(
    _ column: (String) -> String, elements: (String) -> String,
    matches: ((String, String) -> String)? = nil
  ) -> String? {
    let (kind, price, city) = (column("kind"), column("price"), column("city"))
    switch self {
    case .filterAndCount:
      return "SELECT count(*) FROM sales WHERE \(price) > 500 AND \(city) = 'city 7'"
    case .groupByTen: return "SELECT \(kind), count(*), avg(\(price)) FROM sales GROUP BY 1"
    case .groupByThousands:
      return "SELECT \(column("customer")), sum(\(column("amount"))) FROM sales GROUP BY 1"
    case .groupByMany: return "SELECT \(column("session")), count(*) FROM sales GROUP BY 1"
    case .groupByTwo: return "SELECT \(kind), \(city), sum(\(price)) FROM sales GROUP BY 1, 2"
    case .topOfGroup:
      let amount = column("amount")
      return """
        SELECT kind, amount FROM (SELECT \(kind) AS kind, \(amount) AS amount,
        row_number() OVER (PARTITION BY \(kind) ORDER BY \(amount) DESC) AS place FROM sales)
        AS ranked WHERE place <= 10
        """
    case .join:
      return """
        SELECT country, count(*) FROM sales JOIN sellers ON sellers.number = \(column("seller"))
        GROUP BY 1
        """
    case .distinct: return "SELECT DISTINCT \(city), \(column("day")) FROM sales"
    case .unnest:
      return "SELECT value, count(*) FROM sales, \(elements(column("tags"))) GROUP BY 1"
    case .pattern:
      guard let matches else { return nil }
      return "SELECT count(*) FROM sales WHERE \(matches(column("title"), Self.expression))"
    case .share:
      return """
        SELECT kind, count(*) FROM (SELECT \(kind) AS kind, \(price) AS price,
        sum(\(price)) OVER (PARTITION BY \(kind)) AS total FROM sales) AS shares
        WHERE price / total * 100000.0 > 1.5 GROUP BY 1
        """
    }
  }

  /// What the texts of `pattern` match.
  package static let expression = "^(lamp|oak table) no\\. 7.*[13579]$"
}

/// A measured store of sales, open in a directory of its own.
package protocol ReportStore: AnyObject, Sendable {
  static var name: String { get }
  /// The important settings in one line, for the reader of the table.
  static var settings: String { get }

  /// Opens the store in the existing directory. Commits survive the kill of the process.
  static func open(_ directory: String) async throws -> Self
  /// Stores so many sales, and their sellers.
  func load(_ count: Int) async throws
  /// Reads every column of a report's rows; nil when the engine cannot answer it.
  ///
  /// - Parameter hashes: whether the rows are also hashed, which is not timed.
  func answer(_ report: Report, hashes: Bool) async throws -> ReportAnswer?
  func close() async throws
}

/// The rows of an answer, added up.
package struct ReportAnswer: Sendable {
  /// A number that depends on all columns, so that they are read.
  package var seen = 0
  /// The sum of the rows' FNV-1a hashes, which does not depend on the order of rows.
  package private(set) var checksum: UInt64 = 0

  package init() {}

  /// Adds a row: whole numbers are written as such, all others with four digits.
  package mutating func add(_ columns: [String]) {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in columns.joined(separator: "|").utf8 {
      hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
    }
    checksum &+= hash
  }
}
