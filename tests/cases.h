/* Case files: finding them, and comparing outputs with what is wanted. */
#ifndef JAXCC_CASES_H
#define JAXCC_CASES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *path;                /* S.jaxpr */
    char *primitives, *dtypes; /* of the manifest, comma-separated; NULL: the case is in none */
    double rtol, atol;         /* negative: by the element type */
    bool listed;
    bool shape_only; /* the values are not unique */
} Case;
typedef struct {
    Case *at;
    uint32_t n, cap;
} Cases;

/* Adds every S.jaxpr under `dir` that has an S.out.npz, or is expected to fail when it runs; with
   `all` those without outputs too, if nothing says that they are wrong. */
void cases_find(Cases *, const char *dir, bool all);
/* Keeps those whose path matches the regular expression. */
void cases_keep(Cases *, const char *regex, bool matching); /* or only those that do not match */
/* Marks those whose primitives are all in the file `prims`, and whose element types are all in the
   text `dtypes` (NULL: any), as `listed`; those alone are kept when `only`. */
void cases_list(Cases *, const char *prims, const char *dtypes, bool only);
/* S with another suffix. */
const char *case_file(const Case *, const char *suffix);
/* Writes the case again, with another text, from the folder `from` to `to`, with links to its arrays and options, and
   to the old text as S.static; the manifest likewise. False after a message. */
bool case_write(const Case *, const char *from, const char *to, const char *text, size_t n);
void cases_link_manifest(const char *from, const char *to);
/* Are the arrays of `got` those of `want`? If not, `why` says where. */
bool compare_files(const Case *, const char *got, const char *want, char *why, size_t n);

#endif
