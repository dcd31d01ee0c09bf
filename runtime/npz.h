/* .npy and .npz files: arrays of numbers. What is read is never trusted. */
#ifndef JAXCC_NPZ_H
#define JAXCC_NPZ_H
#include <stdbool.h>
#include <stdint.h>

enum { NPZ_RANK = 64 };
/* Where elements lie: in memory, in a mapping of their own, or within the file itself. */
typedef enum { NPZ_MEMORY, NPZ_MAPPED, NPZ_INSIDE } NpzPlace;
typedef struct {
    char *name;   /* in the archive, without .npy; "" for a .npy file */
    char kind;    /* numpy's: b i u f c V */
    uint8_t size; /* of an element, in bytes */
    uint32_t rank;
    int64_t dims[NPZ_RANK];
    int64_t bytes; /* size · Π dims */
    void *data;    /* row-major, in the byte order of this machine; aligned for any type, but not NPZ_INSIDE */
    NpzPlace place;
} NpzArray;
typedef struct {
    NpzArray *at;
    uint32_t n;
    void *map; /* the file; NULL: none is NPZ_INSIDE */
    int64_t map_bytes;
} Npz;
typedef struct {
    char text[400];
} NpzError;

/* Reads a .npy (one array) or .npz file; false with the reason, which names the file. */
bool npz_read(const char *path, Npz *, NpzError *);
/* The same; what is large takes no memory but that of the page cache. Arrays lie in the file, or, if they are deflated
   or must be reordered, in memory or nameless files in `folder`. */
bool npz_map(const char *path, const char *folder, Npz *, NpzError *);
/* The elements stay when the rest is freed: those in memory are the caller's, the others end with the process. */
void npz_keep(Npz *);
void npz_free(Npz *);
/* The array of that name; NULL. */
const NpzArray *npz_find(const Npz *, const char *name);

/* Writes an .npz (stored) or, of one array, an .npy file; a regular file under a temporary name,
 * then renamed. */
bool npz_write(const char *path, bool npy, const NpzArray *, uint32_t n, NpzError *);
/* Removes what npz_write has begun; for handlers of signals that end the process. */
void npz_abandon(void);

/* How numpy holds the elements of a jaxpr's dtype. */
typedef struct {
    const char *dtype; /* "f32" */
    char kind;
    uint8_t size;
    uint8_t words;      /* of a key: a last dimension that the jaxpr does not print; else 0 */
    bool bits;          /* numpy has no such type: unsigned integers or V of the same width hold the bits */
    const char *python; /* the type's name there, "np.float32" */
} NpzType;
/* NULL for a dtype without data or unknown. */
const NpzType *npz_type(const char *dtype);
/* Can the array's elements be read as this type? Only the elements; its shape is the caller's
 * business. */
bool npz_holds(const NpzArray *, const NpzType *);

#endif
