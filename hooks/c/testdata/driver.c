/* Does with tracediff.h what the lines on its standard input say, and answers each with what came back: the test's hands.
 * Texts are hexadecimal, so that any byte can be in them; "-" is NULL. The same source is compiled as C99 and as C++11. */
#define TRACEDIFF_IMPLEMENTATION
#include "../tracediff.h"

#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C"
#endif
int plain_record(td_writer *w, const char *name); /* plain.c: the header without the implementation */

static char line[4 << 20];
static td_writer writer, *trace = &writer;

static char *word(void) {
	char *w = strtok(NULL, " \n");
	if (w == NULL) {
		fprintf(stderr, "driver: a word is missing\n");
		exit(3);
	}
	return w;
}

static long number(void) { return strtol(word(), NULL, 10); }

static int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

/* The bytes of a word, in place, with a 0 behind them. */
static char *text(size_t *size) {
	char *w = word();
	size_t i, n = strlen(w) / 2;
	if (size != NULL) *size = 0;
	if (strcmp(w, "-") == 0) return NULL;
	if (strcmp(w, "=") == 0) n = 0;
	for (i = 0; i < n; i++) w[i] = (char)(16 * digit(w[2 * i]) + digit(w[2 * i + 1]));
	w[n] = 0;
	if (size != NULL) *size = n;
	return w;
}

static int open_trace(void) {
	const char *names[64], *path;
	td_manifest m;
	long i, count;
	memset(&m, 0, sizeof m);
	path = text(NULL);
	m.side = text(NULL), m.producer = text(NULL), m.version = text(NULL), m.model = text(NULL);
	m.prompt = text(NULL), m.dtype = text(NULL), m.device = text(NULL);
	m.passes = (int)number(), m.level = (int)number(), m.layers = text(NULL), m.reserve = (size_t)number();
	count = number();
	for (i = 0; i < count; i++) names[i] = text(NULL);
	if (count >= 0) names[count] = NULL, m.names = names;
	return td_open(trace, path, &m);
}

static int numbers(int64_t *to) {
	int i, n = (int)number();
	for (i = 0; i < n; i++) to[i] = number();
	return n;
}

/* A device whose memory the host cannot read: every byte of it is turned around. It fails, or ends the process, at a
 * piece that its context names. */
static int from_device(void *host, const void *source, size_t offset, size_t size, void *context) {
	long *plan = (long *)context;
	size_t i;
	for (i = 0; i < size; i++) ((unsigned char *)host)[i] = (unsigned char)~((const unsigned char *)source)[offset + i];
	if (plan[1] == 0) _Exit(9);
	plan[1]--;
	return plan[0]-- == 0;
}

static int record(const char *how) {
	int64_t shape[64], stride[64];
	size_t size, i;
	long plan[2];
	char *name = text(NULL);
	td_dtype dtype = (td_dtype)number();
	int ndim = numbers(shape);
	char *data = text(&size);
	if (strcmp(how, "record") == 0) return td_record(trace, name, dtype, shape, ndim, data);
	if (strcmp(how, "strided") == 0) {
		long offset = number();
		(void)numbers(stride);
		return td_record_strided(trace, name, dtype, shape, stride, ndim, data + offset);
	}
	plan[0] = number(), plan[1] = number();
	for (i = 0; i < size; i++) data[i] = (char)~data[i];
	return td_record_from(trace, name, dtype, shape, ndim, data, from_device, plan);
}

/* Many tensors of n bytes, all of one byte, until somebody ends the process. */
static int flood(void) {
	int64_t shape[1];
	char name[32], *data;
	long i, n = number();
	shape[0] = n;
	data = (char *)malloc((size_t)n);
	for (i = 0; data != NULL; i++) {
		memset(data, (int)(i % 251), (size_t)n);
		(void)snprintf(name, sizeof name, "tensor.%ld", i);
		if (td_record(trace, name, TD_U8, shape, 1, data)) break;
	}
	free(data);
	return -1;
}

int main(void) {
	while (fgets(line, sizeof line, stdin) != NULL) {
		const char *command = strtok(line, " \n");
		int got;
		if (command == NULL) continue;
		if (strcmp(command, "open") == 0) got = open_trace();
		else if (strcmp(command, "pass") == 0) got = td_begin_pass(trace, number());
		else if (strcmp(command, "plain") == 0) got = plain_record(trace, text(NULL));
		else if (strcmp(command, "flood") == 0) got = flood();
		else if (strcmp(command, "close") == 0) got = td_close(trace);
		else if (strcmp(command, "fail") == 0) got = td_fail(trace, text(NULL));
		else if (strcmp(command, "null") == 0) trace = NULL, got = 0;
		else if (strcmp(command, "exit") == 0) _Exit(9);
		else got = record(command);
		printf("%d %s\n", got, td_error(trace));
		fflush(stdout);
	}
	return 0;
}
