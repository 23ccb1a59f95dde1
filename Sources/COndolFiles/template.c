// The files of `ondol new`. A new file of the template needs an entry here; Tests/TidyTests reports
// a missing one. The repository's own tools would obey a `.gitignore`, so it has another name
// there.

#include "COndolFiles.h"

// Embedding came with C23. Clang supports it in every version of C.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const struct ondol_file files[] = {
    {"Package.swift", (const unsigned char[]){
#embed "../../Docs/Templates/service/Package.swift" suffix(, 0) if_empty(0)
    }},
    {"README.md", (const unsigned char[]){
#embed "../../Docs/Templates/service/README.md" suffix(, 0) if_empty(0)
    }},
    {"Sources/App/App.swift", (const unsigned char[]){
#embed "../../Docs/Templates/service/Sources/App/App.swift" suffix(, 0) if_empty(0)
    }},
    {"Sources/App/DatabaseErrors.swift", (const unsigned char[]){
#embed "../../Docs/Templates/service/Sources/App/DatabaseErrors.swift" suffix(, 0) if_empty(0)
    }},
    {"Sources/App/Item.swift", (const unsigned char[]){
#embed "../../Docs/Templates/service/Sources/App/Item.swift" suffix(, 0) if_empty(0)
    }},
    {"Sources/App/ItemRoutes.swift", (const unsigned char[]){
#embed "../../Docs/Templates/service/Sources/App/ItemRoutes.swift" suffix(, 0) if_empty(0)
    }},
    {"Sources/App/LiveEvents.swift", (const unsigned char[]){
#embed "../../Docs/Templates/service/Sources/App/LiveEvents.swift" suffix(, 0) if_empty(0)
    }},
    {"Sources/App/Shop.swift", (const unsigned char[]){
#embed "../../Docs/Templates/service/Sources/App/Shop.swift" suffix(, 0) if_empty(0)
    }},
    {"Tests/AppTests/ItemTests.swift", (const unsigned char[]){
#embed "../../Docs/Templates/service/Tests/AppTests/ItemTests.swift" suffix(, 0) if_empty(0)
    }},
    {"Tests/AppTests/LiveTests.swift", (const unsigned char[]){
#embed "../../Docs/Templates/service/Tests/AppTests/LiveTests.swift" suffix(, 0) if_empty(0)
    }},
    {".gitignore", (const unsigned char[]){
#embed "../../Docs/Templates/service/gitignore" suffix(, 0) if_empty(0)
    }},
};

const struct ondol_file *ondol_template_file(size_t index) {
  return index < sizeof files / sizeof *files ? &files[index] : NULL;
}
