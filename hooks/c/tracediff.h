/*
 * tracediff.h: record named tensors of a C, C++, CUDA or ggml engine into a trace that `tracediff compare` reads.
 *
 * One header, no dependency but the C library; C99 and C++11. In exactly one source file write
 *
 *     #define TRACEDIFF_IMPLEMENTATION
 *     #include "tracediff.h"
 *
 * and include it plainly everywhere else. It is made so, and not of inline functions, because the hooks of an engine
 * stand in many files, a .cu among them, and all of them record into one trace with one copy of this code.
 *
 *     static td_writer trace;                          // zero: off, and every call below does nothing
 *
 *     td_manifest m = {0};
 *     m.producer = "my-engine"; m.version = "1.2"; m.dtype = "float32"; m.level = 2; m.layers = "0-3";
 *     td_open(&trace, getenv("TRACEDIFF_OUT"), &m);    // no path: stays off, so the hooks can stay in the code
 *     for (...) {                                      // each forward call; tokens of pass 0 are the prompt
 *         td_begin_pass(&trace, pass);
 *         const int64_t ids_shape[] = {1, T}, shape[] = {1, T, H};
 *         td_record(&trace, "input_ids", TD_I64, ids_shape, 2, ids);
 *         td_record(&trace, "layers.0.mlp.down_proj", TD_F32, shape, 3, y);    // the name is the reference's
 *     }
 *     if (td_close(&trace)) fprintf(stderr, "%s\n", td_error(&trace));
 *
 * Errors stick: after the first one every call returns it and nothing more is written, so a hook need not look at what
 * it gets back as long as td_close is looked at. A tensor is written before td_record returns and may change
 * afterwards. The file grows as PATH.part, can be opened at every moment, and gets its name when it is complete; of a
 * run that is killed everything up to there is left. Memory does not grow with what is written.
 *
 * Debug mode. With TRACEDIFF_DEBUG (or, where that is not set, DEBUG) = 1, true, yes or on in the environment, tensors are
 * also lines on stderr, with their statistics and the time since the one before; TRACEDIFF_DEBUG_PASSES=N shows N passes
 * in full and not 3, TRACEDIFF_DEBUG_LAYERS=N that many layers of each and not 2. The lines are those that docs/inside.md
 * of tracediff describes, without the ids, top tokens and series of steps. Times are the host's: with a GPU synchronize
 * before a hook, or they are those of launching. They are wall-clock time where POSIX or C11 is shown, else the process's.
 *
 * Limits. One thread at a time; calls in the order of execution. Little-endian machines. Two runs that write the same
 * path spoil each other's file. Quantised blocks have no place in a trace: record what they stand for. Without POSIX or
 * Windows (-std=c99 shows neither) the file is flushed but not synced.
 */
#ifndef TRACEDIFF_H
#define TRACEDIFF_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, little-endian in memory as in the file. */
typedef enum td_dtype {
	TD_F64, TD_F32, TD_F16, TD_BF16, TD_F8_E4M3, TD_F8_E5M2,
	TD_I64, TD_I32, TD_I16, TD_I8, TD_U64, TD_U32, TD_U16, TD_U8,
	TD_BOOL /* one byte, 0 or 1 */
} td_dtype;

/* What the trace is a trace of. What is NULL or 0 is not declared, which never counts as a difference. UTF-8. */
typedef struct td_manifest {
	const char *side;     /* "local" (also when NULL) or "reference" */
	const char *producer; /* the program's name */
	const char *version;  /* and its version */
	const char *model;    /* what was run, for people: a path or a name */
	const char *prompt;   /* the text that was tokenized */
	const char *dtype;    /* the model's, as torch spells it: "float32", "bfloat16" */
	const char *device;   /* "cpu", "cuda:0" */
	int passes;           /* how many forward calls the run makes */

	/* What this run promises to record, so that what does not come is reported. Either the scope: every entry of
	 * tracediff's order up to a level (1 block boundaries, 2 module outputs, 3 internals), all layers or those of a
	 * list such as "0-3,7" and nothing after the last of them. Or the names of one pass, ended by NULL: the rest is
	 * then known not to be there. A scope and names together: the scope promises, the names are for the reader. */
	int level;
	const char *layers;
	const char *const *names;

	size_t reserve; /* bytes of header kept free; 0: room for about 500 tensors. Too few cost a copy of the file */
} td_manifest;

typedef struct td_text {
	char *at; /* ends with a 0, which len does not count */
	size_t len, cap;
	int lost; /* there was no memory for all of it */
} td_text;

/* Statistics of the elements that came, in float64; the strip is those that are not counted yet. */
typedef struct td_moments {
	uint64_t n, special[3]; /* finite ones; NaN, +Inf, -Inf */
	uint64_t masked;        /* finite ones that are not counted */
	double least;           /* and those are not above this */
	double mean, squares, low, high, strip[256];
	size_t held;
} td_moments;

/* What debug mode knows of a run. */
typedef struct td_debug {
	int on, begun, noted, cut;
	long full, layers;               /* passes shown in full; layers of each */
	td_dtype dtype;
	td_moments moments;
	td_text line, section, slowest, first_nan;
	double arrived, left;            /* seconds: this tensor, and when the one before was done with */
	double in_section, in_pass, longest, in_run, in_hooks;
	uint64_t section_tensors, pass_tensors, tensors, passes, brief;
	uint64_t pass_special[3], special[3];
	int has_loss, known_loss;        /* of the pass; known is finite */
	double loss, first_loss, last_loss, lowest_loss, sum_loss;
	uint64_t losses;
} td_debug;

/* A trace being written. Zeroed it is off. All fields are private. */
typedef struct td_writer {
	int state;
	FILE *data, *head;           /* the same file twice, so that no seek goes beyond the header (long has 32 bits on Windows) */
	td_text path, part;          /* its last name and the one until then */
	uint64_t header, used, end;  /* bytes of header, those of it that are text, bytes of data */
	long pass;
	td_text names;               /* fired in this pass, each ended by a 0 */
	size_t *slots, slots_cap;    /* hash table of them: place in names + 1, firings */
	size_t names_count;
	td_text entry;               /* scratch */
	unsigned char *chunk;
	td_debug debug;
	char error[512];
} td_writer;

/* Start a trace. A path that is NULL or empty leaves the writer off. An older trace at path stays until td_close. A
 * writer that is open has to be closed before. All functions that return int return 0, or -1 for an error. */
int td_open(td_writer *w, const char *path, const td_manifest *m);

/* Say which forward call the tensors to come belong to: 0 the prefill, then one each decode step. Only forward. */
int td_begin_pass(td_writer *w, long pass);

/* Append a tensor: row-major, the shape outermost axis first, at most TD_MAX_DIMS axes. A name that comes again in the
 * same pass is a second firing and is kept as such. A name is UTF-8 and has no '/' or '#'. */
#define TD_MAX_DIMS 16
int td_record(td_writer *w, const char *name, td_dtype dtype, const int64_t *shape, int ndim, const void *data);

