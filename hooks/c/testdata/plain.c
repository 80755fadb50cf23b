/* A second source file of the engine: it has the hooks and not the implementation. */
#include "../tracediff.h"

#ifdef __cplusplus
extern "C" {
#endif
int plain_record(td_writer *w, const char *name);
#ifdef __cplusplus
}
#endif

int plain_record(td_writer *w, const char *name) {
	const int64_t shape[] = {2, 1};
	const float data[] = {1.5f, -2};
	return td_record(w, name, TD_F32, shape, 2, data);
}
