// The two halves of matching: a pattern's tree as a program, and a program's threads over a text.

struct RegularExpressionCompiler {
  /// Visits of the tree, so that nothing repeated very often costs a bounded time.
  private static let mostSteps = 20_000

  private var program: [RegularExpression.Instruction] = []
  private var steps = 0

  mutating func program(
    of tree: RegularExpressionTree
  ) throws(RegularExpressionError) -> [RegularExpression.Instruction] {
    try add(tree)
    try emit(.accept)
    return program
  }

  private mutating func add(_ tree: RegularExpressionTree) throws(RegularExpressionError) {
    steps += 1
    guard steps <= Self.mostSteps else { throw Self.tooLarge }
    switch tree {
    case .empty: break
    case .scalar(let scalar, let foldsCase):
      try emit(.scalar(foldsCase ? scalar.folded : scalar, foldsCase: foldsCase))
    case .any(let includesBreaks): try emit(.any(includesBreaks: includesBreaks))
    case .oneOf(let set): try emit(.oneOf(set))
    case .assert(let assertion): try emit(.assert(assertion))
    case .sequence(let items): for item in items { try add(item) }
    case .choice(let ways): try add(choice: ways)
    case .repeated(let item, let least, let most, let isLazy):
      for _ in 0..<least { try add(item) }
      guard let most else { return try add(loop: item, isLazy: isLazy) }
      try add(optional: item, upTo: most - least, isLazy: isLazy)
    }
  }

  private mutating func add(choice ways: [RegularExpressionTree]) throws(RegularExpressionError) {
    var ends: [Int] = []
    for (index, way) in ways.enumerated() {
      guard index < ways.count - 1 else {
        try add(way)
        break
      }
      let fork = try emit(.fork(0, 0))
      try add(way)
      ends.append(try emit(.jump(0)))
      program[fork] = .fork(fork + 1, program.count)
    }
    for end in ends { program[end] = .jump(program.count) }
  }

  private mutating func add(
    loop item: RegularExpressionTree, isLazy: Bool
  ) throws(RegularExpressionError) {
    let fork = try emit(.fork(0, 0))
    try add(item)
    try emit(.jump(fork))
    program[fork] = Self.fork(fork + 1, program.count, isLazy: isLazy)
  }

  /// Each repetition is within the one before it, so all skip to the end.
  private mutating func add(
    optional item: RegularExpressionTree, upTo count: Int, isLazy: Bool
  ) throws(RegularExpressionError) {
    var forks: [Int] = []
    for _ in 0..<count {
      forks.append(try emit(.fork(0, 0)))
      try add(item)
    }
    for fork in forks { program[fork] = Self.fork(fork + 1, program.count, isLazy: isLazy) }
  }

  private static func fork(_ inner: Int, _ outer: Int, isLazy: Bool)
    -> RegularExpression.Instruction
  {
    isLazy ? .fork(outer, inner) : .fork(inner, outer)
  }

  @discardableResult
  private mutating func emit(
    _ instruction: RegularExpression.Instruction
  ) throws(RegularExpressionError) -> Int {
    guard program.count < RegularExpression.mostInstructions else { throw Self.tooLarge }
    program.append(instruction)
    return program.count - 1
  }

  private static let tooLarge = RegularExpressionError(
    message: "the pattern needs more than \(RegularExpression.mostInstructions) instructions")
}

/// One text, and a program over it. The buffers serve all searches of the text.
struct RegularExpressionRun {
  /// A place in the program, and where in the text its match began.
  private struct Thread {
    var instruction: Int
    var start: Int
  }

  private let program: [RegularExpression.Instruction]
  private let text: [UInt32]
  private var threads: [Thread] = []
  private var following: [Thread] = []
  /// The last step that reached an instruction: the first thread there has the highest priority,
  /// and later ones could only do the same.
  private var reached: [Int]
  private var step = 0
  private var pending: [Int] = []

  init(program: [RegularExpression.Instruction], text: [UInt32]) {
    self.program = program
    self.text = text
    reached = Array(repeating: 0, count: program.count)
  }

  /// The leftmost match from `start` on, of those the one that the pattern prefers; or the match
  /// that reaches the text's end.
  mutating func match(
    from start: Int, isAnchored: Bool, isWhole: Bool, work: inout Int
  ) -> Range<Int>? {
    var found: Range<Int>?
    threads.removeAll(keepingCapacity: true)
    var position = start
    step += 1
    while work >= 0 {
      if found == nil, !isAnchored || position == start {
        follow(to: 0, start: position, at: position, isNext: false)
      }
      work -= threads.count + 1
      step += 1
      following.removeAll(keepingCapacity: true)
      for thread in threads {
        if case .accept = program[thread.instruction] {
          guard !isWhole || position == text.count else { continue }
          found = thread.start..<position
          break
        }
        if position < text.count, program[thread.instruction].takes(text[position]) {
          follow(
            to: thread.instruction + 1, start: thread.start, at: position + 1, isNext: true)
        }
      }
      swap(&threads, &following)
      position += 1
      if position > text.count || threads.isEmpty && (found != nil || isAnchored) { break }
    }
    return work >= 0 ? found : nil
  }

  /// Adds the instructions that are reached without a scalar, the preferred ones first.
  private mutating func follow(
    to instruction: Int, start: Int, at position: Int, isNext: Bool
  ) {
    pending.append(instruction)
    while let next = pending.popLast() {
      guard reached[next] != step else { continue }
      reached[next] = step
      switch program[next] {
      case .jump(let target): pending.append(target)
      case .fork(let first, let second):
        pending.append(second)
        pending.append(first)
      case .assert(let assertion):
        if assertion.holds(at: position, in: text) { pending.append(next + 1) }
      default:
        let thread = Thread(instruction: next, start: start)
        if isNext { following.append(thread) } else { threads.append(thread) }
      }
    }
  }
}