/* The same for a view: stride[i] is the distance in bytes between neighbours on axis i. ggml lists axes innermost first,
 * so shape[i] = t->ne[ndim-1-i] and stride[i] = (int64_t)t->nb[ndim-1-i]. */
int td_record_strided(td_writer *w, const char *name, td_dtype dtype, const int64_t *shape, const int64_t *stride,
	int ndim, const void *data);

/* The same for memory that the CPU cannot read: copy is called for one piece of at most TD_CHUNK bytes after the other
 * and brings bytes [offset, offset+size) of the source to host; it returns 0, or anything else for a failure.
 *
 *     static int from_cuda(void *host, const void *source, size_t offset, size_t size, void *context) {
 *         (void)context;
 *         return cudaMemcpy(host, (const char *)source + offset, size, cudaMemcpyDeviceToHost) != cudaSuccess;
 *     }
 *     td_record_from(&trace, "layers.0.mlp.down_proj", TD_BF16, shape, 3, device_y, from_cuda, NULL);
 *
 * cudaMemcpy waits for the default stream only: when y is computed on another, cudaStreamSynchronize it first, in the
 * hook, or what is recorded may be what y was before. A ggml backend: ggml_backend_tensor_get(source, host, offset, size). */
#define TD_CHUNK ((size_t)256 << 10)
typedef int (*td_copy)(void *host, const void *source, size_t offset, size_t size, void *context);
int td_record_from(td_writer *w, const char *name, td_dtype dtype, const int64_t *shape, int ndim, const void *source,
	td_copy copy, void *context);

/* Complete the trace: sync it, give it its name, let go of everything. After an error the trace stays PATH.part, marked
 * as failed with that error, and td_close returns -1. */
int td_close(td_writer *w);

/* End the trace of a run that went wrong: it stays PATH.part, marked as failed and why. Returns -1. On a writer that is
 * closed or off it does nothing and returns 0. */
int td_fail(td_writer *w, const char *why);

/* The first error in words, until the next td_open; "" when there was none. */
const char *td_error(const td_writer *w);

#ifdef __cplusplus
}
#endif
#endif /* TRACEDIFF_H */

#if defined(TRACEDIFF_IMPLEMENTATION) && !defined(TRACEDIFF_IMPLEMENTED)
#define TRACEDIFF_IMPLEMENTED

#include <errno.h>
#include <float.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(_WIN32)
#include <io.h>
#define TD__SYNC(f) _commit(_fileno(f))
#elif (defined(_POSIX_C_SOURCE) && _POSIX_C_SOURCE >= 200112L) || (defined(_XOPEN_SOURCE) && _XOPEN_SOURCE >= 600) || defined(__APPLE__)
#include <unistd.h>
#define TD__SYNC(f) fsync(fileno(f))
#else
#define TD__SYNC(f) 0
#endif

#define TD__MAX_HEADER 100000000u /* bytes: the limit of the safetensors format */
#define TD__STATUS 240            /* bytes kept for the status, so that it can be changed in place */
#define TD__START "{\"__metadata__\":{\"tracediff.version\":\"1\",\"tracediff.status\":\""

enum { TD__OFF, TD__OPEN, TD__ERROR, TD__DONE };

static int td__error(td_writer *w, const char *format, ...) {
	va_list args;
	if (w->error[0] == 0) { /* the first one sticks */
		va_start(args, format);
		(void)vsnprintf(w->error, sizeof w->error, format, args);
		va_end(args);
	}
	if (w->state == TD__OPEN) w->state = TD__ERROR;
	return -1;
}

static int td__io(td_writer *w, const char *what) {
	int code = errno;
	return td__error(w, "trace %.200s: %.120s: %s", w->part.at, what, code != 0 ? strerror(code) : "shorter than it was");
}

static void td__bytes(td_text *t, const char *bytes, size_t n) {
	char *grown;
	if (t->lost) return;
	if (t->len + n + 1 > t->cap) {
		grown = (char *)realloc(t->at, 2 * (t->len + n + 1));
		if (grown == NULL) {
			t->lost = 1;
			return;
		}
		t->at = grown;
		t->cap = 2 * (t->len + n + 1);
	}
	if (n > 0) memcpy(t->at + t->len, bytes, n);
	t->len += n;
	t->at[t->len] = 0;
}

static void td__put(td_text *t, const char *s) { td__bytes(t, s, strlen(s)); }

static void td__free(td_text *t) {
	free(t->at);
	memset(t, 0, sizeof *t);
}

static void td__number(td_text *t, uint64_t n) {
	char digits[20];
	size_t at = sizeof digits;
	do {
		digits[--at] = (char)('0' + n % 10);
	} while (n /= 10);
	td__bytes(t, digits + at, sizeof digits - at);
}

/* The inside of a JSON string. */
static void td__escaped(td_text *t, const char *s) {
	static const char hex[] = "0123456789abcdef";
	char code[6] = {'\\', 'u', '0', '0', 0, 0};
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\') td__bytes(t, "\\", 1);
		if (c >= ' ') {
			td__bytes(t, s, 1);
			continue;
		}
		code[4] = hex[c >> 4];
		code[5] = hex[c & 15];
		td__bytes(t, code, sizeof code);
	}
}

static void td__string(td_text *t, const char *s) {
	td__put(t, "\"");
	td__escaped(t, s);
	td__put(t, "\"");
}

/* The bytes of the UTF-8 sequence at s, 0 if there is none: surrogates, long forms and what is beyond U+10FFFF are not. */
static size_t td__rune(const char *s) {
	const unsigned char *u = (const unsigned char *)s;
	unsigned char low = 0x80, high = 0xbf;
	size_t n, i;
	if (u[0] < 0x80) return 1;
	if (u[0] < 0xc2 || u[0] > 0xf4) return 0;
	n = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	if (u[0] == 0xe0) low = 0xa0;
	if (u[0] == 0xed) high = 0x9f;
	if (u[0] == 0xf0) low = 0x90;
	if (u[0] == 0xf4) high = 0x8f;
	for (i = 1; i < n; i++) { /* a text that ends early has a 0 here, which is no continuation */
		if (u[i] < low || u[i] > high) return 0;
		low = 0x80, high = 0xbf;
	}
	return n;
}

static int td__utf8(const char *s) {
	size_t n;
	for (; *s; s += n) {
		n = td__rune(s);
		if (n == 0) return 0;
	}
	return 1;
}

/* Numbers and ranges as the reader wants them: "0-3,7,12-". A scope that it refuses would make the file unreadable. */
static int td__ranges(const char *s) {
	unsigned long from, to;
	for (;; s++) {
		if (*s < '0' || *s > '9') return 0;
		for (from = 0; *s >= '0' && *s <= '9' && from < 100000000; s++) from = 10 * from + (unsigned long)(*s - '0');
		to = from;
		if (*s == '-' && s[1] >= '0' && s[1] <= '9') {
			for (s++, to = 0; *s >= '0' && *s <= '9' && to < 100000000; s++) to = 10 * to + (unsigned long)(*s - '0');
		} else if (*s == '-') {
			s++;
		}
		if (to < from) return 0;
		if (*s == 0) return 1;
		if (*s != ',') return 0;
	}
}

