// The console's pages. A new file in Web needs an entry here; Tests/TidyTests reports a missing
// one.

#include "COndolFiles.h"

// Embedding came with C23. Clang supports it in every version of C.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const struct ondol_file pages[] = {
    {"api.js", (const unsigned char[]){
#embed "../OndolConsole/Web/api.js" suffix(, 0) if_empty(0)
    }},
    {"app.js", (const unsigned char[]){
#embed "../OndolConsole/Web/app.js" suffix(, 0) if_empty(0)
    }},
    {"base.css", (const unsigned char[]){
#embed "../OndolConsole/Web/base.css" suffix(, 0) if_empty(0)
    }},
    {"changes.js", (const unsigned char[]){
#embed "../OndolConsole/Web/changes.js" suffix(, 0) if_empty(0)
    }},
    {"code.js", (const unsigned char[]){
#embed "../OndolConsole/Web/code.js" suffix(, 0) if_empty(0)
    }},
    {"condition.js", (const unsigned char[]){
#embed "../OndolConsole/Web/condition.js" suffix(, 0) if_empty(0)
    }},
    {"data.js", (const unsigned char[]){
#embed "../OndolConsole/Web/data.js" suffix(, 0) if_empty(0)
    }},
    {"dialogs.js", (const unsigned char[]){
#embed "../OndolConsole/Web/dialogs.js" suffix(, 0) if_empty(0)
    }},
    {"document.js", (const unsigned char[]){
#embed "../OndolConsole/Web/document.js" suffix(, 0) if_empty(0)
    }},
    {"dom.js", (const unsigned char[]){
#embed "../OndolConsole/Web/dom.js" suffix(, 0) if_empty(0)
    }},
    {"fields.js", (const unsigned char[]){
#embed "../OndolConsole/Web/fields.js" suffix(, 0) if_empty(0)
    }},
    {"health.js", (const unsigned char[]){
#embed "../OndolConsole/Web/health.js" suffix(, 0) if_empty(0)
    }},
    {"index.html", (const unsigned char[]){
#embed "../OndolConsole/Web/index.html" suffix(, 0) if_empty(0)
    }},
    {"indexes.js", (const unsigned char[]){
#embed "../OndolConsole/Web/indexes.js" suffix(, 0) if_empty(0)
    }},
    {"live.js", (const unsigned char[]){
#embed "../OndolConsole/Web/live.js" suffix(, 0) if_empty(0)
    }},
    {"page.js", (const unsigned char[]){
#embed "../OndolConsole/Web/page.js" suffix(, 0) if_empty(0)
    }},
    {"pages.css", (const unsigned char[]){
#embed "../OndolConsole/Web/pages.css" suffix(, 0) if_empty(0)
    }},
    {"pictures.js", (const unsigned char[]){
#embed "../OndolConsole/Web/pictures.js" suffix(, 0) if_empty(0)
    }},
    {"plan.js", (const unsigned char[]){
#embed "../OndolConsole/Web/plan.js" suffix(, 0) if_empty(0)
    }},
    {"query.js", (const unsigned char[]){
#embed "../OndolConsole/Web/query.js" suffix(, 0) if_empty(0)
    }},
    {"reports.css", (const unsigned char[]){
#embed "../OndolConsole/Web/reports.css" suffix(, 0) if_empty(0)
    }},
    {"reports.html", (const unsigned char[]){
#embed "../OndolConsole/Web/reports.html" suffix(, 0) if_empty(0)
    }},
    {"reports.js", (const unsigned char[]){
#embed "../OndolConsole/Web/reports.js" suffix(, 0) if_empty(0)
    }},
    {"results.js", (const unsigned char[]){
#embed "../OndolConsole/Web/results.js" suffix(, 0) if_empty(0)
    }},
    {"route.js", (const unsigned char[]){
#embed "../OndolConsole/Web/route.js" suffix(, 0) if_empty(0)
    }},
    {"server.css", (const unsigned char[]){
#embed "../OndolConsole/Web/server.css" suffix(, 0) if_empty(0)
    }},
    {"server.html", (const unsigned char[]){
#embed "../OndolConsole/Web/server.html" suffix(, 0) if_empty(0)
    }},
    {"server.js", (const unsigned char[]){
#embed "../OndolConsole/Web/server.js" suffix(, 0) if_empty(0)
    }},
    {"session.js", (const unsigned char[]){
#embed "../OndolConsole/Web/session.js" suffix(, 0) if_empty(0)
    }},
    {"statistics.js", (const unsigned char[]){
#embed "../OndolConsole/Web/statistics.js" suffix(, 0) if_empty(0)
    }},
    {"storage.js", (const unsigned char[]){
#embed "../OndolConsole/Web/storage.js" suffix(, 0) if_empty(0)
    }},
    {"sync.html", (const unsigned char[]){
#embed "../OndolConsole/Web/sync.html" suffix(, 0) if_empty(0)
    }},
    {"sync.js", (const unsigned char[]){
#embed "../OndolConsole/Web/sync.js" suffix(, 0) if_empty(0)
    }},
    {"table.js", (const unsigned char[]){
#embed "../OndolConsole/Web/table.js" suffix(, 0) if_empty(0)
    }},
    {"tree.js", (const unsigned char[]){
#embed "../OndolConsole/Web/tree.js" suffix(, 0) if_empty(0)
    }},
    {"values.js", (const unsigned char[]){
#embed "../OndolConsole/Web/values.js" suffix(, 0) if_empty(0)
    }},
};

const struct ondol_file *ondol_console_page(size_t index) {
  return index < sizeof pages / sizeof *pages ? &pages[index] : NULL;
}
