/* .npy and .npz files: arrays of numbers. File contents are never trusted. */
#ifndef JAXCC_NPZ_H
#define JAXCC_NPZ_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { NPZ_RANK = 64 };
/* Where the elements lie: in memory, in a mapping of their own, or in the mapped file itself. */
typedef enum { NPZ_MEMORY, NPZ_MAPPED, NPZ_INSIDE } NpzPlace;
typedef struct {
    char *name;   /* in the archive, without .npy; "" for a .npy file */
    char kind;    /* numpy's: b i u f c V */
    uint8_t size; /* of an element, in bytes */
    uint32_t rank;
    int64_t dims[NPZ_RANK];
    int64_t bytes; /* size · Π dims */
    void *data;    /* row-major, in the byte order of this machine; aligned for any type unless NPZ_INSIDE */
    NpzPlace place;
} NpzArray;
typedef struct {
    NpzArray *at;
    uint32_t n;
    void *map; /* the mapped file; NULL: no array is NPZ_INSIDE */
    int64_t map_bytes;
} Npz;
typedef struct {
    char text[400];
} NpzError;

/* Reads a .npy (one array) or .npz file; on failure returns false with a reason that names the file. */
bool npz_read(const char *path, Npz *, NpzError *);
/* The same, but large arrays take no memory except the page cache: they stay in the file or, if they are deflated or
   must be reordered, are in unnamed files in `folder`. */
bool npz_map(const char *path, const char *folder, Npz *, NpzError *);
/* Keeps the elements when the rest is freed: the caller owns those in memory, the others stay until the process
   ends. */
void npz_keep(Npz *);
void npz_free(Npz *);
/* The array of that name; NULL if there is none. */
const NpzArray *npz_find(const Npz *, const char *name);

/* Writes an .npz (stored) or, for one array, an .npy file; a regular file is written under a temporary name, then
   renamed. */
bool npz_write(const char *path, bool npy, const NpzArray *, uint32_t n, NpzError *);
/* The same for anything: `write` returns false if it fails. */
bool npz_write_file(const char *path, bool (*write)(FILE *, const void *user), const void *user, NpzError *);
/* Removes the unfinished file of these; for signal handlers. */
void npz_abandon(void);

/* How numpy represents the elements of a jaxpr's dtype. */
typedef struct {
    const char *dtype; /* "f32" */
    char kind;
    uint8_t size;
    uint8_t words;      /* key types: the extent of a last dimension that the jaxpr does not print; else 0 */
    bool bits;          /* numpy has no such type: unsigned integers or V of the same width hold the bits */
    const char *python; /* the type's name in Python, "np.float32" */
} NpzType;
/* NULL for an unknown dtype or one without data. */
const NpzType *npz_type(const char *dtype);
/* Can the array's elements be read as this type? Its shape is the caller's business. */
bool npz_holds(const NpzArray *, const NpzType *);

#endif