static void td__field(td_text *t, const char *key, const char *value) {
	if (value == NULL || *value == 0) return;
	td__put(t, ",\"tracediff.");
	td__put(t, key);
	td__put(t, "\":");
	td__string(t, value);
}

/* The header of a trace without tensors. Some values are JSON inside of a JSON string, so they are made first. */
static int td__manifest(td_text *t, const td_manifest *m) {
	td_text inner = {NULL, 0, 0, 0};
	const char *const *name;
	int lost;
	td__put(t, TD__START "open");
	while (t->len < sizeof TD__START - 1 + TD__STATUS && !t->lost) td__put(t, " ");
	td__put(t, "\",\"tracediff.sequence\":\"execution\"");
	td__field(t, "side", m->side != NULL ? m->side : "local");
	if (m->producer != NULL || m->version != NULL) {
		td__put(&inner, "{\"name\":");
		td__string(&inner, m->producer != NULL ? m->producer : "");
		td__put(&inner, ",\"version\":");
		td__string(&inner, m->version != NULL ? m->version : "");
		td__put(&inner, "}");
		td__field(t, "producer", inner.at);
	}
	td__field(t, "model", m->model);
	if (m->level > 0) {
		inner.len = 0;
		td__put(&inner, "{\"level\":");
		td__number(&inner, (uint64_t)m->level);
		if (m->layers != NULL && *m->layers != 0) {
			td__put(&inner, ",\"layers\":");
			td__string(&inner, m->layers);
		}
		td__put(&inner, "}");
		td__field(t, "scope", inner.at);
	}
	if (m->names != NULL) {
		inner.len = 0;
		for (name = m->names; *name != NULL; name++) {
			td__put(&inner, name == m->names ? "[" : ",");
			td__string(&inner, *name);
		}
		td__put(&inner, inner.len == 0 ? "[]" : "]");
		td__field(t, "entries", inner.at);
	}
	td__field(t, "prompt", m->prompt);
	td__field(t, "dtype", m->dtype);
	td__field(t, "device", m->device);
	if (m->passes > 0) {
		inner.len = 0;
		td__number(&inner, (uint64_t)m->passes);
		td__field(t, "passes", inner.at);
	}
	td__put(t, "}}");
	lost = inner.lost || t->lost;
	td__free(&inner);
	return lost ? -1 : 0;
}

static const struct {
	const char *name, *torch;
	size_t size;
} td__dtypes[] = {
	{"F64", "float64", 8}, {"F32", "float32", 4}, {"F16", "float16", 2}, {"BF16", "bfloat16", 2},
	{"F8_E4M3", "float8_e4m3fn", 1}, {"F8_E5M2", "float8_e5m2", 1},
	{"I64", "int64", 8}, {"I32", "int32", 4}, {"I16", "int16", 2}, {"I8", "int8", 1},
	{"U64", "uint64", 8}, {"U32", "uint32", 4}, {"U16", "uint16", 2}, {"U8", "uint8", 1}, {"BOOL", "bool", 1},
};
enum { TD__DTYPES = sizeof td__dtypes / sizeof td__dtypes[0] };

