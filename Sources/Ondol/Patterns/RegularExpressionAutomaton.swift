// A regular expression as an automaton that is made while texts run through it: a state is the set
// of instructions that a program's threads have reached, and what follows it for a scalar of ASCII
// is looked up once. So whether a text matches costs a step in a table for each of its bytes. Where
// it matches is for RegularExpressionRun, which knows the priorities of threads.

internal import OndolEngine

/// Whether texts match one pattern. Not thread-safe: it learns from each text.
struct RegularExpressionAutomaton {
  private struct State {
    /// Instructions that wait for a scalar, sorted.
    var threads: [Int]
    /// Whether the pattern has matched here, or does if the text ends here.
    var accepts: Bool
    var acceptsAtEnd: Bool
  }

  private let program: [RegularExpression.Instruction]
  private let isWhole: Bool
  private var states: [State] = []
  private var places: [[Int]: Int] = [:]
  /// For each state those that follow a scalar of ASCII; `unknown` where that was not asked yet.
  private var following: [Int32] = []
  /// The state before the first scalar.
  private var start = 0

  private static let unknown: Int32 = -1
  /// Scalars of ASCII.
  private static let width = 128
  /// States beyond which all are forgotten.
  private static let mostStates = 256

  /// Nil when a condition on a place needs more than whether it is the first or the last one.
  ///
  /// - Parameter isWhole: whether the pattern must match the whole text, or a part.
  init?(_ pattern: RegularExpression, isWhole: Bool) {
    for case .assert(let assertion) in pattern.program {
      switch assertion {
      case .textStart, .textEnd: continue
      default: return nil
      }
    }
    program = pattern.program
    self.isWhole = isWhole
    begin()
  }

  private mutating func begin() {
    states.removeAll()
    places.removeAll()
    following.removeAll()
    start = add(seeds: [0], isAtStart: true)
  }

  /// States that are kept.
  var stateCount: Int { states.count }

  /// Whether the text matches.
  ///
  /// - Parameter work: the steps that are left, of which each thread takes one for a scalar, as in
  ///   RegularExpressionRun; fewer than none afterwards when they did not suffice, and then the
  ///   answer is false.
  mutating func matches(_ text: RawSpan, work: inout Int) -> Bool {
    let octets = text.octets
    var (state, place) = (start, 0)
    while place < octets.count {
      if states[state].accepts, !isWhole { return true }
      work -= states[state].threads.count + 1
      guard work >= 0 else { return false }
      let octet = octets[place]
      if octet < 0x80 {
        let known = following[state * Self.width + Int(octet)]
        state = known == Self.unknown ? follow(state, UInt32(octet)) : Int(known)
        place += 1
      } else {
        let (scalar, length) = Self.scalar(octets, at: place)
        state = follow(state, scalar)
        place += length
      }
      // Nothing is left that could match.
      if isWhole, states[state].threads.isEmpty, place < octets.count { return false }
    }
    return states[state].acceptsAtEnd || !isWhole && states[state].accepts
  }

  /// The state after a scalar. It is kept for the next time if the scalar is one of ASCII.
  private mutating func follow(_ state: Int, _ scalar: UInt32) -> Int {
    var seeds: [Int] = []
    for thread in states[state].threads where program[thread].takes(scalar) {
      seeds.append(thread + 1)
    }
    // A part may begin anywhere.
    if !isWhole { seeds.append(0) }
    if states.count > Self.mostStates {
      begin()
      return add(seeds: seeds, isAtStart: false)
    }
    let next = add(seeds: seeds, isAtStart: false)
    if scalar < Self.width { following[state * Self.width + Int(scalar)] = Int32(next) }
    return next
  }

  /// The state of threads that begin at these instructions.
  private mutating func add(seeds: [Int], isAtStart: Bool) -> Int {
    let (threads, accepts) = reached(from: seeds, isAtStart: isAtStart, isAtEnd: false)
    let (_, acceptsAtEnd) = reached(from: seeds, isAtStart: isAtStart, isAtEnd: true)
    let key = threads + [accepts ? 1 : 0, acceptsAtEnd ? 1 : 0]
    if let known = places[key] { return known }
    places[key] = states.count
    following += repeatElement(Self.unknown, count: Self.width)
    states.append(State(threads: threads, accepts: accepts, acceptsAtEnd: acceptsAtEnd))
    return states.count - 1
  }

  /// The instructions that wait for a scalar, and whether the pattern matches.
  private func reached(
    from seeds: [Int], isAtStart: Bool, isAtEnd: Bool
  ) -> (threads: [Int], accepts: Bool) {
    var pending = seeds
    var seen = Set<Int>()
    var (threads, accepts): ([Int], Bool) = ([], false)
    while let next = pending.popLast() {
      guard seen.insert(next).inserted else { continue }
      switch program[next] {
      case .jump(let target): pending.append(target)
      case .fork(let first, let second):
        pending.append(first)
        pending.append(second)
      case .assert(.textStart): if isAtStart { pending.append(next + 1) }
      case .assert: if isAtEnd { pending.append(next + 1) }
      case .accept: accepts = true
      case .scalar, .any, .oneOf: threads.append(next)
      }
    }
    return (threads.sorted(), accepts)
  }

  /// The scalar at a place of a text in UTF-8, and the number of its bytes.
  private static func scalar(_ octets: Span<UInt8>, at place: Int) -> (UInt32, Int) {
    let first = UInt32(octets[place])
    let length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2
    guard place + length <= octets.count else { return (0xfffd, octets.count - place) }
    var scalar = first & (0xff >> UInt32(length + 1))
    for index in 1..<length { scalar = scalar << 6 | UInt32(octets[place + index] & 0x3f) }
    return (scalar, length)
  }
}
