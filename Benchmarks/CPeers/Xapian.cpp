// Xapian's side of the search suite: texts in, the best of a question out.

#include "CPeers.h"

#ifdef PEER_XAPIAN
#include <xapian.h>

#include <sstream>
#include <string>
#include <vector>

struct xapian_peer {
  Xapian::WritableDatabase database;
  Xapian::TermGenerator generator;

  explicit xapian_peer(const char *path)
      : database(path, Xapian::DB_CREATE_OR_OPEN | Xapian::DB_NO_SYNC | Xapian::DB_BACKEND_GLASS) {
    generator.set_flags(Xapian::TermGenerator::FLAG_CJK_NGRAM);
  }
};

template <typename Body>
static char *Guarded(Body body) {
  try {
    body();
    return nullptr;
  } catch (const Xapian::Error &error) {
    return strdup(error.get_description().c_str());
  } catch (const std::exception &error) {
    return strdup(error.what());
  }
}

char *xapian_peer_open(const char *path, xapian_peer **peer) {
  return Guarded([&] { *peer = new xapian_peer(path); });
}

char *xapian_peer_put(xapian_peer *peer, uint32_t id, const char *text) {
  return Guarded([&] {
    Xapian::Document document;
    document.set_data(text);
    peer->generator.set_document(document);
    peer->generator.index_text(text);
    peer->database.replace_document(id, document);
  });
}

char *xapian_peer_commit(xapian_peer *peer) {
  return Guarded([&] { peer->database.commit(); });
}

char *xapian_peer_find(
    xapian_peer *peer, enum xapian_form form, const char *text, size_t limit, size_t *count,
    size_t *bytes) {
  return Guarded([&] {
    std::vector<std::string> words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words.push_back(word);
    Xapian::Query query;
    switch (form) {
      case XAPIAN_ANY: query = Xapian::Query(Xapian::Query::OP_OR, words.begin(), words.end()); break;
      case XAPIAN_PHRASE:
        query = Xapian::Query(Xapian::Query::OP_PHRASE, words.begin(), words.end(), words.size());
        break;
      case XAPIAN_PREFIX:
        query = Xapian::Query(
            Xapian::Query::OP_WILDCARD, text, 0, Xapian::Query::WILDCARD_LIMIT_ERROR,
            Xapian::Query::OP_OR);
        break;
    }
    Xapian::Enquire enquire(peer->database);
    enquire.set_weighting_scheme(Xapian::BM25Weight(1.2, 0, 1, 0.75, 0));
    enquire.set_query(query);
    // All are looked at where they are to be counted.
    size_t all = peer->database.get_doccount();
    Xapian::MSet found = enquire.get_mset(0, limit, limit == 0 ? all : 0);
    *count = found.get_matches_estimated();
    *bytes = 0;
    for (Xapian::MSetIterator match = found.begin(); match != found.end(); ++match)
      *bytes += match.get_document().get_data().size();
  });
}

void xapian_peer_close(xapian_peer *peer) { delete peer; }
#endif
