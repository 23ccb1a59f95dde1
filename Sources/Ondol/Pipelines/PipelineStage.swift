// A pipeline's stages as plain values, as the app, the server and the tool make them. A stage is
// checked when the pipeline is planned.

/// One stage of a pipeline.
package indirect enum PipelineStage: Sendable, Hashable {
  // Sources: the first stage, and only the first.
  case collection(CollectionPath)
  case collectionGroup(String)
  case database
  case documents([DocumentPath])
  case literals([[AliasedExpression]])
  // All others.
  case filter(PipelineExpression)
  case select([AliasedExpression])
  case addFields([AliasedExpression])
  case removeFields([PipelineField])
  case replaceWith(PipelineExpression, MapReplacement)
  case sort([PipelineOrdering])
  case offset(Int)
  case limit(Int)
  case aggregate([AliasedAggregate], groups: [AliasedExpression])
  case distinct([AliasedExpression])
  case unnest(AliasedExpression, indexField: String?)
  case union([PipelineStage])
  case sample(PipelineSample)
  case search(PipelineSearch)
  case findNearest(NearestSearch)
  case lookup(PipelineLookup)
  case window([AliasedWindow], groups: [PipelineExpression], orders: [PipelineOrdering])

  /// The stage's name in the protocol.
  var name: String {
    switch self {
    case .collection: "collection"
    case .collectionGroup: "collection_group"
    case .database: "database"
    case .documents: "documents"
    case .literals: "literals"
    case .filter: "where"
    case .select: "select"
    case .addFields: "add_fields"
    case .removeFields: "remove_fields"
    case .replaceWith: "replace_with"
    case .sort: "sort"
    case .offset: "offset"
    case .limit: "limit"
    case .aggregate: "aggregate"
    case .distinct: "distinct"
    case .unnest: "unnest"
    case .union: "union"
    case .sample: "sample"
    case .search: "search"
    case .findNearest: "find_nearest"
    case .lookup: "lookup"
    case .window: "window"
    }
  }

  /// Whether a pipeline begins with it.
  var isSource: Bool {
    switch self {
    case .collection, .collectionGroup, .database, .documents, .literals: true
    default: false
    }
  }
}

/// How `replaceWith` combines the map with the row.
public enum MapReplacement: String, Sendable, Hashable {
  /// The row becomes the map.
  case fullReplace = "full_replace"
  /// The row has the fields of both, and of a name in both the map's.
  case mergeOverwriting = "merge_overwrite_existing"
  /// The row has the fields of both, and of a name in both its own.
  case mergeKeeping = "merge_keep_existing"
}

/// Which rows `sample` keeps.
package enum PipelineSample: Sendable, Hashable {
  /// That many, each set of them as likely as any other.
  case rows(Int)
  /// Each row with this probability.
  case share(Double)
}

/// How far a vector is from another.
public enum DistanceMeasure: String, Sendable, Hashable {
  /// The length of the difference.
  case euclidean
  /// 1 less the cosine of the angle.
  case cosine
  /// The sum of the products; the greatest is the nearest.
  case dotProduct = "dot_product"
}

/// The rows whose vectors are nearest to one.
package struct NearestSearch: Sendable, Hashable {
  package var field: PipelineExpression
  package var vector: VectorValue
  package var measure: DistanceMeasure
  package var limit: Int?
  package var distanceField: String?

  package init(
    field: PipelineExpression, vector: VectorValue, measure: DistanceMeasure, limit: Int?,
    distanceField: String?
  ) {
    self.field = field
    self.vector = vector
    self.measure = measure
    self.limit = limit
    self.distanceField = distanceField
  }
}

/// A search for words in the documents of the source.
package struct PipelineSearch: Sendable, Hashable {
  /// As people type it.
  package var text: String
  /// Fields with an index of their words; the widest index's when empty.
  package var fields: [FieldPath]
  package var limit: Int?
  /// The field that gets a document's score.
  package var scoreField: String?

  package init(text: String, fields: [FieldPath], limit: Int?, scoreField: String?) {
    self.text = text
    self.fields = fields
    self.limit = limit
    self.scoreField = scoreField
  }
}

/// Documents joined to each row.
package struct PipelineLookup: Sendable, Hashable {
  package enum Match: Sendable, Hashable {
    /// The document that a reference leads to; null when there is none.
    case reference(PipelineExpression)
    /// The list of the collection's documents whose field equals a value of the row.
    case equal(CollectionPath, PipelineField, PipelineExpression)
  }

  package var match: Match
  /// The name under which the row gets the document or the list.
  package var name: String

  package init(match: Match, name: String) {
    self.match = match
    self.name = name
  }
}
