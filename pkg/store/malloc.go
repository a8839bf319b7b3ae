package store

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static void keep_freed_memory(void) {
#ifdef __GLIBC__
	mallopt(M_TRIM_THRESHOLD, 16 << 20);
	mallopt(M_TOP_PAD, 1 << 20);
	mallopt(M_ARENA_MAX, 2);
#endif
}
*/
import "C"

// keepFreedMemory keeps the memory that SQLite frees in the process. A connection frees its cached pages whenever another
// one has written, which with several daemons is before almost every transaction. By default glibc then returns the
// memory to the kernel, and the next transaction waits while the kernel fills it with zeros again: a quarter of the time
// that the statements of a decision took.
func keepFreedMemory() { C.keep_freed_memory() }