/* What is wrong with a manifest, NULL if nothing: what a reader would refuse is refused here. */
static const char *td__refused(const td_manifest *m) {
	const char *texts[7];
	const char *const *name;
	size_t i;
	texts[0] = m->side, texts[1] = m->producer, texts[2] = m->version, texts[3] = m->model;
	texts[4] = m->prompt, texts[5] = m->device, texts[6] = m->layers;
	for (i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (texts[i] != NULL && !td__utf8(texts[i])) return "a text is not valid UTF-8";
	for (name = m->names; name != NULL && *name != NULL; name++)
		if (!td__utf8(*name)) return "a name is not valid UTF-8";
	if (m->level < 0 || m->level > 3) return "the level of a scope is 1, 2 or 3";
	if (m->layers != NULL && *m->layers != 0 && (m->level == 0 || !td__ranges(m->layers)))
		return "layers are a list such as 0-3,7, and need a level";
	if (m->passes < 0) return "the number of passes is negative";
	if (m->dtype == NULL || *m->dtype == 0) return NULL;
	for (i = 0; i < TD__DTYPES; i++)
		if (strcmp(m->dtype, td__dtypes[i].torch) == 0) return NULL;
	return "the dtype is not one of torch's, such as bfloat16";
}

static uint64_t td__round_up(uint64_t n) { return (n + 7) & ~(uint64_t)7; }

static int td__write(FILE *f, const void *bytes, size_t n) { return n > 0 && fwrite(bytes, 1, n, f) != n ? -1 : 0; }

/* Debug mode. */

enum { TD__DEBUG_PASSES = 3, TD__DEBUG_LAYERS = 2 };

/* Seconds from some moment on. */
static double td__now(void) {
#if defined(CLOCK_MONOTONIC) && !defined(_WIN32)
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#elif defined(TIME_UTC)
	struct timespec t;
	(void)timespec_get(&t, TIME_UTC);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
	return (double)clock() / CLOCKS_PER_SEC;
#endif
}

static char td__lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

/* Whether a text begins with a word, in any case. */
static int td__begins(const char *s, const char *word) {
	for (; *word && td__lower(*s) == *word; s++) word++;
	return *word == 0;
}

static int td__one_of(const char *s, const char *const *words) {
	for (; *words != NULL; words++)
		if (strlen(s) == strlen(*words) && td__begins(s, *words)) return 1;
	return 0;
}

/* From which number on downwards elements count as masked: of masks and scores -1e8, or half of the dtype's lowest number. */
static double td__least(const char *name, td_dtype dtype) {
	for (; *name; name++)
		if (td__begins(name, "mask") || td__begins(name, "scores")) break;
	if (*name == 0) return -DBL_MAX;
	switch (dtype) {
	case TD_F64: case TD_F32: case TD_BF16: return -1e8;
	case TD_F16: return -32752;
	case TD_F8_E5M2: return -28672;
	case TD_F8_E4M3: return -224;
	default: return -DBL_MAX;
	}
}

/* 2 to the power of n, and the root of x: libm would be one more library to link with. */
static double td__power(int n) {
	uint64_t bits = (uint64_t)(n + 1023) << 52;
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static double td__root(double x) {
	double y = x > 1 ? x : 1, next = (y + x / y) / 2;
	if (!(x > 0)) return 0;
	for (; next < y; next = (y + x / y) / 2) y = next; /* Newton's, from above */
	return y;
}

/* A float of 8 or 16 bits: so many of exponent, so many of mantissa; without infinities only all ones is NaN. */
static double td__narrow(unsigned bits, int exponent, int mantissa, int infinities) {
	int e = (int)(bits >> mantissa) & ((1 << exponent) - 1), m = (int)bits & ((1 << mantissa) - 1), top = (1 << exponent) - 1;
	uint64_t special = (uint64_t)0x7ff << 52;
	double x = (e > 0 ? m + (1 << mantissa) : m) * td__power((e > 0 ? e : 1) - (top >> 1) - mantissa);
	if (e == top && (infinities || m == (1 << mantissa) - 1)) {
		if (m > 0) special |= 1;
		memcpy(&x, &special, sizeof x);
	}
	return bits >> (exponent + mantissa) ? -x : x;
}

static double td__element(td_dtype dtype, const unsigned char *p) {
	union { double f64; int64_t i64; int32_t i32; int16_t i16; int8_t i8; uint64_t u64; uint32_t u32; uint16_t u16; uint8_t u8; } v;
	memcpy(&v, p, td__dtypes[dtype].size);
	switch (dtype) {
	case TD_F64: return v.f64;
	case TD_F16: return td__narrow(v.u16, 5, 10, 1);
	case TD_F8_E4M3: return td__narrow(v.u8, 4, 3, 0);
	case TD_F8_E5M2: return td__narrow(v.u8, 5, 2, 1);
	case TD_I64: return (double)v.i64;
	case TD_I32: return v.i32;
	case TD_I16: return v.i16;
	case TD_I8: return v.i8;
	case TD_U64: return (double)v.u64;
	case TD_U32: return v.u32;
	case TD_U16: return v.u16;
	default: return v.u8;
	}
}

/* Elements as doubles. Most tensors are of one of two types, which are loops of their own: five times as fast. */
static void td__decode(double *to, td_dtype dtype, const unsigned char *p, size_t n) {
	const size_t size = td__dtypes[dtype].size;
	uint16_t high;
	uint32_t bits;
	size_t i;
	float x;
	if (dtype == TD_F32) {
		for (i = 0; i < n; i++) memcpy(&x, p + 4 * i, 4), to[i] = (double)x;
	} else if (dtype == TD_BF16) {
		for (i = 0; i < n; i++) memcpy(&high, p + 2 * i, 2), bits = (uint32_t)high << 16, memcpy(&x, &bits, 4), to[i] = (double)x;
	} else {
		for (i = 0; i < n; i++) to[i] = td__element(dtype, p + size * i);
	}
}

/* Count the strip: its mean and its squares about that, merged by the formula of Chan, Golub and LeVeque (1979), which
 * takes no difference of large sums. */
static void td__count(td_moments *m) {
	double sum = 0, off = 0, squares = 0, mean, distance, share, low = m->low, high = m->high;
	size_t i;
	if (m->held == 0) return;
	for (i = 0; i < m->held; i++) {
		low = m->strip[i] < low ? m->strip[i] : low;
		high = m->strip[i] > high ? m->strip[i] : high;
		sum += m->strip[i];
	}
	mean = sum / (double)m->held;
	for (i = 0; i < m->held; i++) {
		distance = m->strip[i] - mean;
		off += distance;
		squares += distance * distance;
	}
	squares -= off * off / (double)m->held;
	share = (double)m->held / (double)(m->n + m->held);
	distance = mean - m->mean;
	m->squares += (squares > 0 ? squares : 0) + distance * distance * (double)m->n * share;
	m->mean += distance * share;
	m->low = low, m->high = high;
	m->n += m->held;
	m->held = 0;
}

/* Take in elements. What is not finite is told by its bits: -ffast-math knows no NaN. */
static void td__take(td_moments *m, td_dtype dtype, const unsigned char *bytes, size_t left) {
	const size_t size = td__dtypes[dtype].size, most = sizeof m->strip / sizeof m->strip[0];
	const uint64_t exponent = (uint64_t)0x7ff << 52, mantissa = ((uint64_t)1 << 52) - 1;
	size_t i, n, finite;
	uint64_t x;
	for (left /= size; left > 0; left -= n, bytes += n * size) {
		n = left < most - m->held ? left : most - m->held;
		td__decode(m->strip + m->held, dtype, bytes, n);
		for (i = finite = m->held; i < m->held + n; i++) {
			memcpy(&x, &m->strip[i], sizeof x);
			m->strip[finite] = m->strip[i];
			if ((x & exponent) != exponent) {
				if (m->least > -DBL_MAX && m->strip[i] <= m->least) m->masked++;
				else finite++;
			} else m->special[x & mantissa ? 0 : x >> 63 ? 2 : 1]++;
		}
		m->held = finite;
		if (m->held == most) td__count(m);
	}
}

/* Write a piece of a tensor, whole elements, and take it in. */
static int td__data(td_writer *w, const void *bytes, size_t n) {
	if (w->debug.on) td__take(&w->debug.moments, w->debug.dtype, (const unsigned char *)bytes, n);
	return td__write(w->data, bytes, n);
}

/* The fields of a line: a number, a real one, a text in which nothing can end the line: what is no
 * printable ASCII is escaped. */
static void td__integer(td_text *t, const char *key, uint64_t n) {
	td__put(t, key);
	td__number(t, n);
}

static void td__real(td_text *t, const char *key, int ms, double x) {
	char s[64], *c;
	(void)snprintf(s, sizeof s, ms ? "%.3f" : "%.6g", ms ? 1000 * x : x);
	if (strcmp(s, "-0") == 0) s[0] = '0', s[1] = 0; /* the sign depends on which of several zeros came first */
	for (c = s; *c; c++)
		if (*c == ',') *c = '.'; /* of the program's locale */
	td__put(t, key);
	td__put(t, s);
}

static void td__word(td_text *t, const char *key, const char *s) {
	static const char hex[] = "0123456789abcdef";
	char code[4] = {'\\', 'x', 0, 0};
	td__put(t, key);
	for (; *s; s++) {
		const unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\') td__bytes(t, "\\", 1);
		if (c > ' ' && c < 0x7f) {
			td__bytes(t, s, 1);
			continue;
		}
		code[2] = hex[c >> 4], code[3] = hex[c & 15];
		td__bytes(t, code, sizeof code);
	}
}

static void td__specials(td_text *t, const uint64_t *n) {
	td__integer(t, " nan=", n[0]);
	td__integer(t, " inf=", n[1]);
	td__integer(t, " neg_inf=", n[2]);
}

static const char *td__at(const td_text *t) { return t->at != NULL ? t->at : ""; }

/* Write the lines out at once: whatever ends the process leaves whole lines. */
static void td__flush(td_debug *d) {
	if (!d->line.lost && d->line.len > 0) (void)fwrite(d->line.at, 1, d->line.len, stderr);
	d->line.len = 0;
}

/* A number of the environment, 1 or more; otherwise the other, and *wrong says whether it was set. */
static long td__setting(const char *name, long otherwise, int *wrong) {
	const char *text = getenv(name);
	char *rest = NULL;
	long n = text != NULL ? strtol(text, &rest, 10) : 0;
	*wrong = text != NULL && *text != 0 && (n <= 0 || *rest != 0);
	return n <= 0 || *wrong ? otherwise : n;
}

static void td__debug_begin(td_debug *d) {
	static const char *const on[] = {"1", "true", "yes", "on", NULL}, *const off[] = {"", "0", "false", "no", "off", NULL};
	const char *value = getenv("TRACEDIFF_DEBUG");
	int passes, layers, own = value != NULL && *value != 0;
	if (!own) value = getenv("DEBUG");
	d->on = value != NULL && td__one_of(value, on);
	d->full = td__setting("TRACEDIFF_DEBUG_PASSES", TD__DEBUG_PASSES, &passes);
	d->layers = td__setting("TRACEDIFF_DEBUG_LAYERS", TD__DEBUG_LAYERS, &layers);
	if (!d->on) {
		if (own && !td__one_of(value, off))
			(void)fputs("debug: note text=\"TRACEDIFF_DEBUG is neither on (1, true, yes, on) nor off (0, false, no, off): debug mode is off\"\n", stderr);
		return;
	}
	td__integer(&d->line, "debug: begin passes=", (uint64_t)d->full);
	td__integer(&d->line, " tokens=0 top=0 layers=", (uint64_t)d->layers); /* of tokens there are no lines */
	td__put(&d->line, "\n");
	if (passes) td__put(&d->line, "debug: note text=\"TRACEDIFF_DEBUG_PASSES is not a number of passes, 1 or more: the first 3 are shown in full\"\n");
	if (layers) td__put(&d->line, "debug: note text=\"TRACEDIFF_DEBUG_LAYERS is not a number of layers, 1 or more: the first 2 are shown in full\"\n");
	td__flush(d);
}

/* How many digits there are, 0 for more than a number of a name has. */
static size_t td__digits(const char *s) {
	size_t n = strspn(s, "0123456789");
	return n <= 9 ? n : 0;
}

/* The step of a forward pass that a tensor belongs to, by its name. */
static void td__section(td_text *t, const char *name) {
	static const char *const known[][2] = {
		{"input_ids", "input"}, {"position_ids", "input"}, {"mask", "mask"}, {"attention_mask", "mask"},
		{"embed_tokens", "embedding"}, {"inputs_embeds", "embedding"}, {"per_layer_", "embedding"}, {"altup.init", "embedding"},
		{"altup_projections", "embedding"}, {"rotary", "rotary"}, {"norm", "final"}, {"altup.final", "final"},
		{"altup_unembed_projections", "final"}, {"lm_head", "logits"}, {"logits", "logits"}, {"loss", "loss"}, {"grad/", "gradients"},
	};
	const char *last = strrchr(name, '.');
	size_t i, n = last != NULL ? td__digits(last + 1) : 0;
	t->len = 0;
	if (n > 0 && last[1 + n] == 0 && last - name > 5 && memcmp(last - 5, ".step", 5) == 0) {
		td__put(t, "step");
		td__put(t, last);
		return;
	}
	n = strncmp(name, "layers.", 7) == 0 ? td__digits(name + 7) : 0;
	if (n > 0 && (name[7 + n] == '.' || name[7 + n] == 0)) {
		td__put(t, "layer.");
		td__bytes(t, name + 7, n);
		return;
	}
	for (i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (strncmp(name, known[i][0], strlen(known[i][0])) != 0) continue;
		td__put(t, known[i][1]);
		return;
	}
	td__bytes(t, name, strcspn(name, "."));
	if (t->len == 0) td__put(t, "-");
}

static void td__end_section(td_debug *d, long pass) {
	if (d->section_tensors == 0) return;
	if (pass < d->full) {
		td__integer(&d->line, "debug: section pass=", (uint64_t)pass);
		td__word(&d->line, " section=", td__at(&d->section));
		td__integer(&d->line, " tensors=", d->section_tensors);
		td__real(&d->line, " ms=", 1, d->in_section);
		td__put(&d->line, "\n");
	}
	if (d->slowest.len == 0 || d->in_section > d->longest) {
		d->longest = d->in_section;
		d->slowest.len = 0;
		td__put(&d->slowest, td__at(&d->section));
	}
	d->in_section = 0;
	d->section_tensors = 0;
}

static void td__end_pass(td_debug *d, long pass) {
	int i;
	if (d->pass_tensors == 0) return;
	td__end_section(d, pass);
	td__integer(&d->line, "debug: pass pass=", (uint64_t)pass);
	td__integer(&d->line, " tensors=", d->pass_tensors);
	td__specials(&d->line, d->pass_special);
	td__word(&d->line, " first_nan=", d->first_nan.len > 0 ? td__at(&d->first_nan) : "-");
	td__word(&d->line, " slowest=", td__at(&d->slowest));
	td__real(&d->line, " slowest_ms=", 1, d->longest);
	td__real(&d->line, " ms=", 1, d->in_pass);
	if (d->has_loss && d->known_loss) td__real(&d->line, " loss=", 0, d->loss);
	else if (d->has_loss) td__put(&d->line, " loss=-");
	td__put(&d->line, "\n");
	if (d->has_loss && d->known_loss) {
		if (d->losses == 0) d->first_loss = d->lowest_loss = d->loss;
		d->lowest_loss = d->loss < d->lowest_loss ? d->loss : d->lowest_loss;
		d->last_loss = d->loss;
		d->sum_loss += d->loss;
		d->losses++;
	}
	d->has_loss = 0;
	d->in_run += d->in_pass;
	d->tensors += d->pass_tensors;
	for (i = 0; i < 3; i++) d->special[i] += d->pass_special[i], d->pass_special[i] = 0;
	d->in_pass = d->longest = 0;
	d->pass_tensors = 0;
	d->first_nan.len = d->slowest.len = 0;
}

static void td__begin_pass(td_debug *d, long pass) {
	if (d->pass_tensors > 0) return;
	d->passes++;
	if (pass < d->full) return;
	d->brief++;
	if (d->noted) return;
	d->noted = 1;
	td__integer(&d->line, "debug: note pass=", (uint64_t)pass);
	td__put(&d->line, " text=\"from here on one line a pass; --passes or TRACEDIFF_DEBUG_PASSES show more of them in full\"\n");
}

/* Whether the tensors of the section are not listed: those of a later layer. The first time, say so. */
static int td__later(td_debug *d, long pass) {
	const char *section = td__at(&d->section);
	if (strncmp(section, "layer.", 6) != 0 || td__digits(section + 6) == 0 || strtol(section + 6, NULL, 10) < d->layers) return 0;
	if (d->cut) return 1;
	d->cut = 1;
	td__integer(&d->line, "debug: note pass=", (uint64_t)pass);
	td__integer(&d->line, " text=\"from layer ", (uint64_t)d->layers);
	td__put(&d->line, " on one line a layer; --layers or TRACEDIFF_DEBUG_LAYERS show more of them in full\"\n");
	return 1;
}

/* The loss of a pass, from a tensor of that name: the mean of finite numbers. */
static void td__loss(td_debug *d, const char *name) {
	const td_moments *m = &d->moments;
	const char *last = strrchr(name, '.');
	if (strcmp(last != NULL ? last + 1 : name, "loss") != 0) return;
	d->has_loss = 1;
	d->known_loss = m->n > 0 && m->special[0] + m->special[1] + m->special[2] == 0;
	d->loss = m->low == m->high ? m->low : m->mean;
}

/* A tensor comes: the time of the model ends here. */
static void td__arrive(td_debug *d, const char *name, td_dtype dtype) {
	d->arrived = td__now();
	d->dtype = dtype;
	memset(&d->moments, 0, offsetof(td_moments, strip));
	d->moments.held = 0;
	d->moments.least = td__least(name, dtype);
	d->moments.low = DBL_MAX, d->moments.high = -DBL_MAX;
	if (d->begun) return;
	d->begun = 1;
	d->left = d->arrived; /* what was before the first tensor was no step of a forward */
}

static void td__statistics(td_text *t, const td_moments *m) {
	static const char *const keys[] = {" min=", " max=", " mean=", " std="};
	double values[4];
	int i;
	values[0] = m->low, values[1] = m->high, values[2] = m->mean;
	values[3] = m->n > 0 ? td__root(m->squares / (double)m->n) : 0;
	if (m->low == m->high) values[2] = m->low, values[3] = 0; /* a sum of equal numbers may be rounded */
	for (i = 0; i < 4; i++) {
		if (m->n > 0) td__real(t, keys[i], 0, values[i]);
		else td__word(t, keys[i], "-");
	}
	td__specials(t, m->special);
}

/* The tensor is written: its line, and its place in section and pass. */
static void td__show(td_writer *w, const char *name, size_t firing, const int64_t *shape, int ndim) {
	td_debug *d = &w->debug;
	td_text full = {NULL, 0, 0, 0}, section = {NULL, 0, 0, 0}, *t = &d->line;
	const double elapsed = d->arrived - d->left;
	int i, first;
	td__count(&d->moments);
	td__put(&full, name);
	if (firing > 0) td__integer(&full, "#", firing);
	td__section(&section, name);
	td__begin_pass(d, w->pass);
	if (strcmp(td__at(&section), td__at(&d->section)) != 0) td__end_section(d, w->pass);
	d->section.len = 0;
	td__put(&d->section, td__at(&section));
	d->section_tensors++, d->pass_tensors++;
	d->in_section += elapsed, d->in_pass += elapsed;
	for (i = 0; i < 3; i++) d->pass_special[i] += d->moments.special[i];
	first = d->moments.special[0] > 0 && d->first_nan.len == 0;
	if (first) td__put(&d->first_nan, td__at(&full));
	td__loss(d, name);
	if (w->pass < d->full && (!td__later(d, w->pass) || first)) {
		td__integer(t, "debug: tensor pass=", (uint64_t)w->pass);
		td__word(t, " name=", td__at(&full));
		td__put(t, " shape=[");
		for (i = 0; i < ndim; i++) td__integer(t, i > 0 ? "," : "", (uint64_t)shape[i]);
		td__put(t, "] dtype=");
		td__put(t, td__dtypes[d->dtype].torch);
		td__statistics(t, &d->moments);
		td__real(t, " ms=", 1, elapsed);
		if (d->moments.masked > 0) td__integer(t, " masked=", d->moments.masked);
		td__put(t, "\n");
	}
	td__free(&full);
	td__free(&section);
	td__flush(d);
	d->left = td__now();
	d->in_hooks += d->left - d->arrived;
}

static void td__debug_end(td_writer *w) {
	td_debug *d = &w->debug;
	td__end_pass(d, w->pass);
	if (d->losses > 0) {
		td__integer(&d->line, "debug: losses passes=", d->losses);
		td__real(&d->line, " first=", 0, d->first_loss);
		td__real(&d->line, " last=", 0, d->last_loss);
		td__real(&d->line, " lowest=", 0, d->lowest_loss);
		td__real(&d->line, " mean=", 0, d->sum_loss / (double)d->losses);
		td__put(&d->line, "\n");
	}
	td__integer(&d->line, "debug: end passes=", d->passes);
	td__integer(&d->line, " short=", d->brief);
	td__integer(&d->line, " tensors=", d->tensors);
	td__specials(&d->line, d->special);
	td__real(&d->line, " ms=", 1, d->in_run);
	td__real(&d->line, " hooks_ms=", 1, d->in_hooks);
	td__put(&d->line, "\n");
	td__flush(d);
	td__free(&d->line);
	td__free(&d->section);
	td__free(&d->slowest);
	td__free(&d->first_nan);
	d->on = 0;
}

/* Copy n bytes from one file to another, through memory of a fixed size. */
static int td__copy(td_writer *w, FILE *to, FILE *from, uint64_t n) {
	size_t piece;
	for (; n > 0; n -= piece) {
		piece = n < TD_CHUNK ? (size_t)n : TD_CHUNK;
		if (fread(w->chunk, 1, piece, from) != piece || td__write(to, w->chunk, piece)) return -1;
	}
	return 0;
}

/* Write the length, the text and spaces up to the length; then what a file that was too small had. */
static int td__fill(td_writer *w, FILE *to, uint64_t header, const td_text *text, FILE *from) {
	unsigned char length[8];
	uint64_t left = header - w->used;
	int i;
	for (i = 0; i < 8; i++) length[i] = (unsigned char)(header >> 8 * i);
	if (td__write(to, length, sizeof length)) return -1;
	if (from == NULL) {
		if (td__write(to, text->at, text->len)) return -1;
	} else if (fseek(from, 8, SEEK_SET) != 0 || td__copy(w, to, from, w->used)) {
		return -1;
	}
	memset(w->chunk, ' ', TD_CHUNK);
	for (; left > 0; left -= left < TD_CHUNK ? left : TD_CHUNK)
		if (td__write(to, w->chunk, left < TD_CHUNK ? (size_t)left : TD_CHUNK)) return -1;
	if (from == NULL) return 0;
	return fseek(from, (long)(8 + w->header), SEEK_SET) != 0 || td__copy(w, to, from, w->end) ? -1 : 0;
}

static void td__shut(td_writer *w) {
	if (w->data != NULL) (void)fclose(w->data);
	if (w->head != NULL) (void)fclose(w->head);
	w->data = w->head = NULL;
}

static int td__rename(const char *from, const char *to) {
#if defined(_WIN32)
	(void)remove(to); /* there rename does not replace */
#endif
	return rename(from, to);
}

/* Make the file anew with a header of so many bytes, from a text or from the file that there is, and put it in place. */
static int td__rebuild(td_writer *w, uint64_t header, const td_text *text) {
	td_text fresh = {NULL, 0, 0, 0};
	FILE *to = NULL, *from = NULL;
	int bad;
	if (header > TD__MAX_HEADER) return td__error(w, "trace %.200s: safetensors allows no header of more than 100 MB", w->part.at);
	td__put(&fresh, w->part.at);
	td__put(&fresh, ".new");
	if (fresh.lost) return td__error(w, "a trace: out of memory");
	errno = 0;
	to = fopen(fresh.at, "wb");
	if (text == NULL) from = fopen(w->part.at, "rb");
	bad = to == NULL || (text == NULL && from == NULL) || td__fill(w, to, header, text, from);
	if (from != NULL) (void)fclose(from);
	if (to != NULL && fclose(to) != 0) bad = 1;
	if (!bad) {
		td__shut(w); /* Windows renames no file that is open */
		bad = td__rename(fresh.at, w->part.at);
	}
	if (!bad) {
		w->data = fopen(w->part.at, "ab");
		w->head = fopen(w->part.at, "r+b");
		bad = w->data == NULL || w->head == NULL;
	}
	if (bad) {
		(void)td__io(w, text != NULL ? "cannot be created" : "cannot be made larger");
		(void)remove(fresh.at);
	}
	td__free(&fresh);
	if (bad) return -1;
	(void)setvbuf(w->head, NULL, _IONBF, 0); /* one entry is one write */
	w->header = header;
	return 0;
}

int td_open(td_writer *w, const char *path, const td_manifest *m) {
	td_text text = {NULL, 0, 0, 0};
	const uint16_t one = 1;
	const char *why;
	uint64_t size;
	int bad;
	if (w == NULL) return 0;
	memset(w, 0, sizeof *w);
	if (path == NULL || *path == 0) return 0;
	td__put(&w->path, path);
	td__put(&w->part, path);
	td__put(&w->part, ".part");
	w->state = TD__OPEN;
	w->chunk = (unsigned char *)malloc(TD_CHUNK);
	if (w->path.lost || w->part.lost || w->chunk == NULL) return td__error(w, "a trace: out of memory");
	why = td__refused(m);
	if (why == NULL && *(const unsigned char *)&one != 1) why = "this machine is big-endian, and traces are not";
	if (why == NULL && td__manifest(&text, m)) why = "out of memory";
	if (why != NULL) {
		td__free(&text);
		return td__error(w, "trace %.200s: %s", path, why);
	}
	w->used = text.len;
	size = m->reserve > 0 ? m->reserve : (uint64_t)64 << 10;
	size = text.len + (size < TD__MAX_HEADER ? size : TD__MAX_HEADER) * 11 / 10;
	if (size > TD__MAX_HEADER && text.len < TD__MAX_HEADER) size = TD__MAX_HEADER;
	bad = td__rebuild(w, td__round_up(size), &text);
	td__free(&text);
	if (!bad) td__debug_begin(&w->debug);
	return bad;
}

int td_begin_pass(td_writer *w, long pass) {
	if (w == NULL || w->state == TD__OFF) return 0;
	if (w->state != TD__OPEN) return -1;
	if (pass < w->pass) return td__error(w, "trace %.200s: pass %ld after pass %ld: passes only go forward", w->part.at, pass, w->pass);
	if (pass > w->pass) {
		if (w->debug.on) td__end_pass(&w->debug, w->pass);
		w->names.len = w->names_count = 0;
		if (w->slots != NULL) memset(w->slots, 0, 2 * w->slots_cap * sizeof *w->slots);
	}
	w->pass = pass;
	return 0;
}

/* The slot of a name: where it stands, or the free one where it would. */
static size_t *td__slot(const td_writer *w, const char *name) {
	uint64_t hash = 14695981039346656037u; /* FNV-1a */
	const char *c;
	size_t i;
	for (c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
	for (i = (size_t)hash & (w->slots_cap - 1);; i = (i + 1) & (w->slots_cap - 1)) {
		size_t *slot = w->slots + 2 * i;
		if (slot[0] == 0 || strcmp(w->names.at + slot[0] - 1, name) == 0) return slot;
	}
}

/* Keep the table of names at most half full. */
static int td__widen(td_writer *w) {
	size_t *old = w->slots, cap = w->slots_cap, i, *slot;
	if (2 * (w->names_count + 1) <= cap) return 0;
	w->slots_cap = cap > 0 ? 2 * cap : 256;
	w->slots = (size_t *)calloc(2 * w->slots_cap, sizeof *w->slots);
	if (w->slots == NULL) {
		w->slots = old;
		w->slots_cap = cap;
		return -1;
	}
	for (i = 0; i < cap; i++) {
		if (old[2 * i] == 0) continue;
		slot = td__slot(w, w->names.at + old[2 * i] - 1);
		slot[0] = old[2 * i], slot[1] = old[2 * i + 1];
	}
	free(old);
	return 0;
}

/* Count a firing of a name in this pass and set how many there were before. */
static int td__fire(td_writer *w, const char *name, size_t *before) {
	size_t *slot;
	if (td__widen(w)) return -1;
	slot = td__slot(w, name);
	if (slot[0] == 0) {
		size_t at = w->names.len + 1;
		td__bytes(&w->names, name, strlen(name) + 1);
		if (w->names.lost) return -1;
		slot[0] = at, slot[1] = 0;
		w->names_count++;
	}
	*before = slot[1]++;
	return 0;
}

/* Write the data of a tensor piece by piece, as the caller brings them. Returns 1 when that fails. */
static int td__pull(td_writer *w, uint64_t bytes, const void *source, td_copy copy, void *context) {
	uint64_t at;
	for (at = 0; at < bytes; at += TD_CHUNK) {
		size_t piece = bytes - at < TD_CHUNK ? (size_t)(bytes - at) : TD_CHUNK;
		if (copy(w->chunk, source, (size_t)at, piece, context) != 0) return 1;
		if (td__data(w, w->chunk, piece)) return -1;
	}
	return 0;
}

/* Write the elements of a view in row-major order; where the last axis has no gaps, a row at a time. */
static int td__walk(td_writer *w, size_t size, const int64_t *shape, const int64_t *stride, int ndim, const void *data) {
	int64_t index[TD_MAX_DIMS] = {0}, at = 0;
	int axis;
	if (ndim > 0 && stride[ndim - 1] == (int64_t)size) size *= (size_t)shape[--ndim];
	for (;;) {
		if (td__data(w, (const char *)data + at, size)) return -1;
		for (axis = ndim - 1; axis >= 0; axis--) {
			at += stride[axis];
			if (++index[axis] < shape[axis]) break;
			at -= stride[axis] * shape[axis];
			index[axis] = 0;
		}
		if (axis < 0) return 0;
	}
}

static void td__entry(td_text *t, const td_writer *w, const char *name, size_t firing, td_dtype dtype, const int64_t *shape, int ndim, uint64_t bytes) {
	int i;
	td__put(t, ",\"");
	if (w->pass > 0) {
		td__put(t, "pass");
		td__number(t, (uint64_t)w->pass);
		td__put(t, "/");
	}
	td__escaped(t, name);
	if (firing > 0) {
		td__put(t, "#");
		td__number(t, firing);
	}
	td__put(t, "\":{\"dtype\":\"");
	td__put(t, td__dtypes[dtype].name);
	td__put(t, "\",\"shape\":[");
	for (i = 0; i < ndim; i++) {
		if (i > 0) td__put(t, ",");
		td__number(t, (uint64_t)shape[i]);
	}
	td__put(t, "],\"data_offsets\":[");
	td__number(t, w->end);
	td__put(t, ",");
	td__number(t, w->end + bytes);
	td__put(t, "]}}");
}

/* What is wrong with a tensor, NULL if nothing; its bytes. */
static const char *td__unfit(const char *name, td_dtype dtype, const int64_t *shape, int ndim, uint64_t *bytes) {
	int i;
	if (name == NULL || *name == 0) return "the name is empty";
	if (strpbrk(name, "/#") != NULL) return "the name contains '/' or '#', which separate pass and firing in a trace";
	if (strcmp(name, "__metadata__") == 0) return "safetensors keeps this name for its metadata";
	if (!td__utf8(name)) return "the name is not valid UTF-8";
	if ((unsigned)dtype >= TD__DTYPES) return "no such dtype";
	if (ndim < 0 || ndim > TD_MAX_DIMS) return "more axes than TD_MAX_DIMS";
	*bytes = td__dtypes[dtype].size;
	for (i = 0; i < ndim; i++) {
		if (shape[i] < 0) return "a size in its shape is negative";
		if (shape[i] > 0 && *bytes > (uint64_t)INT64_MAX / 2 / (uint64_t)shape[i]) return "its shape is beyond any memory";
		*bytes *= (uint64_t)shape[i];
	}
	return NULL;
}

/* Make room in the header for the entry that is about to come. */
static int td__room(td_writer *w) {
	uint64_t need = w->used + w->entry.len - 1, twice = 2 * w->header;
	if (need <= w->header) return 0;
	if (twice > TD__MAX_HEADER) twice = TD__MAX_HEADER;
	return td__rebuild(w, td__round_up(twice > need ? twice : need), NULL);
}

static int td__record(td_writer *w, const char *name, td_dtype dtype, const int64_t *shape, const int64_t *stride, int ndim, const void *data,
	td_copy copy, void *context) {
	uint64_t bytes = 0;
	const char *why;
	size_t firing = 0;
	int bad = 0;
	if (w == NULL || w->state == TD__OFF) return 0;
	if (w->state == TD__ERROR) return -1;
	if (w->debug.on) td__arrive(&w->debug, name, dtype);
	why = w->state == TD__DONE ? "it comes after the trace was closed" : td__unfit(name, dtype, shape, ndim, &bytes);
	if (why == NULL && bytes > 0 && data == NULL && copy == NULL) why = "it has no data";
	if (why == NULL && td__fire(w, name, &firing)) why = "out of memory";
	if (why == NULL) {
		w->entry.len = 0;
		td__entry(&w->entry, w, name, firing, dtype, shape, ndim, bytes);
		if (w->entry.lost) why = "out of memory";
	}
	if (why == NULL && td__room(w)) return -1;
	errno = 0;
	if (why == NULL && bytes > 0) {
		if (copy != NULL) bad = td__pull(w, bytes, data, copy, context);
		else if (stride != NULL) bad = td__walk(w, td__dtypes[dtype].size, shape, stride, ndim, data);
		else bad = td__data(w, data, (size_t)bytes);
		if (bad > 0) why = "the copy from its device failed";
	}
	if (why != NULL) return td__error(w, "tensor \"%.120s\" of a trace: %s", name != NULL ? name : "", why);
	/* Only when the data are with the system does the entry follow: killed between the two, the trace has one tensor less. */
	if (bad < 0 || fflush(w->data) != 0 || fseek(w->head, (long)(7 + w->used), SEEK_SET) != 0 || td__write(w->head, w->entry.at, w->entry.len))
		return td__io(w, name);
	w->used += w->entry.len - 1; /* the entry brings its closing brace, in the place of the one before */
	w->end += bytes;
	if (w->debug.on) td__show(w, name, firing, shape, ndim);
	return 0;
}

int td_record(td_writer *w, const char *name, td_dtype dtype, const int64_t *shape, int ndim, const void *data) {
	return td__record(w, name, dtype, shape, NULL, ndim, data, NULL, NULL);
}

int td_record_strided(td_writer *w, const char *name, td_dtype dtype, const int64_t *shape, const int64_t *stride, int ndim, const void *data) {
	return td__record(w, name, dtype, shape, stride, ndim, data, NULL, NULL);
}

int td_record_from(td_writer *w, const char *name, td_dtype dtype, const int64_t *shape, int ndim, const void *source, td_copy copy, void *context) {
	return td__record(w, name, dtype, shape, NULL, ndim, source, copy, context);
}

/* Change the status in place. What JSON would escape is replaced, so that it keeps its width; cut between runes. */
static int td__status(td_writer *w, const char *before, const char *why) {
	char slot[TD__STATUS];
	size_t at = strlen(before), n;
	memset(slot, ' ', sizeof slot);
	memcpy(slot, before, at);
	for (; *why; why += n > 0 ? n : 1) {
		n = td__rune(why);
		if (at + n >= sizeof slot) break;
		if (n == 0) slot[at++] = '?';
		else if (n > 1) memcpy(slot + at, why, n), at += n;
		else slot[at++] = *why == '"' ? '\'' : *why == '\\' ? '/' : (unsigned char)*why < ' ' ? ' ' : *why;
	}
	if (w->head == NULL || fseek(w->head, 8 + (long)(sizeof TD__START - 1), SEEK_SET) != 0) return -1;
	return td__write(w->head, slot, sizeof slot) || TD__SYNC(w->head) ? -1 : 0;
}

static void td__end(td_writer *w) {
	td__shut(w);
	if (w->debug.on) td__debug_end(w);
	td__free(&w->names);
	td__free(&w->entry);
	td__free(&w->part);
	td__free(&w->path);
	free(w->slots);
	free(w->chunk);
	w->slots = NULL;
	w->chunk = NULL;
	w->slots_cap = w->names_count = 0;
	w->state = TD__DONE;
}

int td_close(td_writer *w) {
	if (w == NULL || w->state == TD__OFF) return 0;
	if (w->state == TD__OPEN) { /* the data are synced before the status says that they are there */
		errno = 0;
		if (fflush(w->data) != 0 || TD__SYNC(w->data) != 0 || td__status(w, "complete", "")) (void)td__io(w, "cannot be completed");
	}
	if (w->state == TD__OPEN) {
		td__shut(w);
		if (td__rename(w->part.at, w->path.at) != 0) (void)td__io(w, "cannot get its name");
	}
	if (w->state == TD__ERROR) return td_fail(w, NULL);
	td__end(w);
	return w->error[0] != 0 ? -1 : 0;
}

int td_fail(td_writer *w, const char *why) {
	if (w == NULL || w->state == TD__OFF || w->state == TD__DONE) return 0;
	if (why == NULL) why = "no reason given";
	(void)td__status(w, "failed: ", w->error[0] != 0 ? w->error : why); /* the first error is the one to be told */
	(void)td__error(w, "trace %.200s: failed: %.200s", w->path.at, why);
	td__end(w);
	return -1;
}

const char *td_error(const td_writer *w) { return w != NULL ? w->error : ""; }

#endif /* TRACEDIFF_IMPLEMENTATION */
