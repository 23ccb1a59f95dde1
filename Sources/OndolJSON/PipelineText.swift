// Pipelines as people type them: stages with | between. The words are the stages' and functions'
// names; conditions read as those of `ondol query`. Expressions are in PipelineText+Expressions.

package import Ondol

/// Reads a pipeline.
package struct PipelineText {
  private let tokens: [(token: PipelineToken, position: Int)]
  private var place = 0
  private let length: Int
  /// Parentheses and functions within each other.
  var depth = 0

  package init(_ text: String) throws(PipelineTextError) {
    var scanner = PipelineScanner(text)
    tokens = try scanner.tokens()
    length = text.unicodeScalars.count
  }

  /// The stages of the whole text.
  package mutating func stages() throws(PipelineTextError) -> [PipelineStage] {
    let stages = try pipeline()
    guard peek == nil else { throw error("here a | or the end is needed") }
    return stages
  }

  private mutating func pipeline() throws(PipelineTextError) -> [PipelineStage] {
    var stages = [try source()]
    while take(sign: "|") { stages += try stage() }
    return stages
  }

  // MARK: - Words

  var peek: PipelineToken? { place < tokens.count ? tokens[place].token : nil }

  mutating func next() -> PipelineToken? {
    defer { place += 1 }
    return peek
  }

  mutating func take(sign: String) -> Bool {
    guard peek == .sign(sign) else { return false }
    place += 1
    return true
  }

  mutating func take(word: String) -> Bool {
    guard peek == .name(word) else { return false }
    place += 1
    return true
  }

  /// Whether a sign follows the next word.
  func isFollowed(by sign: String) -> Bool {
    place + 1 < tokens.count && tokens[place + 1].token == .sign(sign)
  }

  mutating func need(sign: String) throws(PipelineTextError) {
    guard take(sign: sign) else { throw error("here a \(sign) is needed") }
  }

  mutating func name(_ what: String) throws(PipelineTextError) -> String {
    guard case .name(let name)? = peek else { throw error("here \(what) is needed") }
    place += 1
    return name
  }

  private mutating func count() throws(PipelineTextError) -> Int {
    guard case .integer(let count)? = peek else { throw error("here a number is needed") }
    place += 1
    return count
  }

  func error(_ message: String) -> PipelineTextError {
    PipelineTextError(
      message: message, position: place < tokens.count ? tokens[place].position : length)
  }

  /// What a path or a collection cannot be is an error at its place.
  private func checked<Result>(
    _ body: () throws(DatabaseError) -> Result
  ) throws(PipelineTextError) -> Result {
    do throws(DatabaseError) {
      return try body()
    } catch {
      throw self.error(error.message)
    }
  }

  /// Reads items with commas between.
  private mutating func list<Item>(
    _ item: (inout PipelineText) throws(PipelineTextError) -> Item
  ) throws(PipelineTextError) -> [Item] {
    var items = [try item(&self)]
    while take(sign: ",") { items.append(try item(&self)) }
    return items
  }

  // MARK: - Stages

  private mutating func source() throws(PipelineTextError) -> PipelineStage {
    if take(sign: "*") { return .database }
    let first = Self.unquoted(try name("a collection"))
    if first == "group", case .name(let id)? = peek {
      place += 1
      return .collectionGroup(Self.unquoted(id))
    }
    return .collection(try checked { () throws(DatabaseError) in try CollectionPath(first) })
  }

  /// A collection in backquotes is what is between them.
  private static func unquoted(_ name: String) -> String {
    guard name.hasPrefix("`"), name.hasSuffix("`"), name.count > 1 else { return name }
    return String(name.dropFirst().dropLast())
  }

  private mutating func stage() throws(PipelineTextError) -> [PipelineStage] {
    let word = try name("a stage")
    switch word {
    case "where": return [.filter(try expression())]
    case "select":
      return [.select(try list { (text) throws(PipelineTextError) in try text.column() })]
    case "add":
      return [.addFields(try list { (text) throws(PipelineTextError) in try text.column() })]
    case "remove":
      return [
        .removeFields(
          try list { (text) throws(PipelineTextError) in
            PipelineField(FieldPath(try text.name("a field")))
          })
      ]
    case "replace": return [.replaceWith(try expression(), .fullReplace)]
    case "sort": return [.sort(try orders())]
    case "offset": return [.offset(try count())]
    case "limit": return [.limit(try count())]
    case "aggregate": return [try aggregate()]
    case "distinct":
      return [.distinct(try list { (text) throws(PipelineTextError) in try text.column() })]
    case "unnest": return [try unnest()]
    case "union":
      try need(sign: "(")
      try enter()
      let other = try pipeline()
      depth -= 1
      try need(sign: ")")
      return [.union(other)]
    case "sample":
      let count = try count()
      return [.sample(take(sign: "%") ? .share(Double(count) / 100) : .rows(count))]
    case "search": return [try search()]
    case "lookup": return [try lookup()]
    case "window": return [try window()]
    default:
      place -= 1
      throw error("\"\(word)\" is no stage")
    }
  }

  /// Throws when parentheses are nested too deep for a stack.
  mutating func enter() throws(PipelineTextError) {
    depth += 1
    guard depth <= 50 else { throw error("parentheses are nested more than 50 deep") }
  }

  /// A field, or `name = expression`.
  private mutating func column() throws(PipelineTextError) -> AliasedExpression {
    let name = try name("a column")
    if take(sign: "=") {
      return AliasedExpression(name: name, expression: try expression())
    }
    return Field(FieldPath(name)).pipelineSelection
  }

  private mutating func orders() throws(PipelineTextError) -> [PipelineOrdering] {
    try list { (text) throws(PipelineTextError) in
      let expression = try text.expression()
      let descending = text.take(word: "desc")
      if !descending { _ = text.take(word: "asc") }
      return PipelineOrdering(expression, descending: descending)
    }
  }

  /// `n = count(), mean = average(rating) by genre, year`.
  private mutating func aggregate() throws(PipelineTextError) -> PipelineStage {
    let aggregates = try list { (text) throws(PipelineTextError) in
      let name = try text.name("the name of an aggregate")
      try text.need(sign: "=")
      let function = try text.name("an aggregate")
      try text.need(sign: "(")
      let operand = text.peek == .sign(")") ? nil : try text.expression()
      try text.need(sign: ")")
      return AliasedAggregate(
        name: name, aggregate: .function(Self.aggregateName(function), operand))
    }
    return .aggregate(aggregates, groups: try groups())
  }

  private static func aggregateName(_ word: String) -> String {
    ["avg": "average", "mean": "average", "min": "minimum", "max": "maximum"][word] ?? word
  }

  private mutating func groups() throws(PipelineTextError) -> [AliasedExpression] {
    guard take(word: "by") else { return [] }
    return try list { (text) throws(PipelineTextError) in try text.column() }
  }

  /// `tags as tag index place`.
  private mutating func unnest() throws(PipelineTextError) -> PipelineStage {
    let field = try name("a field")
    let alias = take(word: "as") ? try name("a name") : field
    let index = take(word: "index") ? try name("a name") : nil
    return .unnest(
      AliasedExpression(name: alias, expression: Field(FieldPath(field)).pipelineExpression),
      indexField: index)
  }

  /// `"words" in title, body`.
  private mutating func search() throws(PipelineTextError) -> PipelineStage {
    guard case .text(let words)? = peek else { throw error("here a text of words is needed") }
    place += 1
    let fields =
      take(word: "in")
      ? try list { (text) throws(PipelineTextError) in FieldPath(try text.name("a field")) } : []
    return .search(PipelineSearch(text: words, fields: fields, limit: nil, scoreField: nil))
  }

  /// `author as who` by reference, or `in authors where id = author as who`.
  private mutating func lookup() throws(PipelineTextError) -> PipelineStage {
    let match: PipelineLookup.Match
    if take(word: "in") {
      let path = Self.unquoted(try name("a collection"))
      let collection = try checked { () throws(DatabaseError) in try CollectionPath(path) }
      guard take(word: "where") else { throw error("here where is needed") }
      let field = PipelineField(FieldPath(try name("a field")))
      guard take(sign: "=") || take(sign: "==") else { throw error("here = is needed") }
      match = .equal(collection, field, try expression())
    } else {
      match = .reference(try expression())
    }
    guard take(word: "as") else { throw error("here as is needed, and a name") }
    return .lookup(PipelineLookup(match: match, name: try name("a name")))
  }

  /// `place = rank(), sum = running_sum(price) by genre sort price desc`.
  private mutating func window() throws(PipelineTextError) -> PipelineStage {
    let windows = try list { (text) throws(PipelineTextError) in
      let name = try text.name("the name of a window")
      try text.need(sign: "=")
      return try text.windowFunction().as(name)
    }
    let groups = try groups().map(\.expression)
    return .window(windows, groups: groups, orders: take(word: "sort") ? try orders() : [])
  }

  private mutating func windowFunction() throws(PipelineTextError) -> PipelineWindow {
    let function = try name("a window")
    try need(sign: "(")
    let operand = peek == .sign(")") ? nil : try expression()
    let rows = take(sign: ",") ? try count() : 1
    try need(sign: ")")
    switch (function, operand) {
    case ("row_number", nil): return .rowNumber()
    case ("rank", nil): return .rank()
    case ("dense_rank", nil): return .denseRank()
    case ("running_sum", let operand?): return .runningSum(operand)
    case ("total", let operand?): return .total(operand)
    case ("lag", let operand?): return .lag(operand, rows: rows)
    default:
      throw error(
        "windows are row_number(), rank(), dense_rank(), running_sum(x), total(x) and lag(x, 1)")
    }
  }
}
