// Functions of CUDA's driver that native code calls: they note what they are asked to do, or fail where they are told to.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COPY, LAUNCH, RECORD, GET, PUSH, POP, FUNCTIONS };
typedef struct { int64_t what, arguments[3], stream, context; } Entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Entry *entries;
static int64_t count, room;
int64_t driver_calls[FUNCTIONS], driver_status[FUNCTIONS], driver_faults[FUNCTIONS]; // for so many times a function gives its status, and does nothing
static _Thread_local int64_t stack[16] = {1};                   // contexts of a thread, the current one at depth
static _Thread_local int depth;

void driver_set_context(int64_t context) { stack[depth] = context; }

static int called(int what, Entry entry) {
  pthread_mutex_lock(&lock);
  driver_calls[what]++;
  int found = 0;
  if (driver_faults[what] > 0) {
    driver_faults[what]--;
    found = (int)driver_status[what];
  } else if (what <= RECORD) {
    if (count == room) entries = realloc(entries, sizeof(Entry) * (size_t)(room = 2 * room + 64));
    entry.what = what;
    entry.context = stack[depth];
    entries[count++] = entry;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

// The noted entries, oldest first, as far as there is room for them; they are forgotten.
int64_t driver_taken(Entry *out, int64_t most) {
  pthread_mutex_lock(&lock);
  int64_t n = count < most ? count : most;
  memcpy(out, entries, sizeof(Entry) * (size_t)n);
  memmove(entries, entries + n, sizeof(Entry) * (size_t)(count - n));
  count -= n;
  pthread_mutex_unlock(&lock);
  return n;
}

int driver_copy_in(int64_t to, int64_t from, int64_t nbytes, int64_t stream) { return called(COPY, (Entry){.arguments = {to, from, nbytes}, .stream = stream}); }
int driver_launch(int64_t graph, int64_t stream) { return called(LAUNCH, (Entry){.arguments = {graph}, .stream = stream}); }
int driver_record(int64_t event, int64_t stream) { return called(RECORD, (Entry){.arguments = {event}, .stream = stream}); }

int driver_get_current(int64_t *context) {
  *context = stack[depth];
  return called(GET, (Entry){0});
}

int driver_push_current(int64_t context) {
  int found = called(PUSH, (Entry){0});
  if (!found) stack[++depth] = context;
  return found;
}

int driver_pop_current(int64_t *context) {
  *context = stack[depth--];
  return called(POP, (Entry){0});
}
