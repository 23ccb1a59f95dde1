// Finds the blocks that match a path, and evaluates their allows until one holds. The path of a
// proof has unknown segments. A block then counts if it matches whatever they are, and the walk
// records that other blocks might match.

#if Server
  /// A part of a path.
  enum RulePathElement: Sendable {
    case known(String)
    /// Exactly one segment.
    case segment
    /// Any number of segments, or none.
    case segments
  }

  struct RuleWalk {
    let path: [RulePathElement]
    /// The smallest number of segments of `{x=**}`.
    let leastRest: Int
    var evaluation: RuleEvaluation

    /// The allows that apply to the request, and their results.
    private(set) var considered: [(allow: RuleAllow, outcome: RuleVerdict.Considered.Outcome)] = []
    private(set) var isAllowed = false
    /// Whether a decision remained open.
    private(set) var isOpen = false
    /// Whether a limit ended the walk.
    private var isStopped = false
    private var stepsLeft = RuleSet.mostMatchingSteps

    init(path: [RulePathElement], leastRest: Int, evaluation: RuleEvaluation) {
      self.path = path
      self.leastRest = leastRest
      self.evaluation = evaluation
    }

    /// Evaluates the blocks of a service.
    mutating func visit(_ matches: [RuleMatch]) { visit(matches, at: 0) }

    private var isDone: Bool { isAllowed || isStopped }

    private mutating func visit(_ matches: [RuleMatch], at position: Int) {
      for match in matches where !isDone { visit(match, from: 0, at: position) }
    }

    /// Matches the segments of a block from `index` on with the path from `position` on.
    private mutating func visit(_ match: RuleMatch, from index: Int, at position: Int) {
      stepsLeft -= 1
      guard stepsLeft > 0 else {
        isStopped = true
        isOpen = true
        return
      }
      guard index < match.segments.count else { return finish(match, at: position) }
      let element = position < path.count ? path[position] : nil
      switch match.segments[index] {
      case .literal(let text):
        guard let element else { return }
        guard case .known(let segment) = element else { return isOpen = true }
        if isExactly(text, segment) { visit(match, from: index + 1, at: position + 1) }
      case .single(let slot):
        switch element {
        case nil: return
        case .known(let segment): bind(slot, .string(segment))
        case .segment: bind(slot, .unknown(.anything))
        case .segments: return isOpen = true
        }
        visit(match, from: index + 1, at: position + 1)
      case .rest(let slot): rest(match, slot, from: index + 1, at: position)
      }
    }

    private mutating func rest(
      _ match: RuleMatch, _ slot: Int, from index: Int, at position: Int
    ) {
      // Nothing follows in the block, so only the whole rest of the path matches.
      let isLast = index == match.segments.count && match.matches.isEmpty
      for end in (isLast ? path.count : position)...path.count where !isDone {
        let elements = path[position..<end]
        guard elements.count(where: \.isOne) >= leastRest else {
          if elements.count >= leastRest { isOpen = true }
          continue
        }
        let known = elements.compactMap { if case .known(let text) = $0 { text } else { nil } }
        bind(slot, known.count == elements.count ? .path(known) : .unknown(.anything))
        visit(match, from: index, at: end)
      }
    }

    /// Wildcards are numbered from the outside in, so those above `slot` belong to another way.
    private mutating func bind(_ slot: Int, _ value: RuleValue) {
      if evaluation.captures.count > slot {
        evaluation.captures.removeLast(evaluation.captures.count - slot)
      }
      evaluation.captures.append(value)
    }

    private mutating func finish(_ match: RuleMatch, at position: Int) {
      if position == path.count {
        let captures = evaluation.captures
        for allow in match.allows
        where !isDone && allow.methods.isSuperset(of: evaluation.request.method) {
          ask(allow)
        }
        evaluation.captures = captures
      }
      visit(match.matches, at: position)
    }

    private mutating func ask(_ allow: RuleAllow) {
      do throws(RuleFailure) {
        switch try allow.condition.map({ condition throws(RuleFailure) in
          try evaluation.holds(condition)
        }) ?? true {
        case true?:
          isAllowed = true
          considered.append((allow, .held))
        case false?: considered.append((allow, .didNotHold))
        case nil: isOpen = true
        }
      } catch {
        considered.append((allow, .failed(error)))
        if error.isFinal {
          isStopped = true
          isOpen = true
        }
      }
    }
  }

  extension RulePathElement {
    /// Whether it is certainly one segment.
    fileprivate var isOne: Bool { if case .segments = self { false } else { true } }
  }
#endif
